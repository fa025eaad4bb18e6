# SPDX-License-Identifier: GPL-2.0-or-later
"""Ansible filter: the CIPSO labels in a capture."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable
from typing import Any

from ansible.errors import AnsibleFilterError

from ansible_collections.crossover.lab.plugins.module_utils.kernel_state.cipso_option import (
    decode_option,
)
from ansible_collections.crossover.lab.plugins.module_utils.kernel_state.context import LabelError
from ansible_collections.crossover.lab.plugins.plugin_utils import offline  # noqa: F401 - makes the collector importable

DOCUMENTATION = r"""
name: captured_labels
short_description: The CIPSO option of each IPv4 packet in a capture
version_added: 0.1.0
description:
  - Takes a capture file of Ethernet frames as M(ansible.builtin.slurp) returns it.
author: Crossover developers
options:
  _input:
    description: The pcap file in base64.
    type: str
    required: true
"""

EXAMPLES = r"""
- name: Ensure the packet carries the label
  ansible.builtin.assert:
    that: (capture.content | crossover.lab.captured_labels)[0].doi == 16
"""

RETURN = r"""
_value:
  description: >-
    For each packet C(doi), C(tag), C(level) and C(categories) as they are on the wire, or null
    for a packet without the option.
  type: list
  elements: dict
"""


def captured_labels(content: str) -> list[dict[str, Any] | None]:
    """See the documentation. Raises AnsibleFilterError for what is no capture."""
    from collector.errors import InputError
    from collector.wire.packets import cipso_option, read_pcap

    try:
        packets = read_pcap(base64.b64decode(content, validate=True), "capture")
        return [_label(cipso_option(packet)) for packet in packets]
    except (InputError, LabelError, binascii.Error) as error:
        raise AnsibleFilterError(f"captured_labels: {error}") from error


def _label(option: bytes | None) -> dict[str, Any] | None:
    if option is None:
        return None
    found = decode_option(option)
    return {
        "doi": found.doi,
        "tag": found.tag,
        "level": found.level,
        "categories": list(found.categories),
    }


class FilterModule:
    """The filters of this file."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Name to function."""
        return {"captured_labels": captured_labels}
