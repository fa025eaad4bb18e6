# SPDX-License-Identifier: GPL-2.0-or-later
"""What became of the last declaration of connections, for whoever asks later why nothing passes.

When connections are in force, the counters and the end of the audit log at that moment; when they
were refused, why. A later success replaces it; taking connections away keeps a refusal.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Dict, Optional

from . import audit, ipsec_host
from .host import record
from .host.errors import HostError
from .ipsec_host import IpsecError
from .xfrm_explain import Reason

FILE = Path("/run/crossover/ipsec-last.json")


def applied(keying: str, level: Optional[str]) -> None:
    """Connections are in force from now on, for processes of a level."""
    record.save(
        FILE,
        {
            "at": time.time(),
            "keying": keying,
            "level": level,
            "since": {"stat": ipsec_host.read_stat(), "audit": audit.position()},
        },
    )


def refused(keying: str, text: str, reasons: Sequence[Reason]) -> None:
    """Connections were refused, and nothing of them is left."""
    record.save(
        FILE,
        {
            "at": time.time(),
            "keying": keying,
            "refused": text,
            "explain": [reason.as_dict() for reason in reasons],
        },
    )


def changed(present: bool, keying: str, level: Optional[str]) -> None:
    """After a change: whether connections are in force now, or have been taken away."""
    if present:
        applied(keying, level)
        return
    last = read()
    if last is not None and "since" in last:
        record.forget(FILE)


def read() -> Optional[Dict[str, Any]]:
    """The last note, None if there is none since the boot. Raises :class:`IpsecError`."""
    try:
        return record.load(FILE)
    except HostError as error:
        raise IpsecError(str(error)) from error
