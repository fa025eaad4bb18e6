#!/usr/bin/python
# SPDX-License-Identifier: GPL-2.0-or-later
"""Ansible module: the manually keyed IPsec connections of a host, as a whole."""

from __future__ import annotations

DOCUMENTATION = r"""
module: ipsec
short_description: Set manually keyed IPsec SAs and policies, with or without security labels
version_added: 0.1.0
description:
  - Takes the whole declared set of connections, reads the host's SAs and policies, and applies
    what differs as one batch. A batch that fails half-way is undone at once.
  - The same declaration serves both hosts; each finds its own end among O(connections[].ends).
  - Only what is declared, or was added by this module before, is touched. What is declared no
    more is taken back. SAs and policies of others in the way are an error.
  - Keys come from O(seed). A connection gets new ones when any of its SAs is missing or differs;
    otherwise its keys stay, whatever the seed. No key is ever shown.
  - Policies, and the first label, can cut SSH. Then a rollback is armed on the host before the
    change, and the action plugin disarms it over a new connection.
author: Crossover developers
options:
  state:
    description: V(absent) takes back everything that this module has added.
    type: str
    choices: [present, absent]
    default: present
  rekey:
    description: Whether every connection gets new keys.
    type: bool
    default: false
extends_documentation_fragment:
  - crossover.lab.guard
  - crossover.lab.ipsec_connections
attributes:
  check_mode:
    support: full
    description: Says what would be changed.
  diff_mode:
    support: full
    description: Shows SAs and policies, never a key.
seealso:
  - module: crossover.lab.ike
"""

EXAMPLES = r"""
- name: Make the seed of this run's keys
  crossover.lab.ipsec_keys:
  register: keys
  run_once: true
  no_log: true

- name: Ensure the test link is protected, with the label of the measured processes
  crossover.lab.ipsec:
    connections:
      - name: test
        ends: [198.18.0.1, 198.18.0.2]
        label: process
    level: s0:c0.c239
    seed: "{{ keys.seed }}"
    generation: "{{ keys.generation }}"

- name: Ensure the test link is as it was
  crossover.lab.ipsec:
    state: absent
"""

RETURN = r"""
commands:
  description: The first lines for C(ip -batch), keys redacted.
  returned: success
  type: list
  elements: str
commands_total:
  description: How many lines there were.
  returned: success
  type: int
by_hand:
  description: >-
    The shell commands that build the declared connections by hand on a host that has none, in
    order. Keys are shell variables, C($KEY_…), made of C($SECRET).
  returned: success
  type: list
  elements: str
state:
  description: >-
    The declared SAs and policies as read back (in check mode, as they would be), without keys;
    the first 64 of each (SAs by SPI), and C(sas_total) and C(policies_total).
  returned: success
  type: dict
connections:
  description: For each connection its C(name), C(generation), C(label), C(spis) and C(reqids).
  returned: success
  type: list
  elements: dict
context:
  description: Context of the measured processes, where a label was declared.
  returned: success
  type: str
applied:
  description: >-
    C(operations), how many SAs and policies were added, replaced or removed, and C(seconds), how
    long that took with reading back.
  returned: when something was changed
  type: dict
rekeyed:
  description: Names of the connections that got new keys.
  returned: success
  type: list
  elements: str
explain:
  description: Why the host refused, as C(cause), C(text) and C(hint).
  returned: failure
  type: list
  elements: dict
undone:
  description: Whether a batch that failed half-way has been undone.
  returned: failure
  type: bool
guard:
  description: The guard of this change; none if nothing could cut the connection.
  returned: always
  type: dict
guard_rolled_back:
  description: Whether the guard had to undo the change. It then fails, and is no test failure.
  returned: failure after the guard was armed
  type: bool
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.crossover.lab.plugins.module_utils import (
    guard,
    ipsec_apply,
    ipsec_last,
    ipsec_prepare,
)
from ansible_collections.crossover.lab.plugins.module_utils.ipsec_arguments import CONNECTIONS
from ansible_collections.crossover.lab.plugins.module_utils.ipsec_host import IpsecError
from ansible_collections.crossover.lab.plugins.module_utils.kernel_state.declared import (
    DeclarationError,
)

ARGUMENTS = {
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    "connections": CONNECTIONS,
    "level": {"type": "str"},
    "seed": {"type": "str", "no_log": True},
    "generation": {"type": "str"},
    # The word key in its name is no reason to hide a boolean.
    "rekey": {"type": "bool", "default": False, "no_log": False},
    "management": {"type": "list", "elements": "str"},
    "guard": guard.ARGUMENT,
}


def main() -> None:
    """Entry point of the module."""
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    try:
        change = ipsec_prepare.prepare(module.params)
        for text in change.warnings:
            module.warn(text)
        if module.check_mode:
            module.exit_json(**change.result())
        done = ipsec_apply.carry_out(change, module.params["guard"] or {})
        if done["changed"]:
            ipsec_last.changed(bool(change.connections), "manual", module.params["level"])
        module.exit_json(**done)
    except ipsec_apply.RefusedError as error:
        ipsec_last.refused("manual", str(error), error.reasons)
        module.fail_json(
            msg=str(error),
            undone=not error.left,
            left=list(error.left),
            explain=[reason.as_dict() for reason in error.reasons],
            guard=None,
            guard_rolled_back=error.fired,
        )
    except (DeclarationError, IpsecError, guard.GuardError) as error:
        module.fail_json(msg=str(error), explain=[], guard=None)


if __name__ == "__main__":
    main()
