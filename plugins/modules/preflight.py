#!/usr/bin/python
# SPDX-License-Identifier: GPL-2.0-or-later
"""Ansible module: whether a host can be worked on."""

from __future__ import annotations

DOCUMENTATION = r"""
module: preflight
short_description: Whether a host can be worked on, and how its clock stands
version_added: 0.1.0
description:
  - The action plugin runs one trivial command with privileges first. If sudo wants a terminal,
    which there is none of with pipelining, the error says so and names the remedy.
  - The same command reads the host's clock; half of its round trip is the uncertainty.
author: Crossover developers
options:
  tools:
    description: Commands that the host needs.
    type: list
    elements: str
    default: []
  tunnels:
    description: Types of tunnel that the host's kernel must have, as M(crossover.lab.tunnel) names
      them. One of each is made in a network namespace that nobody sees.
    type: list
    elements: str
    choices: [vxlan, vxlan-gpe, geneve, gre, gretap, ip6gre, ip6gretap, ipip, sit, ip6tnl,
              fou, gue, l2tp, wireguard, macsec, ovs, stt]
    default: []
  ike:
    description: IKE daemons that the host must have, by the names of M(crossover.lab.ike).
    type: list
    elements: str
    choices: [libreswan, strongswan]
    default: []
  clock_limit:
    description: Seconds between the clocks of host and controller above which a warning is given.
    type: float
    default: 0.5
attributes:
  check_mode:
    support: full
    description: Nothing is changed.
  diff_mode:
    support: none
    description: Nothing is changed.
"""

EXAMPLES = r"""
- name: Ensure the host can be worked on
  crossover.lab.preflight:
    tools: [netperf, netserver, ethtool]
"""

RETURN = r"""
missing:
  description: Those of O(tools) that the host does not have.
  type: list
  elements: str
  returned: always
tunnels_missing:
  description: Those of O(tunnels) that the host cannot have, each with the reason.
  type: dict
  returned: always
ike_missing:
  description: Those of O(ike) that the host does not have, each with the reason.
  type: dict
  returned: always
boot_id:
  description: The kernel's identity of this boot.
  type: str
  returned: always
clock_offset_s:
  description: Seconds by which the host's clock is ahead of the controller's.
  type: float
  returned: always
clock_uncertainty_s:
  description: Half of the round trip in which the clock was read.
  type: float
  returned: always
"""

import shutil

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.crossover.lab.plugins.module_utils import (
    ike_daemons,
    tunnel_probe,
)
from ansible_collections.crossover.lab.plugins.module_utils.host import record
from ansible_collections.crossover.lab.plugins.module_utils.host.run import environment
from ansible_collections.crossover.lab.plugins.module_utils.kernel_state.tunnel_types import NAMES


def main() -> None:
    """Entry point of the module."""
    module = AnsibleModule(
        argument_spec={
            "tools": {"type": "list", "elements": "str", "default": []},
            "tunnels": {
                "type": "list",
                "elements": "str",
                "choices": list(NAMES),
                "default": [],
            },
            "ike": {
                "type": "list",
                "elements": "str",
                "choices": list(ike_daemons.DAEMONS),
                "default": [],
            },
            "clock_limit": {"type": "float", "default": 0.5},
        },
        supports_check_mode=True,
    )
    path = environment()["PATH"]
    missing = [tool for tool in module.params["tools"] if shutil.which(tool, path=path) is None]
    module.exit_json(
        changed=False,
        missing=missing,
        tunnels_missing=tunnel_probe.missing(module.params["tunnels"]),
        ike_missing=ike_daemons.missing(module.params["ike"]),
        boot_id=record.boot_id(),
    )


if __name__ == "__main__":
    main()
