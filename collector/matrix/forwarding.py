"""What a matrix with forwarding tests must be beside its fields."""

from __future__ import annotations

from typing import TYPE_CHECKING

from collector.errors import InputError
from collector.forwarding.spec import ForwardingSpec
from collector.shape import Shape, show

if TYPE_CHECKING:
    from collector.matrix.matrix import Matrix

# A tester with two ports, or one in two parts.
FORWARDING_TOPOLOGIES = ("dut", "chain")
# netperf's ends are the two ends of one link.
NETPERF_TOPOLOGIES = ("pair",)


def topologies_of(matrix: Matrix) -> tuple[str, ...]:
    """The topologies in which the tests of a matrix can be measured, its own among them."""
    forwarding = any(isinstance(test, ForwardingSpec) for test in matrix.tests)
    return FORWARDING_TOPOLOGIES if forwarding else NETPERF_TOPOLOGIES


def check_forwarding(matrix: Matrix) -> None:
    """Raises InputError for a matrix that mixes netperf and forwarding tests, for a topology that
    has no device to forward (or none to run netperf on), for a form whose ``only`` names no
    factor of the matrix or leaves the baseline out, and for a configuration of the device that
    cannot be."""
    forwarding = [isinstance(test, ForwardingSpec) for test in matrix.tests]
    if any(forwarding) and not all(forwarding):
        where = f"{matrix.file}: tests[{forwarding.index(not forwarding[0])}]"
        raise InputError(where, "netperf and forwarding in one matrix", "tests of one kind")
    wanted = topologies_of(matrix)
    if matrix.topology not in wanted:
        what = "forwarding" if any(forwarding) else "netperf"
        raise InputError(
            f"{matrix.file}: topology",
            repr(matrix.topology),
            f"{' or '.join(wanted)}, for tests with {what}",
        )
    _check_forms(matrix)
    for item in matrix.configurations:
        document = item.subjects.get("forwarding")
        if document:
            where = f"{matrix.file}: {item.name}"
            if not any(forwarding):
                raise InputError(f"{where}.forwarding", "tests with netperf", "tests that forward")
            check_declared(Shape(document, where, "forwarding"))


def check_declared(item: Shape) -> None:
    """What a configuration declares of the device under test, as the role forwarding takes it.
    Raises InputError; a key that nobody reads would be measured as if it were not there."""
    if item.has("irq"):
        item.choice("irq", ("default", "pinned"))
    if item.has("rules"):
        item.choice("rules", ("none", "empty"))
    kinds = item.strings("rules_by", default=["nft"])
    if not kinds or set(kinds) - {"nft", "iptables"}:
        raise InputError(item.at("rules_by"), show(list(kinds)), "one or both of nft, iptables")
    cpus = item.take_any("irq_cpus", (list,), "a list of CPUs", [])
    if not all(isinstance(cpu, int) and not isinstance(cpu, bool) and cpu >= 0 for cpu in cpus):
        raise InputError(item.at("irq_cpus"), show(cpus), "a list of CPUs by number")
    for key, kind, wanted in (("offloads", bool, "true or false"), ("channels", int, "a number")):
        for name, value in item.anything(key, default={}).items():
            if not isinstance(value, kind) or isinstance(value, bool) != (kind is bool):
                raise InputError(item.at(f"{key}.{name}"), show(value), wanted)
    item.done()


def _check_forms(matrix: Matrix) -> None:
    cells = [
        (item, {**item.factors, **test.factors})
        for item in matrix.configurations
        for test in matrix.tests
    ]
    known = dict.fromkeys(name for _, factors in cells for name in factors)
    for form in matrix.forms.values():
        where = f"{matrix.file}: {form.name}.only"
        for name in form.only:
            if name not in known:
                raise InputError(
                    f"{where}.{name}", "no factor of that name", f"one of {', '.join(known)}"
                )
        left = [item.name for item, factors in cells if form.leaves_out(factors) is None]
        if matrix.baseline not in left:
            raise InputError(where, "no cell of the baseline", f"some test of {matrix.baseline}")
