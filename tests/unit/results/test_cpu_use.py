"""CPU over a window, and what a unit of work cost of it."""

import pytest

from collector.results.cpu_use import CpuError, host_cpu, work_units

# Ticks: user nice system idle iowait irq softirq steal guest guest_nice
BEFORE = """cpu  100 0 50 800 20 0 10 0 30 0
cpu0 60 0 20 400 10 0 5 0 30 0
cpu1 40 0 30 400 10 0 5 0 0 0
btime 1700000000
"""
AFTER = """cpu  150 0 70 880 20 0 40 20 60 0
cpu0 90 0 30 440 10 0 15 10 60 0
cpu1 60 0 40 440 10 0 25 10 0 0
btime 1700000000
"""


def readings(before=BEFORE, after=AFTER, seconds=1.0):
    return {
        "first": {"at": 10.0, "monotonic": 5.0, "stat": before},
        "last": {"at": 10.0 + seconds, "monotonic": 5.0 + seconds, "stat": after},
    }


def test_shares_by_kind_and_cpu_do_not_count_guests_twice_nor_steal_as_spent():
    found = host_cpu(readings())
    assert (found.cpus, found.seconds) == (2, 1.0)
    assert found.kinds == {
        "user": 25.0,
        "nice": 0.0,
        "system": 10.0,
        "idle": 40.0,
        "iowait": 0.0,
        "irq": 0.0,
        "softirq": 15.0,
        "steal": 10.0,
        "guest": 15.0,
        "guest_nice": 0.0,
    }
    assert found.spent_pct == pytest.approx(50.0)
    assert found.each == {"0": 50.0, "1": 50.0}
    assert found.each_kinds["1"]["softirq"] == 20.0


def test_service_demand_is_time_of_all_cpus_over_the_work_of_the_window():
    found = host_cpu(readings())
    # Half of two CPUs for a second: 1,000,000 us.
    assert found.demand_us(1000.0) == pytest.approx(1000.0)
    assert found.demand_us(0.0) is None


def test_it_agrees_with_netperfs_own_of_one_session():
    # 48.89 % of one CPU at 990.41 transactions a second: netperf printed 493.620 us.
    before = "cpu 0 0 0 0\ncpu0 0 0 0 0\nbtime 1\n"
    after = "cpu 4889 0 0 5111\ncpu0 4889 0 0 5111\nbtime 1\n"
    assert host_cpu(readings(before, after)).demand_us(990.414) == pytest.approx(493.62, rel=1e-3)


def test_units_of_work_are_kb_and_transactions():
    assert work_units(8 * 1024 * 5.0, "bit/s") == 5.0
    assert work_units(7.0, "1/s") == 7.0


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({"error": "the CPU was not sampled"}, "the CPU was not sampled"),
        (readings(AFTER, BEFORE), "counters that do not go back"),
        # A counter of 32 bits that wrapped looks the same and is no use either.
        (
            readings(BEFORE.replace("cpu  100", "cpu  4294967290").replace("cpu0 60", "cpu0 9")),
            "counters that do not go back",
        ),
        (readings(after=BEFORE), "no time between the two snapshots"),
        (readings(after=AFTER.replace("1700000000", "1700009999")), "wanted one boot"),
        (
            readings(after="".join(AFTER.splitlines(keepends=True)[i] for i in (0, 1, 3))),
            "CPU 1 came or went within the window",
        ),
        (readings(after="nothing"), "/proc/stat over the window"),
    ],
)
def test_readings_that_do_not_make_a_window_are_refused(document, message):
    with pytest.raises(CpuError) as caught:
        host_cpu(document)
    assert message in str(caught.value)
