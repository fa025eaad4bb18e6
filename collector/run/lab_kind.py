"""Which kind of lab an inventory means, and what that kind cannot do.

The kinds are those of a plan: ``guests``, ``netns``, and ``hardware`` for hosts of the user's own.
What a kind cannot do is told before anything starts: a configuration is skipped with the reason,
a matrix whose baseline is such a one is refused.
"""

from __future__ import annotations

from pathlib import Path

import yaml

from collector.errors import UsageError
from collector.matrix.matrix import ConfigurationSpec, Matrix
from collector.matrix.skips import keying_of, skipping

LAB_FILE = "lab.yml"
GUESTS, NETNS, HARDWARE = "guests", "netns", "hardware"
_PLUGINS = {"crossover.lab.qemu_lab": GUESTS, "crossover.lab.netns_lab": NETNS}
_INSTEAD = "use the guests of inventories/qemu or real machines"


def kind_of(inventory: str) -> str:
    """The kind of lab of an inventory's folder, by the plugin that its ``lab.yml`` names."""
    try:
        document = yaml.safe_load((Path(inventory) / LAB_FILE).read_text(encoding="utf-8"))
    except (OSError, yaml.YAMLError):
        return HARDWARE  # the inventory of somebody's own hosts; Ansible tells what is wrong in it
    plugin = document.get("plugin") if isinstance(document, dict) else None
    return _PLUGINS.get(str(plugin), HARDWARE)


def cannot(kind: str, item: ConfigurationSpec) -> str | None:
    """Why a lab of this kind cannot have a configuration, None if it can."""
    if kind != NETNS:
        return None
    if item.kernel is not None:
        return f"kernel {item.kernel}: hosts of a netns lab run this machine's; {_INSTEAD}"
    if "cipso" in item.subjects:
        return (
            "NetLabel's maps are one for the whole kernel, and hosts of a netns lab share this"
            f" machine's; {_INSTEAD}"
        )
    if item.label is not None:
        return (
            f"label {item.label}: hosts of a netns lab share this machine's kernel and have no"
            f" SELinux policy of their own; {_INSTEAD}"
        )
    keying = keying_of(item)
    if keying is not None:
        return (
            f"keying {keying}: an IKE daemon's files are the machine's own, which hosts of a netns"
            f" lab share; {_INSTEAD}, or keying manual"
        )
    return None


def for_kernels(kind: str, kernels: str | None) -> None:
    """Raises UsageError for ``--kernels`` where hosts cannot boot any. ``none`` is no kernel."""
    if kind == NETNS and kernels not in (None, "", "none"):
        raise UsageError(
            f"--kernels {kernels}: hosts of a netns lab run this machine's kernel; {_INSTEAD}"
        )


def for_stress(kind: str) -> None:
    """Raises UsageError where streams cannot outlive the connection that starts them."""
    if kind == NETNS:
        raise UsageError(
            "stress: systemd keeps the streams of a stress run alive, and hosts of a netns lab run"
            f" none; {_INSTEAD}"
        )


def for_kind(matrix: Matrix, kind: str) -> Matrix:
    """The matrix with what this kind of lab cannot do marked as skipped. Raises UsageError when
    that is its baseline, without which nothing can be compared."""
    return skipping(matrix, lambda item: cannot(kind, item), f"in a {kind} lab")
