# SPDX-License-Identifier: GPL-2.0-or-later
"""A watch on a host that has booted a kernel once: without a confirmation it reboots.

systemd itself does it, from the first moment of a boot whose command line has our word: neither a
network nor a login is needed, and it cannot outlive the boot. A kernel that does not reach systemd
panics (``panic=`` on the same command line) or hangs, which only a power switch ends.
"""

from __future__ import annotations

from pathlib import Path

from .errors import HostError
from .kernel_entry import TOKEN_WORD
from .run import Run

UNIT = "crossover-kernel-boot.service"
UNIT_FILE = f"etc/systemd/system/{UNIT}"
WANTED_BY = f"etc/systemd/system/sysinit.target.wants/{UNIT}"
SYSTEMD = "run/systemd/system"


def unit(timeout_s: int) -> str:
    """The unit's text. It fails when its time is over, and a failure reboots; ended before, it
    has succeeded."""
    return (
        "[Unit]\n"
        "Description=Back to the former kernel unless this boot is confirmed\n"
        "DefaultDependencies=no\n"
        "Conflicts=shutdown.target\n"
        "Before=shutdown.target\n"
        f"ConditionKernelCommandLine={TOKEN_WORD}\n"
        "FailureAction=reboot-force\n"
        "\n"
        "[Service]\n"
        "Type=simple\n"
        "ExecStart=/bin/sleep infinity\n"
        f"RuntimeMaxSec={timeout_s}\n"
    )


def require_systemd(root: Path) -> None:
    """HostError on a host that nothing could bring back."""
    if not (root / SYSTEMD).is_dir():
        raise HostError(
            "kernel boot: this host does not run systemd; wanted one, because the host itself must"
            " go back to its former kernel when nobody can reach it"
        )


def install(root: Path, timeout_s: int) -> None:
    """Put the unit in place for the boots to come."""
    file, link = root / UNIT_FILE, root / WANTED_BY
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(unit(timeout_s))
    link.parent.mkdir(parents=True, exist_ok=True)
    link.unlink(missing_ok=True)
    link.symlink_to(f"../{UNIT}")


def remove(root: Path) -> None:
    """Take the unit away."""
    for path in (root / WANTED_BY, root / UNIT_FILE):
        path.unlink(missing_ok=True)


def active(run: Run) -> bool:
    """Whether the watch is on."""
    return run(["systemctl", "is-active", "--quiet", UNIT])[0] == 0


def call_off(run: Run) -> None:
    """End the watch of this boot. HostError if it goes on."""
    _code, _out, err = run(["systemctl", "stop", UNIT])
    if active(run):
        raise HostError(f"{UNIT}: cannot be stopped: {err.strip() or 'no message'}")
