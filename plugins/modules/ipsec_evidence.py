#!/usr/bin/python
# SPDX-License-Identifier: GPL-2.0-or-later
"""Ansible module: what a host knows about why IPsec traffic passes, or does not."""

from __future__ import annotations

DOCUMENTATION = r"""
module: ipsec_evidence
short_description: Read IPsec's counters, SAs, policies and denials, and say what they mean
version_added: 0.1.0
description:
  - Called twice, around some traffic; the second call gets what the first returned as O(since),
    and says which counters grew, what was denied, and the reasons that follow.
  - Reads no key and changes nothing.
author: Crossover developers
options:
  since:
    description: C(evidence) of an earlier call on the same host.
    type: dict
  since_applied:
    description:
      - Whether to explain what happened since M(crossover.lab.ipsec) or M(crossover.lab.ike) put
        the connections in force, in place of O(since); and why they were refused, if they were.
      - O(level) is then the one of that time if it is not given.
    type: bool
    default: false
  level:
    description: SELinux level that the measured processes are started with.
    type: str
  error:
    description: What a tool or socket said, to be explained with the rest.
    type: str
  payload_bytes:
    description: Size of the datagram that did not pass, if it is known.
    type: int
  fits_bytes:
    description: Size of the largest datagram that should pass.
    type: int
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
  crossover.lab.ipsec_evidence:
  register: before

- name: Say what happened meanwhile
  crossover.lab.ipsec_evidence:
    since: "{{ before.evidence }}"
    level: s0:c0.c239
"""

RETURN = r"""
evidence:
  description: Counters and the position in the audit log, for a later call.
  type: dict
  returned: success
grown:
  description: Counters of dropped packets that grew since.
  type: dict
  returned: with O(since)
denials:
  description: Raw AVC lines since.
  type: list
  elements: str
  returned: with O(since)
explain:
  description: The reasons, as C(cause), C(text) and C(hint), the most telling first.
  type: list
  elements: dict
  returned: with O(since)
last:
  description:
    - Of the last declaration, C(keying) and the time C(at); C(since) and C(level) if it is in
      force, C(refused) and C(explain) if it was refused. Null when there was none since the boot.
  type: dict
  returned: with O(since_applied)
fits:
  description: Bytes of the largest datagram that goes in one packet with ESP, by destination.
  type: dict
  returned: with O(since_applied), while connections are in force
state:
  description: SAs and policies of this collection and of others, without keys; of SAs the 64 with
    the lowest SPIs, of policies the first 64.
  type: dict
  returned: success
context:
  description: Context of the measured processes.
  type: str
  returned: success
missing:
  description: Connections of this collection that lack SAs.
  type: list
  elements: str
  returned: success
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.crossover.lab.plugins.module_utils import ipsec_observe
from ansible_collections.crossover.lab.plugins.module_utils.ipsec_host import IpsecError


def main() -> None:
    """Entry point of the module."""
    module = AnsibleModule(
        argument_spec={
            "since": {"type": "dict"},
            "since_applied": {"type": "bool", "default": False},
            "level": {"type": "str"},
            "error": {"type": "str"},
            "payload_bytes": {"type": "int"},
            "fits_bytes": {"type": "int"},
        },
        mutually_exclusive=[("since", "since_applied")],
        supports_check_mode=True,
    )
    try:
        module.exit_json(changed=False, **ipsec_observe.observe(module.params))
    except IpsecError as error:
        module.fail_json(msg=str(error))


if __name__ == "__main__":
    main()
