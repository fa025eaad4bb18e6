"""What netperf 2.7.1 really printed on a loopback interface, over its options.

The outputs under tests/data/netperf are as captured on a machine of two CPUs; expected.json has
what stands in each, checked by hand against the text.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from collector.parsers import netperf
from collector.parsers.base import Status
from collector.parsers.document import load

FOLDER = Path(__file__).parents[2] / "data" / "netperf"
EXPECTED = json.loads((FOLDER / "expected.json").read_text())
FILES = sorted(FOLDER.glob("*.txt"))


def test_every_captured_output_has_its_expectation() -> None:
    assert {path.stem for path in FILES} == set(EXPECTED)
    assert len(FILES) > 60


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_captured_output_reads_as_it_stands(path: Path) -> None:
    reading = netperf.parse(load(str(path)))
    assert not reading.problems
    assert len(reading.records) == len(EXPECTED[path.stem])
    for record, expected in zip(reading.records, EXPECTED[path.stem], strict=True):
        assert isinstance(record, netperf.NetperfResult)
        for name, value in expected.items():
            found = getattr(record, name)
            if name == "failure":
                assert found is not None
                found = found.error_class
            elif name == "interim":
                found = len(found)
            assert found == value, name


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_demand_rate_and_utilisation_make_the_two_cpus_of_that_machine(path: Path) -> None:
    """An independent check of units and columns; figures of two decimals leave a few percent."""
    for record in netperf.parse(load(str(path))).records:
        assert isinstance(record, netperf.NetperfResult)
        if record.messages_ok is not None and record.confidence is not None:
            continue  # rates of the last iteration, demands of the mean
        for cpus in (record.derived.get("cpus_local"), record.derived.get("cpus_remote")):
            assert cpus is None or cpus == pytest.approx(2.0, rel=0.04)


def test_two_units_that_netperf_mislabels() -> None:
    """-f b prints bytes under "10^0bits"; TCP_CRR -f k prints 10^3bits under "Trans. per sec"."""
    bits = netperf.parse(load(str(FOLDER / "fb-stream-cpu.txt"))).records[0]
    assert isinstance(bits, netperf.NetperfResult)
    assert bits.throughput_bps == pytest.approx(8 * float(bits.printed["rate"] or 0))
    assert bits.status is Status.SUSPECT
    connect = netperf.parse(load(str(FOLDER / "fk-crr.txt"))).records[0]
    assert isinstance(connect, netperf.NetperfResult)
    assert connect.throughput_bps == 292240.0
    assert connect.transactions_per_second is None
    assert "-f k" in connect.warnings[0]
