#!/usr/bin/python
# SPDX-License-Identifier: GPL-2.0-or-later
"""Ansible module: netserver, netperf's other end."""

from __future__ import annotations

DOCUMENTATION = r"""
module: netserver
short_description: Run netperf's server on declared addresses, under a declared label
version_added: 0.1.0
description:
  - Starts one netserver an address, in the foreground and as the leader of its own session, and
    remembers it by process number and start time under C(/run/crossover/netserver).
  - Only a server that this module started is ever stopped. Somebody else's process on the port is
    an error that names it; so is the distribution's C(netperf.service).
  - With O(state=started) the declared addresses are all the servers of this port that remain.
author: Crossover developers
options:
  state:
    description:
      - C(started) has exactly the declared servers of O(port), with exactly the declared label.
      - C(stopped) ends those on O(port), and on O(addresses) only if some are given.
      - C(absent) ends every netserver that this module started on the host.
    type: str
    choices: [started, stopped, absent]
    default: started
  addresses:
    description:
      - IP addresses to listen on, one process each. Name an unspecified address to listen
        everywhere.
    type: list
    elements: str
    default: []
  port:
    description: TCP port of the control connection.
    type: int
    default: 12865
  selinux_user:
    description: SELinux user of the process; empty keeps that of the connection.
    type: str
    default: ""
  selinux_role:
    description: SELinux role of the process; empty keeps that of the connection.
    type: str
    default: ""
  selinux_type:
    description: SELinux type of the process; empty keeps that of the connection.
    type: str
    default: ""
  selinux_range:
    description:
      - SELinux level or range of the process, for example C(s0:c0.c239). NetLabel sends the low
        level, so a measured label is a single level. Empty keeps that of the connection.
    type: str
    default: ""
  netns:
    description: Network namespace (see ip-netns(8)) to run in; empty is that of the connection.
    type: str
    default: ""
  timeout:
    description: Seconds for a server to listen, and for one to end.
    type: int
    default: 10
attributes:
  check_mode:
    support: full
    description: Says what would be started and stopped.
  diff_mode:
    support: full
    description: The servers before and after.
"""

EXAMPLES = r"""
- name: Ensure netserver answers on the test address under the measured label
  crossover.lab.netserver:
    addresses: [198.18.0.2]
    selinux_range: s0:c0.c239

- name: Ensure no netserver of ours is left
  crossover.lab.netserver:
    state: absent
"""

RETURN = r"""
servers:
  description: The servers that run now, with address, port, pid, start_ticks, argv and context.
  type: list
  elements: dict
  returned: always
stopped:
  description: The servers that were ended.
  type: list
  elements: dict
  returned: always
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.crossover.lab.plugins.module_utils.host import netserver
from ansible_collections.crossover.lab.plugins.module_utils.host.errors import BusyError, HostError

EX_TEMPFAIL = 75


def _wishes(params):
    if params["state"] != "started":
        return []
    if not params["addresses"]:
        raise HostError("addresses: found none; wanted at least one for state=started")
    options = []
    for name in ("user", "role", "type", "range"):
        if params[f"selinux_{name}"]:
            options += [f"--{name}", params[f"selinux_{name}"]]
    return [
        netserver.wish(address, params["port"], tuple(options), params["netns"])
        for address in params["addresses"]
    ]


def _concerned(params, server):
    if params["state"] == "absent":
        return True
    if server.port != params["port"] or server.netns != params["netns"]:
        return False
    return (
        params["state"] == "started"
        or not params["addresses"]
        or server.address
        in [netserver.wish(address, server.port).address for address in params["addresses"]]
    )


def _text(servers):
    return "".join(f"{' '.join(argv)}\n" for argv in sorted(servers))


def _apply(module):
    params, timeout = module.params, module.params["timeout"]
    wishes = _wishes(params)
    argvs = [tuple(wanted.argv) for wanted in wishes]
    ours = netserver.recorded()
    concerned = {path: server for path, server in ours.items() if _concerned(params, server)}
    kept, leaving = {}, {}
    for path, server in concerned.items():
        good = server.argv in argvs and netserver.runs(server) and netserver.listening(server)
        (kept if good else leaving)[path] = server
    alive = [server for server in leaving.values() if netserver.runs(server)]
    present = {server.argv for server in kept.values()}
    coming = [wanted for wanted in wishes if tuple(wanted.argv) not in present]
    for wanted in coming:
        taken = netserver.in_the_way(wanted, ours)
        if taken:
            raise BusyError(f"netserver cannot start: {taken}")
    servers = list(kept.values())
    if not module.check_mode:
        for path, server in leaving.items():
            netserver.stop(server, path, timeout)
        for server in alive:
            netserver.wait_free(server, timeout)
        servers += [netserver.start(wanted, timeout) for wanted in coming]
    before = present | {server.argv for server in alive}
    after = present | {tuple(wanted.argv) for wanted in coming}
    module.exit_json(
        changed=bool(coming or alive),
        servers=[server.as_dict() for server in servers],
        stopped=[server.as_dict() for server in alive],
        diff={"before": _text(before), "after": _text(after)},
    )


def main() -> None:
    """Entry point of the module."""
    text = {"type": "str", "default": ""}
    module = AnsibleModule(
        argument_spec={
            "state": {
                "type": "str",
                "choices": ["started", "stopped", "absent"],
                "default": "started",
            },
            "addresses": {"type": "list", "elements": "str", "default": []},
            "port": {"type": "int", "default": 12865},
            "selinux_user": text,
            "selinux_role": text,
            "selinux_type": text,
            "selinux_range": text,
            "netns": text,
            "timeout": {"type": "int", "default": 10},
        },
        supports_check_mode=True,
    )
    try:
        _apply(module)
    except HostError as error:
        code = EX_TEMPFAIL if isinstance(error, BusyError) else 1
        module.fail_json(msg=str(error), exit_code=code)


if __name__ == "__main__":
    main()
