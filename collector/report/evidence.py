"""What a run folder holds besides samples: provenance, command lines, evidence, raw files.

Reading is tolerant of what is absent (an empty tuple) and strict about what is there but broken
(InputError). The documents' formats are in docs/data-format.md.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from collector.errors import InputError
from collector.report.model import CommandGroup, Difference, Host, Proof
from collector.report.setup_commands import SETUP_FILE
from collector.runfolder.runfolder import Plan
from collector.shape import read_json

# Facts in which two hosts are bound to differ; a difference there says nothing.
_OWN_BY_NATURE = frozenset(
    {
        "host", "hostname", "name", "fqdn", "machine_id", "boot_id", "mac",
        "mac_address", "address", "addresses", "ipv4", "ipv6", "uptime", "uptime_s",
        "time", "captured_at", "recorded_at", "collected_at", "date", "pid", "uuid",
        "serial", "realtime_ns", "monotonic_ns", "steal_ticks", "conntrack_count", "frequency_khz"
    }
)  # fmt: skip
_MANY = 12  # a group with more values than this is counted, not listed, in a mail

_UNPROVEN = "NOT PROVEN"
_SHOWN_TEXTS = 3  # a finding that differs in every repeat (a port, say) is not a list of all


def hosts_of(provenance: Mapping[str, Mapping[str, Any]]) -> tuple[Host, ...]:
    """Every host with its facts, nested keys joined by dots."""
    return tuple(
        Host(name=name, facts=tuple(flatten(facts))) for name, facts in sorted(provenance.items())
    )


def flatten(value: Any, prefix: str = "") -> Iterator[tuple[str, str]]:
    """(dotted key, text) for every leaf. A list of plain values is one leaf; null and "not
    recorded" are the same."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            if not (prefix == "" and key == "schema"):
                yield from flatten(item, f"{prefix}.{key}" if prefix else str(key))
    elif isinstance(value, list) and any(isinstance(item, (dict, list)) for item in value):
        for number, item in enumerate(value):
            yield from flatten(item, f"{prefix}[{number}]")
    else:
        yield prefix, _leaf(value)


def _leaf(value: Any) -> str:
    if value is None:
        return "not recorded"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(_leaf(item) for item in value) or "none"
    return " ".join(str(value).split())


def differences(hosts: Sequence[Host]) -> tuple[Difference, ...]:
    """Facts in which the hosts differ, apart from those that are each host's own by nature. A
    device that only some of them have is one difference, and compared between those."""
    tables = {host.name: dict(host.facts) for host in hosts}
    devices = {host.name: {_device(key) for key, _ in host.facts} for host in hosts}
    keys = dict.fromkeys(key for host in hosts for key, _ in host.facts)
    found: dict[str, Difference] = {}
    for key in keys:
        if _own_by_nature(key):
            continue
        device = _device(key)
        having = [name for name in tables if device in devices[name]] if device else list(tables)
        if len(having) < len(tables):
            there = tuple((name, "there" if name in having else "not there") for name in tables)
            found.setdefault(device, Difference(key=device, values=there))
        values = tuple((name, tables[name].get(key)) for name in having)
        if len({value for _, value in values}) > 1:
            found[key] = Difference(key=key, values=values)
    return tuple(found.values())


def _device(key: str) -> str:
    """The key of the device that a fact is of, empty for others."""
    first, _, rest = key.partition(".")
    return f"{first}.{rest.partition('.')[0]}" if first == "devices" and rest else ""


def shared_and_own(hosts: Sequence[Host]) -> tuple[tuple[str, tuple[tuple[str, str], ...]], ...]:
    """(heading, facts): what all hosts share, once, then what is a host's own by nature.

    Large groups (all sysctls, say) are replaced by their count. Differences stand apart
    (:func:`differences`).
    """
    shared = set.intersection(*(set(host.facts) for host in hosts)) if len(hosts) > 1 else set()
    result = []
    if shared:
        names = " and ".join(host.name for host in hosts)
        common = tuple(fact for fact in hosts[0].facts if fact in shared)
        result.append((names, _counted(common)))
    for host in hosts:
        own = tuple(
            fact
            for fact in host.facts
            if fact not in shared and (len(hosts) == 1 or _own_by_nature(fact[0]))
        )
        if own:
            result.append((host.name, _counted(own)))
    return tuple(result)


def _own_by_nature(key: str) -> bool:
    return not _OWN_BY_NATURE.isdisjoint(key.lower().split("."))


def _counted(facts: Sequence[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    sizes = Counter(key.split(".", 1)[0] for key, _ in facts)
    shown: dict[str, str] = {}
    for key, text in facts:
        group = key.split(".", 1)[0]
        if sizes[group] > _MANY:
            shown[group] = f"{sizes[group]} values recorded"
        else:
            shown[key] = text
    return tuple(shown.items())


def commands_of(folder: Path, plan: Plan) -> tuple[CommandGroup, ...]:
    """Command lines of each cell's first repeat, cells with the same command together."""
    groups: dict[tuple[str, tuple[tuple[str, ...], ...]], list[str]] = {}
    together: dict[str, str] = {}
    for cell in plan.cells:
        files = sorted((folder / "raw" / cell.cell_id).glob("**/argv.json"), key=_natural)
        if cell.arm or not files:
            continue
        argvs = tuple(hide_passphrase(argv) for argv in read_argvs(files[0]))
        groups.setdefault((cell.test, argvs), []).append(cell.configuration)
        together[cell.test] = _at_once(read_json(files[0]))
    everyone = {c.configuration for c in plan.cells if c.skip is None}
    return tuple(
        CommandGroup(
            title=test
            + ("" if set(names) == everyone else f" ({', '.join(names)})")
            + together[test],
            argvs=argvs,
        )
        for (test, argvs), names in groups.items()
    )


def _at_once(document: Any) -> str:
    """``, 5 at once`` for the command of several sessions; they differ in what each waits."""
    count = document.get("sessions") if isinstance(document, dict) else None
    return f", {count} at once" if isinstance(count, int) and count > 1 else ""


def commands_by_test(folder: Path, plan: Plan) -> dict[str, tuple[str, ...]]:
    """One command line a test: the shortest, which is the one without a label in front."""
    found: dict[str, tuple[str, ...]] = {}
    cells = {cell.cell_id: cell for cell in plan.cells}
    for cell_id, cell in cells.items():
        for file in sorted((folder / "raw" / cell_id).glob("**/argv.json"), key=_natural)[:1]:
            argv = without_selectors(hide_passphrase(read_argvs(file)[0]))
            if cell.test not in found or len(argv) < len(found[cell.test]):
                found[cell.test] = argv
    return found


def read_argvs(file: Path) -> tuple[tuple[str, ...], ...]:
    """The argument lists of an ``argv.json``: one list of texts, several, or ``{"argv": …}``.

    Raises InputError for anything else.
    """
    document = read_json(file)
    if isinstance(document, dict):
        document = document.get("argv", document.get("commands"))
    if isinstance(document, list) and document and all(isinstance(x, str) for x in document):
        document = [document]
    if not isinstance(document, list) or not document:
        raise InputError(str(file), "no argument list", 'a list of texts, or {"argv": [...]}')
    result = []
    for entry in document:
        argv = entry.get("argv") if isinstance(entry, dict) else entry
        if not isinstance(argv, list) or not all(isinstance(x, str) for x in argv):
            raise InputError(str(file), repr(entry)[:60], "a list of texts")
        result.append(tuple(argv))
    return tuple(result)


def without_selectors(argv: Sequence[str]) -> tuple[str, ...]:
    """netperf's ``-k`` list, which is a screen long and changes no result, as ``…``; for headings,
    never for commands to copy."""
    return tuple(
        "…" if index and argv[index - 1] == "-k" else argument
        for index, argument in enumerate(argv)
    )


def hide_passphrase(argv: Sequence[str]) -> tuple[str, ...]:
    """netperf's ``-Z`` takes a passphrase; reports travel, so it is replaced."""
    return tuple(
        "PASSPHRASE" if index and argv[index - 1] == "-Z" else argument
        for index, argument in enumerate(argv)
    )


def proofs_of(folder: Path, plan: Plan) -> tuple[Proof, ...]:
    """Per configuration, what its evidence files say; findings all its cells share once."""
    result = []
    for configuration in plan.configurations:
        by_test: dict[str, dict[str, str]] = {}
        files: list[str] = []
        for cell in plan.cells:
            if cell.configuration != configuration.name or cell.arm:
                continue
            below = (folder / "evidence" / cell.cell_id).rglob("*")
            own = sorted((path for path in below if path.is_file()), key=_natural)
            files += [path.relative_to(folder).as_posix() for path in own]
            said = [path for path in own if path.suffix == ".json" and path.name != SETUP_FILE]
            found = [_findings(path) for path in said]
            if found:
                by_test[cell.test] = _over_repeats(found)
        if files:
            result.append(
                Proof(
                    configuration=configuration.name,
                    findings=_merged(by_test),
                    files=tuple(files),
                )
            )
    return tuple(result)


def _over_repeats(documents: Sequence[Sequence[tuple[str, str]]]) -> dict[str, str]:
    """What was found in all documents of a cell; where they differ, in how many each was found,
    what is not proven first."""
    texts: dict[str, Counter[str]] = {}
    for document in documents:
        for what, text in document:
            texts.setdefault(what, Counter())[text] += 1
    return {what: _counted_texts(counts) for what, counts in texts.items()}


def _counted_texts(counts: Counter[str]) -> str:
    if len(counts) == 1:
        return next(iter(counts))
    total = sum(counts.values())
    ranked = sorted(counts.items(), key=lambda item: (not item[0].startswith(_UNPROVEN), -item[1]))
    shown = [f"{text} (in {count} of {total})" for text, count in ranked[:_SHOWN_TEXTS]]
    rest = len(ranked) - _SHOWN_TEXTS
    return "; ".join([*shown, *([f"{rest} other texts"] if rest > 0 else [])])


def _findings(path: Path) -> list[tuple[str, str]]:
    """``{"findings": [{"what", "found", "wanted", "ok"}]}``, or any object's own leaves."""
    document = read_json(path)
    listed = document.get("findings") if isinstance(document, dict) else None
    if not isinstance(listed, list):
        return list(flatten(document, "" if isinstance(document, dict) else path.stem))
    result = []
    for entry in listed:
        if not isinstance(entry, dict) or "what" not in entry:
            raise InputError(f"{path}: findings", repr(entry)[:60], 'an object with "what"')
        text = _leaf(entry.get("found"))
        if entry.get("wanted") is not None and entry["wanted"] != entry.get("found"):
            text += f" (wanted {_leaf(entry['wanted'])})"
        if entry.get("ok") is False:
            text = f"{_UNPROVEN}: {text}"
        result.append((_leaf(entry["what"]), text))
    return result


def _merged(by_test: Mapping[str, Mapping[str, str]]) -> tuple[tuple[str, str], ...]:
    """Findings of all tests once; those of single tests with the test's name in front."""
    merged: list[tuple[str, str]] = []
    for test, found in by_test.items():
        for what, text in found.items():
            common = all(other.get(what) == text for other in by_test.values())
            item = (what, text) if common else (f"{test}, {what}", text)
            if item not in merged:
                merged.append(item)
    return tuple(merged)


def raw_files_of(folder: Path) -> tuple[str, ...]:
    """Every file below ``raw``, relative to the run folder, in natural order."""
    files = [path for path in (folder / "raw").rglob("*") if path.is_file()]
    return tuple(path.relative_to(folder).as_posix() for path in sorted(files, key=_natural))


def _natural(path: Path) -> tuple[tuple[int, str], ...]:
    """Sort key in which repeat 2 comes before repeat 10."""
    return tuple(
        (int(part), part) if part.isdigit() else (-1, part) for part in path.as_posix().split("/")
    )
