#!/usr/bin/python
# SPDX-License-Identifier: GPL-2.0-or-later
"""Ansible module: the lab of network namespaces."""

from __future__ import annotations

DOCUMENTATION = r"""
module: netns_lab
short_description: Start and stop a lab whose hosts are network namespaces of this machine
version_added: 0.1.0
description:
  - Runs on the controller as root. Each host of the topology is a set of namespaces (network,
    processes, name, mounts) that ends with its first process; the links are pairs of virtual
    Ethernet devices.
  - The lab is there as a whole or not at all, however this module ends.
  - Programs that the machine lacks are fetched from the Debian archive of its own apt and laid over
    /usr in the hosts only; nothing is installed.
author: Crossover developers
options:
  name:
    description: Name of the lab. Labs of different names run side by side.
    type: str
    default: default
  state:
    description: C(down) ends the lab's own hosts with all that runs in them, and nothing else.
    type: str
    choices: [up, down]
    default: up
  topology:
    description: >-
      The topology, as in C(files/topologies) of the role C(lab_qemu). Required for C(up).
    type: dict
  programs:
    description: Programs that the hosts need, each with the Debian package that brings it.
    type: dict
    default: {}
  mirror:
    description: URI of a Debian archive; empty means the one that this machine's own apt uses.
    type: str
    default: ""
attributes:
  check_mode:
    support: partial
    description: Says only whether the lab runs now.
  diff_mode:
    support: none
    description: A lab has no readable difference.
"""

EXAMPLES = r"""
- name: Ensure the lab is up
  crossover.lab.netns_lab:
    topology: "{{ lookup('ansible.builtin.file', 'topologies/pair.yml') | from_yaml }}"
    programs: {netperf: netperf, netserver: netperf, ethtool: ethtool}
"""

RETURN = r"""
lab:
  description: The lab's state file.
  type: dict
  returned: when the lab is up
"""

import signal
import threading
from dataclasses import asdict
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.crossover.lab.plugins.module_utils import labelled
from ansible_collections.crossover.lab.plugins.module_utils.lab.errors import LabError
from ansible_collections.crossover.lab.plugins.module_utils.lab.netns import (
    init,
    instance,
    state,
    tools,
)

EX_TEMPFAIL = 75


def _wish(module: AnsibleModule) -> instance.Wish:
    wanted = module.params
    if not wanted["topology"]:
        raise LabError("topology: found nothing; wanted a topology for state=up")
    instance.require_machine()
    _made, tree = tools.ensure(wanted["programs"], wanted["mirror"])
    return instance.Wish(wanted["name"], wanted["topology"], tree, labelled.source_of(init))


def _end(number: int, _frame: Any) -> None:
    """Being ended is an exception, so that what was started is taken back at once."""
    raise SystemExit(128 + number)


def main() -> None:
    """Entry point of the module."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, _end)
    module = AnsibleModule(
        argument_spec={
            "name": {"type": "str", "default": "default"},
            "state": {"type": "str", "choices": ["up", "down"], "default": "up"},
            "topology": {"type": "dict"},
            "programs": {"type": "dict", "default": {}},
            "mirror": {"type": "str", "default": ""},
        },
        supports_check_mode=True,
    )
    name, wanted = module.params["name"], module.params["state"]
    try:
        if module.check_mode:
            found = state.load(name)
            running = found is not None and found.running()
            module.exit_json(changed=running != (wanted == "up"))
        if wanted == "up":
            changed, lab = instance.up(_wish(module))
            module.exit_json(changed=changed, lab=asdict(lab))
        module.exit_json(changed=instance.down(name))
    except (LabError, OSError) as error:
        busy = isinstance(error, LabError) and error.busy
        module.fail_json(msg=str(error), exit_code=EX_TEMPFAIL if busy else 1)


if __name__ == "__main__":
    main()
