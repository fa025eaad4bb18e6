"""``crossover kernel``: the kernels by name, built and listed, and own ones added."""

from __future__ import annotations

import argparse
import contextlib
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO

from collector.duration import duration
from collector.errors import CrossoverError, UsageError
from collector.kernels import build
from collector.kernels.artifact import Artifact
from collector.kernels.entry import Entry
from collector.kernels.errors import KernelError
from collector.run.kernel_entries import add_entry, find_entry, load_entries
from collector.run.kernel_ready import build_command


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser("kernel", help="list, build and add the kernels to measure")
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    verbs.add_parser("list", help="every kernel by name, and whether it is built")
    made = verbs.add_parser(
        "build", help="fetch or compile kernels; does nothing if they are there"
    )
    made.add_argument("names", nargs="+", metavar="NAME")
    made.add_argument(
        "--refresh", action="store_true", help="take a newer version of a package, if there is one"
    )
    add = verbs.add_parser("add", help="add a kernel of your own")
    add.add_argument("name")
    add.add_argument("--about", help="what it is (default: what it is made of)")
    origin = add.add_mutually_exclusive_group(required=True)
    origin.add_argument("--package", metavar="NAME", help="a Debian kernel package")
    origin.add_argument("--source-package", metavar="NAME", help="a linux-source package")
    origin.add_argument("--tarball", metavar="FILE", help="an archive of a source tree")
    origin.add_argument("--git", metavar="FOLDER", help="a git checkout")
    origin.add_argument("--vmlinuz", metavar="FILE", help="a kernel that is built already")
    origin.add_argument("--like", metavar="NAME", help="one of your own, plus what follows")
    add.add_argument("--suite", help="Debian suite of the package")
    add.add_argument("--package-version", metavar="VERSION", help="version of the package")
    add.add_argument("--ref", help="commit, tag or branch of the checkout")
    add.add_argument("--base", help="defconfig, allnoconfig, …, or a configuration file")
    add.add_argument("--fragment", action="append", default=[], metavar="FILE")
    add.add_argument("--patch", action="append", default=[], metavar="FILE")
    add.add_argument("--external-module", action="append", default=[], metavar="FOLDER")
    add.add_argument("--config", metavar="FILE", help="configuration of --vmlinuz")
    add.add_argument("--modules", metavar="PATH", help="modules of --vmlinuz: a folder or a tar")
    add.add_argument("--initrd", metavar="FILE", help="initrd of --vmlinuz")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Do it; raises CrossoverError."""
    if args.verb == "list":
        print(list_text())
        return 0
    if args.verb == "add":
        file = add_entry(args.name, document(args))
        print(f"kernel {args.name}: added to {file}; build it with: {build_command(args.name)}")
        reason = build.status(find_entry(args.name)).reason
        if reason not in build.BUILDABLE:
            print(f"kernel {args.name}: cannot be built yet: {reason}", file=sys.stderr)
        return 0
    for entry in [find_entry(name) for name in args.names]:
        made, found = build_entry(entry, refresh=args.refresh)
        state = "made" if made else "is there"
        print(f"kernel {entry.name}: {state}: {found.release}, in {found.folder}")
    return 0


def build_entry(entry: Entry, refresh: bool = False) -> tuple[bool, Artifact]:
    """``kernels.build.ensure`` with a progress line. Raises CrossoverError."""
    line = Line(entry.name)
    try:
        with _ended_in_order():
            return build.ensure(entry, line.tell, refresh)
    except KernelError as error:
        raise CrossoverError(str(error)) from error
    finally:
        line.close()


@contextlib.contextmanager
def _ended_in_order() -> Iterator[None]:
    """Being ended, or losing the terminal, is an exception, so that no compiler goes on alone."""

    def end(number: int, _frame: object) -> None:
        raise SystemExit(128 + number)

    before = {number: signal.signal(number, end) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class Line:
    """The progress line of a build: rewritten on a terminal, elsewhere one line a minute."""

    def __init__(self, name: str, stream: TextIO = sys.stderr) -> None:
        self._name = name
        self._stream = stream
        self._live = stream.isatty()
        self._began = time.monotonic()
        self._last = float("-inf")
        self._doing = ""

    def tell(self, what: str, done: int, total: int | None) -> None:
        """Take a step."""
        now = time.monotonic()
        news = not done and what != self._doing
        if not news and now - self._last < (0.2 if self._live else 60):
            return
        self._last, self._doing = now, what
        text = self.text(what, done, total, now - self._began)
        self._stream.write(f"\r\x1b[K{text[:100]}" if self._live else text + "\n")
        self._stream.flush()

    def text(self, what: str, done: int, total: int | None, elapsed_s: float) -> str:
        """The line for a step. ``total`` is of an earlier build, so it may be passed."""
        if not done:
            return f"kernel {self._name}: {what}"
        of = f" of about {max(total, done)}" if total else ""
        return f"kernel {self._name}: step {done}{of}, {duration(elapsed_s)}: {what}"

    def close(self) -> None:
        """End the line."""
        if self._live and self._doing:
            self._stream.write("\r\x1b[K")
            self._stream.flush()


def list_text() -> str:
    """All entries with their state, one a line."""
    rows = []
    for entry in load_entries().values():
        found = build.status(entry)
        state = found.artifact.release if found.artifact else found.reason
        rows.append((entry.name, entry.kind, state, entry.about))
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    return "\n".join(
        "  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[3]])
        for row in rows
    )


def _absolute(path: str) -> str:
    return str(Path(path).expanduser().resolve())


def document(args: argparse.Namespace) -> dict[str, Any]:
    """The entry that the options of ``kernel add`` declare. Raises UsageError for an option of
    another kind of kernel."""
    versioned = {"suite": args.suite, "version": args.package_version}
    extra = {
        "base": args.base
        and (_absolute(args.base) if "/" in args.base or "." in args.base else args.base),
        "fragments": [_absolute(path) for path in args.fragment],
        "patches": [_absolute(path) for path in args.patch],
        "external_modules": [_absolute(path) for path in args.external_module],
    }
    ready = {"config": args.config, "modules": args.modules, "initrd": args.initrd}
    made: dict[str, Any] = {}
    if args.package:
        made["package"] = {"name": args.package, **versioned}
        about = f"package {args.package}"
    elif args.source_package:
        made["source"] = {"package": args.source_package, **versioned}
        about = f"source of {args.source_package}"
    elif args.tarball:
        made["source"] = {"tarball": _absolute(args.tarball)}
        about = f"source of {Path(args.tarball).name}"
    elif args.git:
        made["source"] = {"git": _absolute(args.git), "ref": args.ref}
        about = f"checkout {args.git}{' at ' + args.ref if args.ref else ''}"
    elif args.like:
        made["like"] = args.like
        about = f"as {args.like}"
    else:
        paths = {key: _absolute(value) for key, value in ready.items() if value}
        made["image"] = {"vmlinuz": _absolute(args.vmlinuz), **paths}
        about = f"image {Path(args.vmlinuz).name}"
    _refuse(not (args.package or args.source_package), "--package or --source-package", **versioned)
    _refuse(not args.git, "--git", ref=args.ref)
    _refuse(not args.vmlinuz, "--vmlinuz", **ready)
    built = {
        "base": args.base,
        "fragment": args.fragment,
        "patch": args.patch,
        "external_module": args.external_module,
    }
    _refuse(not ("source" in made or "like" in made), "a source", **built)
    kept = {key: value for key, value in extra.items() if value}
    for value in made.values():
        if isinstance(value, dict):
            for key in [key for key, inner in value.items() if inner is None]:
                del value[key]
    return {"about": args.about or about, **made, **kept}


def _refuse(foreign: bool, owner: str, **options: Any) -> None:
    given = [key for key, value in options.items() if value]
    if foreign and given:
        raise UsageError(f"kernel add: --{given[0].replace('_', '-')} goes with {owner} only")
