"""STT on guests with two CPUs each, both at work at the same time: many flows both ways, links that
change, and the module coming and going, leave the kernel without a complaint."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest
from lab_plays import Lab, running
from stt_links import (
    ENDS,
    ENDS6,
    INNER,
    TROUBLE,
    add_link,
    counters,
    links,
    process,
    wait_until_empty,
)

# Slow: a lab of its own, with four emulated CPUs.
pytestmark = [pytest.mark.lab, pytest.mark.slow]

CPUS = 2
SECONDS = 15
# Flows of one burst, each from one CPU to the other: bulk both ways, datagrams that are cut, and
# small requests.
FLOWS = (
    ("TCP_STREAM", ""),
    ("TCP_MAERTS", ""),
    ("UDP_STREAM", "-R 1 -m 8000"),
    ("TCP_RR", ""),
)
# Options that are changed, and counters that are read, while segments pass.
CHURN = (
    "while :; do ip link set stt1 type stt ttl 9 tos inherit; ethtool -S stt1; "
    "ip -s -d link show stt1; ip link set stt1 mtu 1300; "
    "ip link set stt1 type stt ttl auto tos 0; ip link set stt1 mtu 1428; "
    "ip route flush cache; done >/dev/null 2>&1"
)


@pytest.fixture(scope="module")
def guests() -> Iterator[Lab]:
    """A lab of two guests with STT and two CPUs each, received packets spread over both."""
    name = f"{os.environ.get('CROSSOVER_LAB', 'test')}-smp"
    with running(name, "pair", CROSSOVER_STT="true", CROSSOVER_CPUS=str(CPUS)) as lab:
        for host in ENDS:
            assert int(lab.ssh(host, "nproc")) == CPUS
            spread(lab, host, "eth1")
            lab.ssh(host, "dmesg -C")
        lab.ssh("server", "ss -ltn | grep -q :12865 || netserver")
        yield lab
        for host in ENDS:
            lab.ssh(host, "! lsmod | grep -q ^stt || rmmod stt")
        assert trouble(lab) == {}


def spread(lab: Lab, host: str, device: str) -> None:
    """Packets that a device receives are handled by the CPU that their flow's hash says (RPS)."""
    mask = f"{(1 << CPUS) - 1:x}"
    lab.ssh(
        host, f"for q in /sys/class/net/{device}/queues/rx-*; do echo {mask} >$q/rps_cpus; done"
    )


def trouble(lab: Lab) -> dict[str, list[str]]:
    """What kernels complained of, by host."""
    found = {
        host: [line for line in lab.ssh(host, "dmesg").splitlines() if TROUBLE.search(line)]
        for host in ENDS
    }
    return {host: lines for host, lines in found.items() if lines}


def softnet(lab: Lab, host: str) -> list[tuple[int, int]]:
    """Packets that each CPU has handled, and those of them that another CPU gave it
    (Documentation/networking/scaling.rst; the first and the tenth column)."""
    rows = [line.split() for line in lab.ssh(host, "cat /proc/net/softnet_stat").splitlines()]
    return [(int(row[0], 16), int(row[9], 16)) for row in rows]


def burst(seconds: int = SECONDS) -> str:
    """All flows from either CPU to the other, at once; prints what each measured."""
    every = [
        f"netperf -H {INNER['server']} -t {test} -l {seconds} -P0 -v0 -T {cpu},{1 - cpu} -- {more}"
        " | grep . | tail -n 1"
        for test, more in FLOWS
        for cpu in range(CPUS)
    ]
    return " & ".join([*every, "wait"])


@contextmanager
def churn(lab: Lab) -> Iterator[None]:
    """Links that change on both hosts for as long as the block lasts."""
    with ExitStack() as stack:
        for host in ENDS:
            stack.enter_context(process(lab, host, f"sh -c '{CHURN}'"))
        yield


@pytest.mark.parametrize("gro", ["on", "off"])
@pytest.mark.parametrize("ends", [ENDS, ENDS6], ids=["over IPv4", "over IPv6"])
def test_flows_of_both_cpus_pass_side_by_side(
    guests: Lab, ends: dict[str, tuple[str, str]], gro: str
) -> None:
    for host in ENDS:
        guests.ssh(host, f"ethtool -K eth1 gro {gro}")
    try:
        with links(guests, ends):
            for host in ENDS:
                spread(guests, host, "stt1")
            before = {host: softnet(guests, host) for host in ENDS}
            with churn(guests):
                text = guests.ssh("client", burst(), 120)
            after = {host: softnet(guests, host) for host in ENDS}
            rates = [float(line.split()[-1]) for line in text.splitlines() if line.split()]
            assert len(rates) == len(FLOWS) * CPUS, text
            assert all(rates), text
            for host in ENDS:
                found = wait_until_empty(guests, host)
                for bad in ("netns_malformed", "netns_bad_checksum"):
                    assert found[bad] == 0, (host, found)
                work = [
                    now[0] - then[0] for now, then in zip(after[host], before[host], strict=True)
                ]
                given = [
                    now[1] - then[1] for now, then in zip(after[host], before[host], strict=True)
                ]
                print(host, gro, "packets by CPU", work, "given by another", given, rates)
                assert min(work) > 100, (host, work)
                assert sum(given) > 100, (host, given)
    finally:
        for host in ENDS:
            guests.ssh(host, "ethtool -K eth1 gro on")
    assert trouble(guests) == {}


def reload(lab: Lab, host: str, failed: list[str]) -> None:
    """Take the link and the module away and bring them back, some times."""
    try:
        for number in range(6):
            lab.ssh(host, "ip link delete stt1 && rmmod stt && ! lsmod | grep -q ^stt")
            add_link(lab, host)
            spread(lab, host, "stt1")
            time.sleep(0.2 * number)
    except AssertionError as error:
        failed.append(f"{host}: {error}")


def test_the_module_comes_and_goes_on_both_hosts_under_flows_of_both_cpus(guests: Lab) -> None:
    failed: list[str] = []
    with links(guests):
        with process(guests, "client", f"timeout 240 sh -c '{burst(200)}'"):
            time.sleep(2)
            threads = [
                threading.Thread(target=reload, args=(guests, host, failed)) for host in ENDS
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert failed == []
            guests.ssh("client", f"ping -c3 -i0.2 -W5 {INNER['server']}")
        guests.ssh("client", "pkill -x netperf || true")
        for host in ENDS:
            found = wait_until_empty(guests, host)
            assert found["netns_reassembly_bytes"] == 0
            assert counters(guests, host)["netns_malformed"] == 0
    assert trouble(guests) == {}
