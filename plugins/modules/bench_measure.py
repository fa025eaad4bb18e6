#!/usr/bin/python
# SPDX-License-Identifier: GPL-2.0-or-later
"""Ansible module: prove a path, warm it up and measure it."""

from __future__ import annotations

DOCUMENTATION = r"""
module: bench_measure
short_description: Prove what a path carries, warm it up, run the measuring tools over it
version_added: 0.1.0
description:
  - Runs on the sending host. The probe's client, under the label of the measured processes,
    makes one connection and one datagram while the device is captured; then it warms the path
    up; then the tools run one after another, their output untouched.
  - Judges nothing. What it returns is evidence; the controller compares it with what was declared.
author: Crossover developers
options:
  device:
    description: Device of the test link.
    type: str
    required: true
  client:
    description: Own address on the test link.
    type: str
    required: true
  server:
    description: The far end's address on the test link.
    type: str
    required: true
  port:
    description: TCP and UDP port of the probe.
    type: int
    default: 12900
  capture:
    description: What is captured meanwhile, the probe's own packets and ESP, or every frame.
    type: str
    choices: [flow, all]
    default: flow
  label:
    description: SELinux level to run under; without it the level of the connection.
    type: str
  payload_bytes:
    description: UDP payload that must just fit.
    type: int
    required: true
  warm_up:
    description: Longest warm-up in seconds; ends earlier once three windows agree within 5 %.
    type: float
    default: 2.0
  commands:
    description: The measuring commands in order.
    type: list
    elements: dict
    required: true
    suboptions:
      cell_id:
        description: The cell that the command belongs to.
        type: str
        required: true
      argv:
        description: The command line, without what sets the label.
        type: list
        elements: str
        required: true
      timeout:
        description: Seconds after which it counts as hanging.
        type: float
        required: true
      sessions:
        description:
          - How many copies run at once. Their output is kept apart, and the window that all of
            them ran through is found from netperf's interim results (C(-D)), which the command
            must ask for.
        type: int
      window:
        description: The window that they must share.
        type: dict
        suboptions:
          settle_s:
            description: Seconds between the last session's begin and the window's.
            type: float
            required: true
          wanted_s:
            description: Length of the window in seconds.
            type: float
            required: true
          start_s:
            description:
              - Seconds that the sessions are given to set up. C(@wait) in the command becomes what
                is left of them for each session.
            type: int
            default: 0
          run_s:
            description: Seconds that each then runs; C(@length) becomes this and the wait.
            type: int
            default: 0
          interrupt:
            description:
              - Whether they are told to end (SIGINT) when this is over. netperf finishes then as if
                its time were up, where its own end keeps the time.
            type: bool
            default: false
  sampling:
    description: How the CPU of this host is sampled while the commands run; without it it is not.
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
attributes:
  check_mode:
    support: none
    description: A measurement cannot be predicted.
  diff_mode:
    support: none
    description: Nothing lasting is changed.
"""

EXAMPLES = r"""
- name: Measure the path
  crossover.lab.bench_measure:
    device: eth1
    client: 198.18.0.1
    server: 198.18.0.2
    payload_bytes: 1472
    commands:
      - {cell_id: a1, argv: [netperf, -H, 198.18.0.2], timeout: 40}
"""

RETURN = r"""
probe:
  description: What the probe was told and saw; with C(error) if it did not get through.
  type: dict
  returned: always
pcap:
  description: The probe's packets, a capture file in base64.
  type: str
  returned: always
results:
  description:
    - One entry a command; cell_id, argv, rc, stdout, stderr, started_at, elapsed_s.
    - With several sessions, in place of stdout and stderr, sessions, packed (what each wrote),
      window (start and end, seconds since 1970) or window_error, and cpu (the first and the last
      reading of /proc/stat within the window, or error).
  type: list
  elements: dict
  returned: always
windows:
  description: The windows by the server's clock and how far they may be wrong, for
    M(crossover.lab.bench_peer).
  type: list
  elements: dict
  returned: always
denials:
  description: Raw lines of AVC denials on this host meanwhile.
  type: list
  elements: str
  returned: always
identity:
  description: Kernel, boot id and context of the host.
  type: dict
  returned: always
"""

import base64
import json
import subprocess
import tempfile
from typing import Any, Dict, List, Tuple

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.crossover.lab.plugins.module_utils import (
    audit,
    bench_commands,
    cpu_sampling,
    labelled,
    probe,
)
from ansible_collections.crossover.lab.plugins.module_utils.capture import Capture, pcap
from ansible_collections.crossover.lab.plugins.module_utils.host_identity import booted

PROBE_SECONDS = 30.0


def _probe(wanted: Dict[str, Any]) -> Tuple[Dict[str, Any], bytes]:
    """Run the probe's client; what it printed, and the captured packets as a file."""
    program = labelled.placed(probe)
    argv = ["/usr/bin/python3", "-I", "-S", program, "client", wanted["server"]]
    argv += [str(wanted["port"]), wanted["client"], str(wanted["payload_bytes"])]
    argv += [str(wanted["warm_up"])]
    port = wanted["port"] if wanted["capture"] == "flow" else 0
    with Capture(wanted["device"], port) as capture:
        child = subprocess.Popen(
            labelled.under(wanted["label"], argv),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert child.stdout is not None
        # The first line ends the part that is evidence; the warm-up is not captured.
        first = child.stdout.readline()
        capture.stop()
        try:
            rest, errors = child.communicate(timeout=PROBE_SECONDS + wanted["warm_up"])
        except subprocess.TimeoutExpired:
            child.kill()
            rest, errors = child.communicate()
            errors += "\nthe probe hung"
    found: Dict[str, Any] = {}
    for line in (first, *rest.splitlines()):
        try:
            found.update(json.loads(line))
        except ValueError:
            continue
    if child.returncode and "error" not in found:
        found["error"] = errors.strip() or f"the probe ended with {child.returncode}"
    return found, pcap(capture.packets)


def _measure(wanted: Dict[str, Any]) -> List[Dict[str, Any]]:
    """Run the commands one after another; the CPU is sampled meanwhile if one wants it."""
    label = wanted["label"]
    sampling = wanted["sampling"]
    results: List[Dict[str, Any]] = []
    sampler = None
    if sampling:
        sampler = cpu_sampling.start(sampling["period_s"], sampling["lifetime_s"])
    try:
        with tempfile.TemporaryDirectory(dir=labelled.run_dir()) as folder:
            for command in wanted["commands"]:
                run = bench_commands.run_sessions if command["sessions"] else bench_commands.run_one
                results.append(run(command, label, folder))
    finally:
        if sampler is not None:
            sampler.terminate()
            sampler.wait()
    if sampler is not None:
        bench_commands.add_cpu(results, cpu_sampling.collect())
    return results


def main() -> None:
    """Entry point of the module."""
    module = AnsibleModule(
        argument_spec={
            "device": {"type": "str", "required": True},
            "client": {"type": "str", "required": True},
            "server": {"type": "str", "required": True},
            "port": {"type": "int", "default": 12900},
            "capture": {"type": "str", "choices": ["flow", "all"], "default": "flow"},
            "label": {"type": "str"},
            "payload_bytes": {"type": "int", "required": True},
            "warm_up": {"type": "float", "default": 2.0},
            "commands": {
                "type": "list",
                "elements": "dict",
                "required": True,
                "options": {
                    "cell_id": {"type": "str", "required": True},
                    "argv": {"type": "list", "elements": "str", "required": True},
                    "timeout": {"type": "float", "required": True},
                    "sessions": {"type": "int"},
                    "window": {
                        "type": "dict",
                        "options": {
                            "settle_s": {"type": "float", "required": True},
                            "wanted_s": {"type": "float", "required": True},
                            "start_s": {"type": "int", "default": 0},
                            "run_s": {"type": "int", "default": 0},
                            "interrupt": {"type": "bool", "default": False},
                        },
                    },
                },
                "required_together": [["sessions", "window"]],
            },
            "sampling": {
                "type": "dict",
                "options": {
                    "period_s": {"type": "float", "required": True},
                    "lifetime_s": {"type": "float", "required": True},
                },
            },
        },
    )
    wanted = module.params
    where = audit.position()
    try:
        seen, captured = _probe(wanted)
    except OSError as error:
        module.fail_json(msg=f"the probe could not run on {wanted['device']}: {error}")
    results: List[Dict[str, Any]] = []
    if "error" not in seen:
        try:
            results = _measure(wanted)
        except OSError as error:
            module.fail_json(msg=f"the commands could not run: {error}")
    module.exit_json(
        changed=True,
        probe=seen,
        pcap=base64.b64encode(captured).decode(),
        results=results,
        windows=bench_commands.far_windows(results, seen),
        denials=audit.denials_since(where),
        identity=booted(),
    )


if __name__ == "__main__":
    main()
