#!/usr/bin/python
# SPDX-License-Identifier: GPL-2.0-or-later
"""Ansible module: the far end of a measured path."""

from __future__ import annotations

DOCUMENTATION = r"""
module: bench_peer
short_description: Stand ready at the far end of a measured path, and say what was denied there
version_added: 0.1.0
description:
  - C(started) runs netserver and the probe's server under the label of the measured processes
    and notes where the audit log ends; C(stopped) ends both and returns the AVC denials since.
author: Crossover developers
options:
  state:
    description: Whether the probe's server runs.
    type: str
    choices: [started, stopped]
    default: started
  address:
    description: Address of the test link that the probe listens on.
    type: str
    required: true
  port:
    description: TCP and UDP port of the probe.
    type: int
    default: 12900
  label:
    description: SELinux level to run under; without it the level of the connection.
    type: str
  netserver_address:
    description: Address that netserver listens on for control connections; without it none runs.
    type: str
  netserver_port:
    description: Port of netserver's control connections.
    type: int
    default: 12865
  capture:
    description: What is captured there, the probe's own packets and ESP, or every frame.
    type: str
    choices: [flow, all]
    default: flow
  capture_device:
    description: Device whose packets of the probe are captured; without it none are.
    type: str
  lifetime:
    description: Seconds without a client after which a forgotten server ends by itself.
    type: int
    default: 600
  audit:
    description: For C(stopped), the position that C(started) returned.
    type: dict
  sampling:
    description: For C(started), how the CPU of this host is sampled; without it it is not.
    type: dict
    suboptions:
      period_s:
        description: Seconds between two samples.
        type: float
        required: true
      lifetime_s:
        description: Seconds after which a forgotten sampler ends by itself.
        type: float
        required: true
  sessions:
    description: The most netperf sessions that come at once, to say whether there is room for them.
    type: int
    default: 1
  windows:
    description: For C(stopped), windows by this host's clock whose CPU readings are wanted.
    type: list
    elements: dict
    default: []
    suboptions:
      cell_id:
        description: The cell that the window belongs to.
        type: str
        required: true
      start:
        description: Its begin, seconds since 1970.
        type: float
        required: true
      end:
        description: Its end.
        type: float
        required: true
      uncertainty_s:
        description: How far both may be wrong.
        type: float
        required: true
  listen_drops:
    description: For C(stopped), the count that C(started) returned.
    type: int
attributes:
  check_mode:
    support: none
    description: A measurement cannot be predicted.
  diff_mode:
    support: none
    description: Nothing lasting is changed.
"""

EXAMPLES = r"""
- name: Ensure the probe listens
  crossover.lab.bench_peer:
    address: 198.18.0.2
    label: s0:c0.c239
"""

RETURN = r"""
audit:
  description: Where the audit log ended when the server started.
  type: dict
  returned: when started
denials:
  description: Raw lines of AVC denials since then.
  type: list
  elements: str
  returned: when stopped
netserver:
  description: The netserver that runs; its argv, pid, label.
  type: dict
  returned: when started with O(netserver_address)
cpu:
  description: By cell, the first and the last reading of /proc/stat within its window, or error.
  type: dict
  returned: when stopped
listen_drops:
  description: Connections that this host's listeners dropped; since C(started), when stopped.
  type: int
  returned: always
no_room:
  description: Why this host cannot run so many sessions; null if nothing is known against it.
  type: str
  returned: always
pcap:
  description: Packets of the probe on O(capture_device), a capture file in base64.
  type: str
  returned: when stopped
identity:
  description: Kernel, boot id and context of the host.
  type: dict
  returned: always
"""

import base64
import json
import os
import subprocess
import time
from typing import Any, Dict, List, Optional

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.crossover.lab.plugins.module_utils import (
    audit,
    bench_commands,
    capture,
    cpu_sampling,
    labelled,
    probe,
)
from ansible_collections.crossover.lab.plugins.module_utils.host import listeners, netserver
from ansible_collections.crossover.lab.plugins.module_utils.host.errors import HostError
from ansible_collections.crossover.lab.plugins.module_utils.host_identity import booted
from ansible_collections.crossover.lab.plugins.module_utils.lab.process import Process, identify
from ansible_collections.crossover.lab.plugins.module_utils.sessions.cpu import Reading
from ansible_collections.crossover.lab.plugins.module_utils.sessions.launch import room_for
from ansible_collections.crossover.lab.plugins.module_utils.sessions.window import Window

PID_FILE = os.path.join(labelled.RUN_DIR, "probe.json")
CAPTURE_PID_FILE = os.path.join(labelled.RUN_DIR, "capture.json")
SAMPLER_PID_FILE = os.path.join(labelled.RUN_DIR, "cpu.json")
CAPTURE_FILE = os.path.join(labelled.RUN_DIR, "capture.pcap")
LISTEN_SECONDS = 15.0
END_SECONDS = 5.0


def _previous(path: str) -> Optional[Process]:
    try:
        with open(path, encoding="utf-8") as handle:
            return Process(**json.load(handle))
    except (FileNotFoundError, ValueError, TypeError):
        return None


def _stop(port: int) -> bool:
    """End the probe's server and our netserver of that port; whether any was there."""
    acted = False
    for path, server in netserver.recorded().items():
        if server.port == port:
            netserver.stop(server, path, END_SECONDS)
            netserver.wait_free(server, END_SECONDS)
            acted = True
    for path in (PID_FILE, CAPTURE_PID_FILE, SAMPLER_PID_FILE):
        process = _previous(path)
        if process is not None:
            process.end(LISTEN_SECONDS)  # the capture still writes its file
            os.unlink(path)
            acted = True
    return acted


def _captured() -> str:
    """What was captured, a capture file in base64; empty if nothing was to be."""
    try:
        with open(CAPTURE_FILE, "rb") as handle:
            data = handle.read()
    except FileNotFoundError:
        return ""
    os.unlink(CAPTURE_FILE)
    return base64.b64encode(data).decode()


def _remember(path: str, pid: int) -> None:
    found = identify(pid)
    if found:
        with open(path, "w", encoding="utf-8") as handle:
            json.dump({"pid": found.pid, "started": found.started}, handle)


def _start_capture(wanted: Dict[str, Any]) -> None:
    if not wanted["capture_device"]:
        return
    program = labelled.placed(capture)
    if os.path.exists(CAPTURE_FILE):
        os.unlink(CAPTURE_FILE)
    argv = ["/usr/bin/python3", "-I", "-S", program, wanted["capture_device"]]
    port = wanted["port"] if wanted["capture"] == "flow" else 0
    argv += [str(port), CAPTURE_FILE, str(wanted["lifetime"])]
    with open(os.path.join(labelled.RUN_DIR, "capture.log"), "w+b") as sink:
        child = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=sink,
            start_new_session=True,
            cwd="/",
        )
        deadline = time.monotonic() + LISTEN_SECONDS
        while not os.path.exists(CAPTURE_FILE):
            if child.poll() is not None or time.monotonic() > deadline:
                sink.seek(0)
                text = sink.read().decode(errors="replace").strip() or "no word from it"
                raise HostError(f"capture on {wanted['capture_device']} does not start: {text}")
            time.sleep(0.02)
    _remember(CAPTURE_PID_FILE, child.pid)


def _start_sampler(wanted: Dict[str, Any]) -> None:
    sampling = wanted["sampling"]
    if sampling:
        child = cpu_sampling.start(sampling["period_s"], sampling["lifetime_s"])
        _remember(SAMPLER_PID_FILE, child.pid)


def _cpu(windows: List[Dict[str, Any]]) -> Dict[str, Any]:
    """The CPU readings of the windows, by cell."""
    samples: List[Reading] = cpu_sampling.collect() if windows else []
    return {
        item["cell_id"]: bench_commands.cpu_of(
            samples, Window(item["start"], item["end"]), item["uncertainty_s"]
        )
        for item in windows
    }


def _start_netserver(wanted: Dict[str, Any]) -> Optional[Dict[str, Any]]:
    if not wanted["netserver_address"]:
        return None
    runcon = ("-l", wanted["label"]) if wanted["label"] else ()
    wish = netserver.wish(wanted["netserver_address"], wanted["netserver_port"], runcon)
    taken = netserver.in_the_way(wish, netserver.recorded())
    if taken:
        raise HostError(taken)
    return netserver.start(wish, LISTEN_SECONDS).as_dict()


def _listens(address: str, port: int) -> bool:
    """Whether the address has the port open, read from the kernel's table (no connection, which
    would be a first packet under the wrong label)."""
    table = "/proc/net/tcp6" if ":" in address else "/proc/net/tcp"
    wanted = f":{port:04X}"
    with open(table, encoding="ascii") as handle:
        return any(
            fields[1].endswith(wanted) and fields[3] == "0A"
            for fields in (line.split() for line in handle.readlines()[1:])
        )


def _start(module: AnsibleModule) -> None:
    wanted = module.params
    program = labelled.placed(probe)
    if _listens(wanted["address"], wanted["port"]):
        module.fail_json(
            msg=f"port {wanted['port']} of {wanted['address']} is taken by another program;"
            " wanted it free for the probe"
        )
    argv = ["/usr/bin/python3", "-I", "-S", program, "server", wanted["address"]]
    argv += [str(wanted["port"]), str(wanted["lifetime"])]
    log = os.path.join(labelled.RUN_DIR, "probe.log")
    with open(log, "wb") as sink:
        child = subprocess.Popen(
            labelled.under(wanted["label"], argv),
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=sink,
            start_new_session=True,
            cwd="/",
        )
    deadline = time.monotonic() + LISTEN_SECONDS
    while time.monotonic() < deadline:
        if child.poll() is not None:
            with open(log, encoding="utf-8", errors="replace") as handle:
                text = handle.read().strip() or "silently"
            module.fail_json(msg=f"the probe's server ended with {child.returncode}: {text}")
        if _listens(wanted["address"], wanted["port"]):
            _remember(PID_FILE, child.pid)
            return
        time.sleep(0.02)
    child.kill()
    child.wait()
    module.fail_json(
        msg=f"the probe's server did not listen on {wanted['address']} port {wanted['port']}"
        f" within {LISTEN_SECONDS:.0f} s"
    )


def main() -> None:
    """Entry point of the module."""
    module = AnsibleModule(
        argument_spec={
            "state": {"type": "str", "choices": ["started", "stopped"], "default": "started"},
            "address": {"type": "str", "required": True},
            "port": {"type": "int", "default": 12900},
            "label": {"type": "str"},
            "netserver_address": {"type": "str"},
            "netserver_port": {"type": "int", "default": 12865},
            "capture": {"type": "str", "choices": ["flow", "all"], "default": "flow"},
            "capture_device": {"type": "str"},
            "lifetime": {"type": "int", "default": 600},
            "audit": {"type": "dict"},
            "sampling": {
                "type": "dict",
                "options": {
                    "period_s": {"type": "float", "required": True},
                    "lifetime_s": {"type": "float", "required": True},
                },
            },
            "sessions": {"type": "int", "default": 1},
            "windows": {
                "type": "list",
                "elements": "dict",
                "default": [],
                "options": {
                    "cell_id": {"type": "str", "required": True},
                    "start": {"type": "float", "required": True},
                    "end": {"type": "float", "required": True},
                    "uncertainty_s": {"type": "float", "required": True},
                },
            },
            "listen_drops": {"type": "int"},
        },
    )
    try:
        stopped = _stop(module.params["netserver_port"])
        if module.params["state"] == "stopped":
            since = module.params["audit"]
            denials = audit.denials_since(since) if since else []
            drops = listeners.dropped() - (module.params["listen_drops"] or 0)
            module.exit_json(
                changed=stopped,
                denials=denials,
                pcap=_captured(),
                cpu=_cpu(module.params["windows"]),
                listen_drops=drops,
                no_room=room_for(module.params["sessions"]),
                identity=booted(),
            )
        where = audit.position()
        server = _start_netserver(module.params)
        _start_capture(module.params)
        _start_sampler(module.params)
        _start(module)
    except (HostError, OSError) as error:
        module.fail_json(msg=str(error))
    module.exit_json(
        changed=True,
        audit=where,
        netserver=server,
        listen_drops=listeners.dropped(),
        no_room=room_for(module.params["sessions"]),
        identity=booted(),
    )


if __name__ == "__main__":
    main()
