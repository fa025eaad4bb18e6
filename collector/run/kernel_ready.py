"""Which kernels a run can boot: those that are built, packages fetched on the way, and of the rest
why not."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from collector.errors import CrossoverError
from collector.kernels import build
from collector.kernels.artifact import Artifact
from collector.kernels.entry import Entry
from collector.kernels.errors import KernelError
from collector.kernels.records import effort_of
from collector.matrix.kernels import Missing
from collector.run.kernel_entries import find_entry
from collector.run.lab_kind import HARDWARE

# Labs whose hosts share this machine's kernel.
WITHOUT_KERNELS = ("netns", "exact")
FOR_GUESTS = (
    "it has drivers for virtual machines only; on hosts of your own --kernels names what they boot"
    " (none: nothing)"
)
# Measured (docs/performance.md): two cores, small configuration.
USUAL_BUILD_S = 600.0

Maker = Callable[[Entry], Artifact]


@dataclass(frozen=True, slots=True)
class Ready:
    """The kernels of a run by name: what is there, and why the others are not."""

    artifacts: dict[str, Artifact]
    missing: dict[str, Missing]


def build_command(name: str) -> str:
    """The command that makes a kernel."""
    return f"crossover kernel build {name}"


def make_silently(entry: Entry) -> Artifact:
    """Make a kernel without telling what is done. Raises CrossoverError."""
    try:
        return build.ensure(entry, lambda _what, _done, _total: None)[1]
    except KernelError as error:
        raise CrossoverError(str(error)) from error


def ready(
    names: Iterable[str],
    lab_kind: str,
    compile_: bool,
    make: Maker = make_silently,
    implied: bool = False,
) -> Ready:
    """Look the kernels up, fetch packages, and compile sources only if asked to. ``implied``: only
    the matrix names them, so that real machines are not booted into what has no drivers for them.

    Raises CrossoverError for a name that does not exist, or a kernel that cannot be made though it
    was to be.
    """
    found = Ready({}, {})
    for name in names:
        entry = find_entry(name)
        if lab_kind in WITHOUT_KERNELS:
            reason = f"a lab of kind {lab_kind} boots no kernel of its own"
            found.missing[name] = Missing(reason, None)
            continue
        if implied and entry.virtual and lab_kind == HARDWARE:
            found.missing[name] = Missing(FOR_GUESTS, None)
            continue
        known = build.status(entry)
        if known.artifact is not None:
            found.artifacts[name] = known.artifact
        elif compile_ or entry.kind != "source":
            found.artifacts[name] = make(entry)
        else:
            found.missing[name] = not_built(entry, known.reason)
    return found


def not_built(entry: Entry, reason: str) -> Missing:
    """A kernel that would have to be compiled."""
    known = effort_of(entry.name)
    return Missing(reason, known.seconds if known else USUAL_BUILD_S)
