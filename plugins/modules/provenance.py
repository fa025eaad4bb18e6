#!/usr/bin/python
# SPDX-License-Identifier: GPL-2.0-or-later
"""Ansible module: what a host is while it is measured."""

from __future__ import annotations

DOCUMENTATION = r"""
module: provenance
short_description: What a host is while it is measured, and what has changed since
version_added: 0.1.0
description:
  - Reads kernel and its configuration, processors and their clocks, devices with offloads, queues
    and interrupts, kernel parameters, SELinux and its policy, packet filter, tools and services.
  - Changes nothing. What the host does not say is null.
author: Crossover developers
options:
  devices:
    description: Test devices.
    type: list
    elements: str
    default: []
  parts:
    description:
      - Parts to read. C(tools) runs each tool once, so it is read once a run; the others are
        cheap enough for each block.
    type: list
    elements: str
    choices: [kernel, cpu, devices, sysctls, selinux, netfilter, tools, services]
    default: [kernel, cpu, devices, sysctls, selinux, netfilter, tools, services]
  before:
    description: An earlier reading (RV(provenance)) to compare with.
    type: dict
attributes:
  check_mode:
    support: full
    description: Reading is the same in check mode.
  diff_mode:
    support: none
    description: Nothing is changed.
"""

EXAMPLES = r"""
- name: Read what the host is
  crossover.lab.provenance:
    devices: [eth1]
  register: before

- name: Ensure that nothing has changed since
  crossover.lab.provenance:
    devices: [eth1]
    parts: [kernel, cpu, devices, sysctls, selinux, netfilter, services]
    before: "{{ before.provenance }}"
  register: after
  failed_when: after.differences | length > 0
"""

RETURN = r"""
provenance:
  description: The reading, with C(schema), C(hostname), C(boot_id), C(clock) and a key for each
    part.
  type: dict
  returned: always
differences:
  description: What differs from O(before), as dicts of path, before and after; what differs
    between any two readings (clocks, counters) is left out.
  type: list
  elements: dict
  returned: when O(before) is given
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.crossover.lab.plugins.module_utils.host import provenance
from ansible_collections.crossover.lab.plugins.module_utils.host.differences import differences
from ansible_collections.crossover.lab.plugins.module_utils.host.errors import HostError
from ansible_collections.crossover.lab.plugins.module_utils.host.run import run


def main() -> None:
    """Entry point of the module."""
    parts = list(provenance.PARTS)
    module = AnsibleModule(
        argument_spec={
            "devices": {"type": "list", "elements": "str", "default": []},
            "parts": {"type": "list", "elements": "str", "choices": parts, "default": parts},
            "before": {"type": "dict"},
        },
        supports_check_mode=True,
    )
    try:
        reading = provenance.take(module.params["parts"], module.params["devices"], run)
    except HostError as error:
        module.fail_json(msg=str(error))
    result = {"changed": False, "provenance": reading}
    if module.params["before"] is not None:
        result["differences"] = differences(module.params["before"], reading, provenance.VOLATILE)
    module.exit_json(**result)


if __name__ == "__main__":
    main()
