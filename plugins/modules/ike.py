#!/usr/bin/python
# SPDX-License-Identifier: GPL-2.0-or-later
"""Ansible module: the IPsec connections of a host, keyed by an IKE daemon."""

from __future__ import annotations

DOCUMENTATION = r"""
module: ike
short_description: Key IPsec connections with libreswan or strongSwan, with or without labels
version_added: 0.1.0
description:
  - Takes the same declaration as M(crossover.lab.ipsec), runs an IKEv2 daemon of its own with it,
    and waits until the SAs of every connection exist in both directions.
  - The daemon's configuration and the pre-shared key, which comes from O(seed), are in memory; the
    key's file is gone as soon as the daemon has read it. Nothing below /etc is written.
  - With a label, libreswan makes SAs when a packet of a process asks for them, for the label of
    that process; this module sends one under O(level). strongSwan as Debian builds it has no
    SELinux labels.
  - Takes away what it started; while another IKE daemon runs on the host it refuses to start.
author: Crossover developers
options:
  state:
    description: V(absent) ends the daemon that this module started.
    type: str
    choices: [present, absent]
    default: present
  keying:
    description: The daemon.
    type: str
    choices: [libreswan, strongswan]
    default: libreswan
  rekey:
    description: Whether the daemon is started anew, with a new key, even if nothing differs.
    type: bool
    default: false
  wait:
    description: Seconds within which the SAs must exist; V(0) does not wait.
    type: int
    default: 60
  guard:
    description: The rollback against lock-out; filled in by the action plugin.
    type: dict
    suboptions:
      timeout:
        description: >-
          Seconds within which a new connection must confirm the change, after O(wait).
        type: int
        default: 30
      token:
        description: Name of the guard.
        type: str
extends_documentation_fragment:
  - crossover.lab.ipsec_connections
attributes:
  check_mode:
    support: full
    description: Says whether the daemon would be started, ended or left.
  diff_mode:
    support: full
    description: Shows the daemon's configuration, which holds no key.
seealso:
  - module: crossover.lab.ipsec
"""

EXAMPLES = r"""
- name: Ensure the test link is keyed by IKE, with the label of the measured processes
  crossover.lab.ike:
    connections:
      - name: test
        ends: [198.18.0.1, 198.18.0.2]
        label: process
    level: s0:c0.c239
    seed: "{{ keys.seed }}"
    generation: "{{ keys.generation }}"
    guard:
      timeout: 120
"""

RETURN = r"""
by_hand:
  description: >-
    The shell commands that do the same by hand on a host where no IKE daemon runs, in order. The
    pre-shared key is a shell variable, C($KEY_…), made of C($SECRET).
  returned: success
  type: list
  elements: str
connections:
  description: For each connection its C(name), C(generation) and C(label).
  returned: success
  type: list
  elements: dict
state:
  description: SAs and policies between the declared ends as read back, without keys.
  returned: success
  type: dict
context:
  description: Context of the measured processes, where a label was declared.
  returned: success
  type: str
explain:
  description: Why no SAs came, as C(cause), C(text) and C(hint).
  returned: failure
  type: list
  elements: dict
log:
  description: Lines of the daemon's log that tell of trouble.
  returned: failure
  type: list
  elements: str
guard:
  description: The guard of this change; none if nothing could cut the connection.
  returned: always
  type: dict
guard_rolled_back:
  description: Whether the guard had to undo the change.
  returned: failure
  type: bool
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.crossover.lab.plugins.module_utils import (
    guard,
    ike_apply,
    ipsec_last,
)
from ansible_collections.crossover.lab.plugins.module_utils.ipsec_arguments import CONNECTIONS
from ansible_collections.crossover.lab.plugins.module_utils.ipsec_host import IpsecError
from ansible_collections.crossover.lab.plugins.module_utils.kernel_state.declared import (
    DeclarationError,
)

ARGUMENTS = {
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    "keying": {
        "type": "str",
        "choices": ["libreswan", "strongswan"],
        "default": "libreswan",
        "no_log": False,
    },
    "connections": CONNECTIONS,
    "level": {"type": "str"},
    "seed": {"type": "str", "no_log": True},
    "generation": {"type": "str"},
    "rekey": {"type": "bool", "default": False, "no_log": False},
    "wait": {"type": "int", "default": ike_apply.DEFAULT_WAIT_S},
    "management": {"type": "list", "elements": "str"},
    "guard": guard.ARGUMENT,
}


def main() -> None:
    """Entry point of the module."""
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    try:
        change = ike_apply.prepare(module.params)
        for text in change.warnings:
            module.warn(text)
        if module.check_mode:
            module.exit_json(**change.result())
        done = ike_apply.carry_out(change, module.params)
        if done["changed"]:
            ipsec_last.changed(not change.remove, change.keying, module.params["level"])
        module.exit_json(**done)
    except ike_apply.NotUpError as error:
        ipsec_last.refused(module.params["keying"], str(error), error.reasons)
        module.fail_json(
            msg=str(error),
            explain=[reason.as_dict() for reason in error.reasons],
            log=list(error.log),
            guard=None,
            guard_rolled_back=error.fired,
        )
    except (DeclarationError, IpsecError, guard.GuardError) as error:
        module.fail_json(msg=str(error), explain=[], log=[], guard=None)


if __name__ == "__main__":
    main()
