#!/usr/bin/python
# SPDX-License-Identifier: GPL-2.0-or-later
"""Ansible module: what a forwarding host counted."""

from __future__ import annotations

DOCUMENTATION = r"""
module: forwarding_evidence
short_description: Read what a host that forwards has counted, and by how much it grew
version_added: 0.1.0
description:
  - Called twice, around some traffic; the second call gets what the first returned as O(since).
  - Reads the counters of the test devices, of the IP layer and of the receive queues. Changes
    nothing.
author: Crossover developers
options:
  devices:
    description: Test devices.
    type: list
    elements: str
    required: true
  since:
    description: C(evidence) of an earlier call on the same host.
    type: dict
attributes:
  check_mode:
    support: full
    description: Nothing is changed.
  diff_mode:
    support: none
    description: Nothing is changed.
"""

EXAMPLES = r"""
- name: Note the counters
  crossover.lab.forwarding_evidence:
    devices: [eth1, eth2]
  register: before

- name: Say what was forwarded meanwhile
  crossover.lab.forwarding_evidence:
    devices: [eth1, eth2]
    since: "{{ before.evidence }}"
"""

RETURN = r"""
evidence:
  description: C(identity) (kernel, boot id, context) and C(counters) by source, for a later call.
  type: dict
  returned: always
grown:
  description: >-
    Increases since, by source - C(ip) (C(ForwDatagrams) are the forwarded), C(softnet), and for
    each device C(DEVICE rx) and C(DEVICE tx). A source that began anew meanwhile is absent.
  type: dict
  returned: with O(since)
same_boot:
  description: Whether the host is in the same boot of the same kernel.
  type: bool
  returned: with O(since)
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.crossover.lab.plugins.module_utils import forwarding_counters
from ansible_collections.crossover.lab.plugins.module_utils.host.errors import HostError
from ansible_collections.crossover.lab.plugins.module_utils.host.run import run


def main() -> None:
    """Entry point of the module."""
    module = AnsibleModule(
        argument_spec={
            "devices": {"type": "list", "elements": "str", "required": True},
            "since": {"type": "dict"},
        },
        supports_check_mode=True,
    )
    try:
        evidence = forwarding_counters.read(module.params["devices"], run)
    except HostError as error:
        module.fail_json(msg=str(error))
    result = {"changed": False, "evidence": evidence}
    since = module.params["since"]
    if since is not None:
        keys = ("kernel", "boot_id")
        result["grown"] = forwarding_counters.grown(since["counters"], evidence["counters"])
        result["same_boot"] = all(
            since["identity"][key] == evidence["identity"][key] for key in keys
        )
    module.exit_json(**result)


if __name__ == "__main__":
    main()
