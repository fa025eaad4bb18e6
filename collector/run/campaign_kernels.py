"""The kernels of a run in progress: decided when it is planned, booted group by group."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from collector.errors import InputError
from collector.kernels import artifact
from collector.kernels.artifact import Artifact
from collector.kernels.errors import KernelError
from collector.lab import state
from collector.lab.booting import own_loader
from collector.lab.wish import from_document
from collector.matrix.choice import Choice
from collector.matrix.kernels import (
    NONE,
    Missing,
    across,
    kernels_of,
    parse_kernels,
    settle,
)
from collector.matrix.matrix import Matrix
from collector.run.kernel_ready import Maker, Ready, make_silently, ready
from collector.run.plan import ALL, Group
from collector.runfolder.runfolder import Plan, Run


@dataclass(frozen=True, slots=True)
class Home:
    """What the hosts ran before: in the embedded lab the entry (None: the image's own), its folder
    and its boot; elsewhere nothing is known of it. ``by`` is who boots them: the lab, or (real
    machines, guests with a boot loader) the role ``kernel``."""

    kernel: str | None = None
    folder: str | None = None
    boot: int = 0
    by: str = "role"


def decide(
    matrix: Matrix,
    kernels: str | None,
    lab_kind: str,
    compile_: bool,
    choice: Choice = ALL,
    make: Maker = make_silently,
) -> tuple[Matrix, dict[str, Artifact]]:
    """The matrix with each configuration's kernel decided, and the kernels that it boots.

    ``kernels`` is the text of ``--kernels``. Packages are fetched by ``make``, sources compiled by
    it only with ``compile_``; what is missing otherwise is a reason to skip. Raises CrossoverError.
    """
    matrix = chosen(over(matrix, kernels), choice)
    names = kernels_of(matrix)
    if kernels == NONE:
        found = Ready(
            {}, dict.fromkeys(names, Missing("left out (--kernels none, as in the demo)", None))
        )
    else:
        found = ready(names, lab_kind, compile_, make, implied=not kernels)
    matrix = settled(matrix, found.missing)
    used = {item.kernel for item in matrix.configurations if item.skip is None}
    return matrix, {name: found.artifacts[name] for name in found.artifacts if name in used}


def over(matrix: Matrix, kernels: str | None) -> Matrix:
    """The matrix over the kernels of ``--kernels``, or without that over its own; as it is for
    none. Raises UsageError."""
    wanted = kernels or ",".join(matrix.kernels)
    return matrix if wanted in ("", NONE) else across(matrix, parse_kernels(wanted))


def chosen(matrix: Matrix, choice: Choice) -> Matrix:
    """The matrix in which a configuration that names a kernel and is not chosen counts as skipped:
    then nothing has to be held against it."""
    made = []
    for item in matrix.configurations:
        reasons = [choice.leaves_out(matrix, item.name, test.name) for test in matrix.tests]
        out = item.kernel is not None and item.skip is None and None not in reasons
        made.append(replace(item, skip=reasons[0]) if out else item)
    return replace(matrix, configurations=tuple(made))


def settled(matrix: Matrix, missing: Mapping[str, Missing]) -> Matrix:
    """The matrix without the kernels that cannot be booted. Raises InputError if that is the
    baseline's, without which nothing can be compared."""
    made = settle(matrix, missing)
    reason = next(item.skip for item in made.configurations if item.name == made.baseline)
    if reason is not None:
        wanted = "one that runs (--kernels none: on what the hosts run)"
        raise InputError(f"{made.file}: baseline {made.baseline}", reason, wanted)
    return made


def document(kernels: Mapping[str, Artifact]) -> dict[str, Any]:
    """The kernels as ``plan.json`` has them."""
    return {
        name: {
            "identity": item.identity,
            "release": item.release,
            "version": item.version,
            "config_sha256": item.config_sha256,
        }
        for name, item in kernels.items()
    }


def home_of(lab: Mapping[str, str]) -> Home:
    """What the hosts run now."""
    found = state.load(lab["name"]) if lab["kind"] == "guests" else None
    if found is None or not found.wish or own_loader(from_document(found.wish)):
        return Home()
    folder = found.wish["kernel"]
    return Home(found.kernel, None if folder is None else str(folder), found.boot, "lab")


def describe(plan: Plan, kernel: str | None, boot: int, home: Home) -> dict[str, Any] | None:
    """A boot with everything that the roles need of it; None in a run that boots nothing.

    Raises InputError if a kernel of the plan is gone meanwhile.
    """
    if not plan.kernels:
        return None
    if kernel is None:
        before = {"kernel": None, "index": boot, "folder": home.folder, "by": home.by}
        return {**before, "known": True}
    planned = plan.kernels[kernel]
    try:
        found = artifact.find(planned.identity)
    except KernelError as error:
        raise InputError(plan.run_id, str(error), "the kernels that it was planned with") from error
    if found is None:
        raise InputError(
            f"{plan.run_id}: kernel {kernel}",
            f"no built kernel {planned.identity}",
            "the kernels that it was planned with",
        )
    return {
        "kernel": kernel,
        "index": boot,
        "folder": str(found.folder),
        "by": home.by,
        "release": planned.release,
        "version": planned.version,
        "config_sha256": planned.config_sha256,
    }


def with_boots(
    run: Run,
    groups: Sequence[Group],
    home: Home,
    described: Callable[[Group], dict[str, Any]],
) -> tuple[list[dict[str, Any]], bool]:
    """Each group's description with its ``boot``, and ``boots`` where the hosts must change to it
    first; and whether they are elsewhere than before after the last one.

    ``boot.known`` says that the run folder has the provenance of that kernel already.
    """
    now = (home.kernel, home.boot)
    known = _provenance_known(run)
    found = []
    for group in groups:
        boot = describe(run.plan, group.kernel, group.boot, home)
        wanted = (home.kernel if group.kernel is None else group.kernel, group.boot)
        changes = boot is not None and wanted != now
        if boot is not None:
            boot.setdefault("known", group.kernel in known)
            known.add(str(group.kernel))
            now = wanted
        found.append({**described(group), "boot": boot, "boots": changes})
    return found, now != (home.kernel, home.boot)


def _provenance_known(run: Run) -> set[str]:
    return {name.partition("@")[2] for name in run.provenance} - {""}
