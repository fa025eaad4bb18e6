"""Hosts that are namespaces of a machine (the netns lab): what is one for all of it stays.

The lab itself makes those settings read-only in its hosts; this is for saying so before trying.
"""

from __future__ import annotations

from pathlib import Path
from typing import Optional

# The lab writes its own and the host's name there (module_utils/lab/netns/view.py, MARK).
MARK = Path("/run/crossover-lab-host")


def lab_host(mark: Path = MARK) -> Optional[str]:
    """``LAB/NODE`` when this host is a namespace of a machine that others use too, else None."""
    try:
        return mark.read_text().strip()
    except FileNotFoundError:
        return None


def refusal(what: str, mark: Path = MARK) -> Optional[str]:
    """Why ``what``, one for a whole machine, cannot be had on this host; None if it can."""
    host = lab_host(mark)
    if host is None:
        return None
    return (
        f"{what}: this host ({host}) is a set of namespaces on a machine, and that is one for the "
        "whole machine; wanted it set on the machine itself, or a lab of guests or real hosts"
    )
