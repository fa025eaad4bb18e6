"""Starts and stops a lab as the module does, in a process of its own that tests may kill.

Prints a JSON object on success; on LabError its text on stderr, with exit code 75 if the lab is
busy and 1 otherwise.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

import yaml  # noqa: E402  # after the path to the project

from collector.lab import instance, qemu  # noqa: E402  # as above
from collector.lab.errors import LabError  # noqa: E402  # as above

TOPOLOGIES = ROOT / "roles" / "lab_qemu" / "files" / "topologies"


def wish(args: argparse.Namespace) -> instance.Wish:
    """The role's own defaults, and what the test wants otherwise."""
    return instance.Wish(
        name=args.name,
        topology=yaml.safe_load((TOPOLOGIES / "pair.yml").read_text(encoding="utf-8")),
        image=Path(args.image),
        cloud=args.cloud,
        cloud_packages=(),
        accelerator="auto",
        memory_mib=args.memory_mib,
        cpus=1,
        selinux="enforcing",
        append=args.append,
        restrict=True,
        boot_timeout_s=args.boot_timeout,
    )


def main(argv: Sequence[str]) -> int:
    """Entry point."""
    parser = argparse.ArgumentParser()
    parser.add_argument("verb", choices=["up", "down", "absent"])
    parser.add_argument("name")
    parser.add_argument("--image", default="")
    parser.add_argument("--cloud", action="store_true")
    parser.add_argument("--append", default="")
    parser.add_argument("--memory-mib", type=int, default=768)
    parser.add_argument("--boot-timeout", type=float, default=900)
    parser.add_argument("--first-port", type=int, help="the port that is tried first")
    parser.add_argument("--time", type=float, help="what this machine's clock says")
    args = parser.parse_args(argv)
    if args.first_port:
        ports = iter([args.first_port])
        free = qemu.free_port
        qemu.free_port = lambda: next(ports, None) or free()
    if args.time:
        instance.time.time = lambda: args.time
    try:
        if args.verb != "up":
            print(json.dumps({"changed": instance.down(args.name, forget=args.verb == "absent")}))
            return 0
        changed, lab = instance.up(wish(args))
    except LabError as error:
        print(error, file=sys.stderr)
        return 75 if error.busy else 1
    print(json.dumps({"changed": changed, "how": lab.how, "start_s": lab.start_s}))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
