# SPDX-License-Identifier: GPL-2.0-or-later
"""Action: measure a forwarding group from the tester, trial by trial, with the module pktgen.

The tester may be two hosts, the device under test between them. Then the action runs on both: the
one whose frames are the first leads, the other does its part of each trial.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ansible import constants
from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase

from ansible_collections.crossover.lab.plugins.plugin_utils import (
    meeting,
    offline,  # noqa: F401 - makes the collector importable
)

if TYPE_CHECKING:
    from collector.forwarding.path import Path as NetPath

COLLECTION = "crossover.lab."
EVIDENCE, PKTGEN = "forwarding_evidence", "pktgen"
# Calls on the testers at once; what each returned, by host.
Together = Callable[[Mapping[str, tuple[str, Mapping[str, Any]]]], dict[str, Any]]


class ActionModule(ActionBase):  # type: ignore[misc]
    """Runs the searches on the controller; only trials run on the hosts."""

    TRANSFERS_FILES = False

    def run(self, tmp: Any = None, task_vars: Any = None) -> dict[str, Any]:
        """Returns ``forwarding`` (what was measured), and the testers' ``boot_ids`` before that.
        On a tester that does not lead, how many ``calls`` it did for the one that does."""
        from collector.errors import CrossoverError
        from collector.forwarding.path import find_path

        result: dict[str, Any] = super().run(tmp, task_vars)
        _, wanted = self.validate_argument_spec(
            {
                "run_folder": {"type": "path", "required": True},
                "group": {"type": "dict", "required": True},
                "host": {"type": "str", "required": True},
                "lab_kind": {"type": "str", "required": True},
                "processors": {"type": "dict", "required": True},
                "devices": {"type": "dict", "default": {}},
            }
        )
        group, host = wanted["group"], wanted["host"]

        def execute(name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
            return self._module(name, arguments, task_vars)

        try:
            path = find_path(group["testers"], group["dut"], wanted["devices"])
            place = _place(wanted["run_folder"], group)
            if host not in path.hosts:
                return result
            if host != path.hosts[0]:
                with meeting.following(place, path.hosts[0]) as line:
                    result["calls"] = meeting.serve(line, execute)
            else:
                with _testers(path, execute, place) as together:
                    result.update(_measure(path, together, wanted))
        except (CrossoverError, meeting.MeetingError) as error:
            raise AnsibleActionFail(str(error)) from error
        result["changed"] = True
        return result

    def _module(self, name: str, arguments: Mapping[str, Any], task_vars: Any) -> dict[str, Any]:
        found: dict[str, Any] = self._execute_module(
            module_name=f"{COLLECTION}{name}", module_args=dict(arguments), task_vars=task_vars
        )
        return found


def _place(run_folder: str, group: Mapping[str, Any]) -> str:
    """Where workers of one task meet: below Ansible's own folder, which its workers share."""
    what = f"{run_folder} {group['block']} {sorted(group['cells'])}"
    name = hashlib.sha256(what.encode()).hexdigest()[:12]
    return os.path.join(str(constants.DEFAULT_LOCAL_TMP), name)


@contextmanager
def _testers(path: NetPath, execute: meeting.Execute, place: str) -> Iterator[Together]:
    """Calls on the hosts of a path, which fail the task in the words of a module that failed."""

    def alone(calls: Mapping[str, tuple[str, Mapping[str, Any]]]) -> dict[str, Any]:
        return {host: execute(*call) for host, call in calls.items()}

    def told(ask: Callable[..., dict[str, Any]]) -> Together:
        def together(calls: Mapping[str, tuple[str, Mapping[str, Any]]]) -> dict[str, Any]:
            found = ask(calls)
            for host, answer in found.items():
                if answer.get("failed"):
                    where = f"{host}: {COLLECTION}{calls[host][0]}"
                    msg = answer.get("msg", "failed without a word")
                    raise AnsibleActionFail(f"{where}: {msg}")
            return found

        return together

    if not path.apart:
        yield told(alone)
        return
    host, other = path.hosts
    with meeting.leading(place, other) as line:
        yield told(meeting.Pair(host, execute, line, other).together)


def _measure(path: NetPath, together: Together, wanted: Mapping[str, Any]) -> dict[str, Any]:
    """What was measured, and the boots in which the testers did it."""
    from collector.forwarding import apart
    from collector.forwarding.bench import Bench
    from collector.run.forwarding_group import Raw, known_capacity, remember_capacity
    from collector.run.forwarding_pace import keeps_pace

    group, folder = wanted["group"], Path(wanted["run_folder"])
    near = path.hosts[0]
    devices: dict[str, list[str]] = {}
    for port in (path.first, path.second):
        devices.setdefault(port.host, []).append(port.device)
    said = together({host: (EVIDENCE, {"devices": names}) for host, names in devices.items()})
    boot_ids = {host: str(said[host]["evidence"]["boot_id"]) for host in path.hosts}

    def trial(asked: Mapping[str, Any]) -> Mapping[str, Any]:
        if path.apart:
            return apart.measure(asked, together)
        found: Mapping[str, Any] = together({near: (PKTGEN, asked)})[near]["trial"]
        return found

    bench = Bench(
        path,
        trial,
        Raw(folder, group["block"], group["cells"]).keep,
        known_capacity(folder, boot_ids.values()),
        lambda direction: keeps_pace(
            path, direction, wanted["processors"], wanted["lab_kind"], os.cpu_count() or 1
        ),
    )
    found = bench.measure(group)
    remember_capacity(folder, boot_ids.values(), bench.capacity)
    return {"forwarding": found, "boot_ids": boot_ids}
