#!/usr/bin/python
# SPDX-License-Identifier: GPL-2.0-or-later
"""Ansible module: the NetLabel configuration of a host, as a whole."""

from __future__ import annotations

DOCUMENTATION = r"""
module: cipso
short_description: Set DOIs, label maps, unlabelled handling and CIPSO's kernel parameters
version_added: 0.1.0
description:
  - Takes the whole declared NetLabel state and applies what differs as one step on the host.
    A step that fails half-way is undone at once.
  - What is declared no more goes back to what it was before this module changed it. What others
    have added is left alone.
  - A change of labels can cut SSH. So a rollback is armed on the host before the first command,
    and the action plugin disarms it over a new connection; see RV(ignore:guard_rolled_back).
    A change of kernel parameters alone cannot, and needs no guard.
  - NetLabel's configuration lives in the kernel until the next boot, and nothing here makes it
    persistent.
author: Crossover developers
options:
  state:
    description: >-
      V(absent) takes back what this module has changed; with O(exclusive=true), everything to the
      kernel's defaults.
    type: str
    choices: [present, absent]
    default: present
  dois:
    description: The domains of interpretation.
    type: list
    elements: dict
    default: []
    suboptions:
      number:
        description: Number of the DOI, from 1.
        type: int
        required: true
      type:
        description: >-
          V(trans) translates levels and categories, V(pass) sends them as they are, V(local)
          carries whole contexts over the loopback.
        type: str
        choices: [trans, pass, local]
        required: true
      tags:
        description: Tag types in the order tried. V(trans) takes 1 only; V(local) takes none.
        type: list
        elements: int
        default: []
      levels:
        description: For V(trans), local levels and those on the wire, as in C(0-16) or C(0=0,1=3).
        type: str
      categories:
        description: For V(trans), as O(dois[].levels).
        type: str
      protocol:
        description: V(cipso) is for IPv4, V(calipso) for IPv6 (V(pass) only).
        type: str
        choices: [cipso, calipso]
        default: cipso
  maps:
    description: >-
      Which protocol is used towards which addresses. The mappings of a domain are one item; the
      default must cover both families.
    type: list
    elements: dict
    default: []
    suboptions:
      domain:
        description: SELinux domain whose sockets this is for; V(default) for all others.
        type: str
        default: default
      address:
        description: Network that this is for; all addresses if not given.
        type: str
      family:
        description: For V(unlbl) without an address, the one family that it is for.
        type: int
        choices: [4, 6]
      protocol:
        description: Protocol towards these addresses.
        type: str
        choices: [unlbl, cipso, calipso]
        required: true
      doi:
        description: DOI for V(cipso) and V(calipso).
        type: int
  unlabelled:
    description: Handling of packets without a label; not touched if not given.
    type: dict
    suboptions:
      accept:
        description: Whether such packets are accepted. V(false) drops SSH too, so it is refused.
        type: bool
        default: true
      static:
        description: Labels for such packets.
        type: list
        elements: dict
        default: []
        suboptions:
          interface:
            description: Interface that they come from; any if not given.
            type: str
          address:
            description: Network that they come from.
            type: str
            required: true
          label:
            description: The SELinux context.
            type: str
            required: true
  sysctls:
    description: Kernel parameters below net.ipv4, of the whole host; read back after writing.
    type: dict
    suboptions:
      cipso_cache_enable:
        description: Whether decoded options are cached.
        type: int
      cipso_cache_bucket_size:
        description: Entries in each of the 128 buckets of the cache; 0 adds none.
        type: int
      cipso_rbm_optfmt:
        description: Whether tag 1 is padded to the size that the draft recommends.
        type: int
      cipso_rbm_strictvalid:
        description: Whether each received tag 1 of a V(trans) DOI is checked in full.
        type: int
  exclusive:
    description: Also remove DOIs, mappings and static labels that others have added.
    type: bool
    default: false
  management:
    description: >-
      Addresses that manage this host and must stay unlabelled. If not given, the other end of the
      SSH connection; an empty list switches this protection off.
    type: list
    elements: str
extends_documentation_fragment:
  - crossover.lab.guard
attributes:
  check_mode:
    support: full
    description: Says what would change and with which commands; arms nothing.
  diff_mode:
    support: full
    description: Shows the managed state before and after.
"""

EXAMPLES = r"""
- name: Ensure the test link is labelled and the rest is not
  crossover.lab.cipso:
    dois:
      - {number: 16, type: trans, tags: [1], levels: 0-16, categories: 0-256}
    maps:
      - {address: 0.0.0.0/0, protocol: unlbl}
      - {address: "::/0", protocol: unlbl}
      - {address: 198.18.0.0/24, protocol: cipso, doi: 16}
    sysctls:
      cipso_cache_enable: 1

- name: Ensure nothing of it is left
  crossover.lab.cipso:
    state: absent
"""

RETURN = r"""
commands:
  description: The commands that were run, or in check mode would be, as argv lists in order.
  returned: success
  type: list
  elements: list
by_hand:
  description: >-
    The shell commands that build the declared configuration by hand on a host as it boots, in
    order.
  returned: success
  type: list
  elements: str
sysctls_written:
  description: The kernel parameters that were, or would be, written.
  returned: success
  type: dict
state:
  description: >-
    The configuration as read back from the kernel (in check mode, as it would be): C(dois),
    C(maps), C(sysctls), and C(unlabelled) where it is managed.
  returned: success
  type: dict
netlabel:
  description: Whether the running kernel has NetLabel. Without it nothing can be declared, and
    nothing is there to be removed.
  returned: success
  type: bool
foreign:
  description: DOIs on the host that are neither declared nor this module's.
  returned: success
  type: list
  elements: str
guard:
  description: The guard of this change; none if nothing could cut the connection.
  returned: always
  type: dict
guard_rolled_back:
  description: Whether the guard had to undo the change. It then fails, and is no test failure.
  returned: failure after the guard was armed
  type: bool
guard_failures:
  description: What could not be undone.
  returned: failure after the guard was armed
  type: list
  elements: str
undone:
  description: Whether a step that failed half-way has been undone.
  returned: failure
  type: bool
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.crossover.lab.plugins.module_utils import cipso_apply, guard
from ansible_collections.crossover.lab.plugins.module_utils.cipso_host import CipsoError, Host
from ansible_collections.crossover.lab.plugins.module_utils.kernel_state.declared import (
    DeclarationError,
)

ARGUMENTS = {
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    "dois": {
        "type": "list",
        "elements": "dict",
        "default": [],
        "options": {
            "number": {"type": "int", "required": True},
            "type": {"type": "str", "choices": ["trans", "pass", "local"], "required": True},
            "tags": {"type": "list", "elements": "int", "default": []},
            "levels": {"type": "str"},
            "categories": {"type": "str"},
            "protocol": {"type": "str", "choices": ["cipso", "calipso"], "default": "cipso"},
        },
    },
    "maps": {
        "type": "list",
        "elements": "dict",
        "default": [],
        "options": {
            "domain": {"type": "str", "default": "default"},
            "address": {"type": "str"},
            "family": {"type": "int", "choices": [4, 6]},
            "protocol": {
                "type": "str",
                "choices": ["unlbl", "cipso", "calipso"],
                "required": True,
            },
            "doi": {"type": "int"},
        },
    },
    "unlabelled": {
        "type": "dict",
        "options": {
            "accept": {"type": "bool", "default": True},
            "static": {
                "type": "list",
                "elements": "dict",
                "default": [],
                "options": {
                    "interface": {"type": "str"},
                    "address": {"type": "str", "required": True},
                    "label": {"type": "str", "required": True},
                },
            },
        },
    },
    "sysctls": {
        "type": "dict",
        "options": {
            "cipso_cache_enable": {"type": "int"},
            "cipso_cache_bucket_size": {"type": "int"},
            "cipso_rbm_optfmt": {"type": "int"},
            "cipso_rbm_strictvalid": {"type": "int"},
        },
    },
    "exclusive": {"type": "bool", "default": False},
    "management": {"type": "list", "elements": "str"},
    "guard": guard.ARGUMENT,
}


def main() -> None:
    """Entry point of the module."""
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    try:
        host = Host()
        change = cipso_apply.prepare(module.params, host)
        for text in change.warnings:
            module.warn(text)
        if module.check_mode:
            module.exit_json(**change.result())
        module.exit_json(**cipso_apply.carry_out(change, module.params["guard"] or {}, host))
    except cipso_apply.UndoneError as error:
        module.fail_json(
            msg=str(error),
            undone=not error.left,
            guard=None,
            guard_rolled_back=error.fired,
            guard_failures=list(error.left),
        )
    except (DeclarationError, CipsoError, guard.GuardError) as error:
        module.fail_json(msg=str(error), guard=None)


if __name__ == "__main__":
    main()
