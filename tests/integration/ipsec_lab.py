"""Plays of the role ipsec and of its evidence against the lab, for the tests beside this file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml

from collector.run.runner import strategy_environment as environment

CLIENT4, SERVER4 = "198.18.0.1", "198.18.0.2"
CLIENT6, SERVER6 = "2001:db8:18::1", "2001:db8:18::2"
ENDS4, ENDS6 = [CLIENT4, SERVER4], [CLIENT6, SERVER6]
LEVEL = "s0:c0.c239"
# Generous: an emulated guest shares its processor with other labs.
GUARD_S = 120
WAIT_S = 240
LIMIT_S = 1200


def run_tasks(
    lab: Any, folder: Path, tasks: list[dict[str, Any]], *arguments: str, **variables: Any
) -> dict[str, dict[str, Any]]:
    """Run tasks on both hosts; what each registered (its ``register``), by host and name."""
    names = [task["register"] for task in tasks if "register" in task]
    outcome = ", ".join(f"'{name}': {name} | default({{}})" for name in names)
    steps = [*tasks]
    steps.append(
        {
            "ansible.builtin.copy": {
                "content": "{{ {" + outcome + "} | to_json }}",
                "dest": str(folder) + "/{{ inventory_hostname }}.json",
                "mode": "0600",
            },
            "delegate_to": "localhost",
        }
    )
    play = folder / "play.yml"
    settings = {
        "ipsec_guard_timeout": GUARD_S,
        "ipsec_wait": WAIT_S,
        "ipsec_level": LEVEL,
        **variables,
    }
    play.write_text(yaml.safe_dump([{"hosts": "measured", "vars": settings, "tasks": steps}]))
    done = lab.playbook(play, *arguments, limit_s=LIMIT_S, **environment())
    assert done.returncode == 0, done.stdout + done.stderr
    return {
        host: json.loads((folder / f"{host}.json").read_text()) for host in ("client", "server")
    }


def role(**variables: Any) -> dict[str, Any]:
    """A task that runs the role."""
    return {"ansible.builtin.include_role": {"name": "crossover.lab.ipsec"}, "vars": variables}


def command(host: str, *argv: str, **more: Any) -> dict[str, Any]:
    """A task that runs a command on one host, whatever comes of it."""
    return {
        "ansible.builtin.command": {"argv": list(argv)},
        "when": f"inventory_hostname == '{host}'",
        "failed_when": False,
        **more,
    }


def observed(traffic: list[dict[str, Any]], **arguments: Any) -> list[dict[str, Any]]:
    """Tasks that read the evidence around some traffic; the last registers ``seen``."""
    return [
        {"crossover.lab.ipsec_evidence": {}, "register": "before"},
        *traffic,
        {
            "crossover.lab.ipsec_evidence": {
                "since": "{{ before.evidence }}",
                "level": LEVEL,
                **arguments,
            },
            "register": "seen",
        },
    ]


def causes(seen: dict[str, Any]) -> list[str]:
    """The causes of an evidence, in order."""
    return [reason["cause"] for reason in seen["explain"]]
