"""Whether a generator sends as fast with a device in the way as without one."""

from __future__ import annotations

from collections.abc import Mapping

from collector.forwarding.path import Path
from collector.run.lab_kind import GUESTS, NETNS


def keeps_pace(
    path: Path, direction: str, processors: Mapping[str, int], lab_kind: str, here: int
) -> bool:
    """Whether nothing but the device can slow the generator down once frames come through.

    ``processors`` are those of each host, by name; ``here`` those of the controller, on which the
    hosts of a lab run. A tester that sends and receives needs one for either; hosts that share
    processors take them from each other.
    """
    if lab_kind == NETNS or (lab_kind == GUESTS and sum(processors.values()) > here):
        return False
    if path.apart and direction == "unidirectional":
        return True
    return all(processors[host] > 1 for host in path.hosts)
