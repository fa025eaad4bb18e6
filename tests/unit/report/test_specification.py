"""The specification of the hosts: one line a fact, in the order that readers ask for it."""

from __future__ import annotations

from typing import Any

from collector.report.specification import specification


def host(**changes: Any) -> dict[str, Any]:
    device: dict[str, Any] = {
        "driver": "ixgbe",
        "driver_version": "6.12",
        "pci_id": "8086:10fb",
        "firmware": "0x800006da",
        "bus": "0000:01:00.0",
        "current_link_speed": "5.0 GT/s PCIe",
        "current_link_width": "4",
        "max_link_speed": "5.0 GT/s PCIe",
        "max_link_width": "8",
        "speed_mbps": 10000,
        "duplex": "full",
        "mtu": 1500,
        "rx_queues": 4,
        "tx_queues": 4,
        "rss": {
            "rings": 4,
            "entries": 128,
            "shares": {"0": 32, "1": 32, "2": 32, "3": 32},
            "function": "toeplitz",
            "hash_fields": {"tcp4": "IP SA, IP DA, ports", "udp4": "IP SA, IP DA", "udp6": None},
        },
        "interrupts": {"40": {"handlers": "eth1-TxRx-0", "affinity": "0-3", "effective": "2"}},
        "offload": {
            "tcp-segmentation-offload": "on",
            "generic-receive-offload": "off",
            "rx-fcs": "off",
        },
        "ring": {"rx": "512", "tx": "512"},
        "coalescing": {"rx-usecs": "1", "adaptive-rx": "off"},
    }
    made: dict[str, Any] = {
        "cpu": {
            "model": "A CPU",
            "sockets": 2,
            "cores": 16,
            "threads_per_core": 2,
            "count": 32,
            "memory_kib": 2048 * 1024,
            "nodes": {"node0": "0-15", "node1": "16-31"},
            "governors": {"policy0": "performance", "policy1": "performance"},
        },
        "kernel": {"release": "6.12.1", "config_sha256": "ab" * 32, "cmdline": "quiet"},
        "devices": {"eth1": device},
        "changed_during_run": [],
    }
    return {**made, **changes}


def lines(**hosts: dict[str, Any]) -> dict[str, tuple[str, ...]]:
    return {line.name: line.texts() for line in specification(hosts)}


def test_what_hosts_share_is_said_once_in_the_order_that_readers_ask() -> None:
    found = lines(client=host(), server=host())
    assert list(found) == [
        "CPU",
        "CPUs",
        "NUMA nodes",
        "memory",
        "governor",
        "kernel",
        "kernel configuration",
        "kernel command line",
        "eth1, driver",
        "eth1, firmware",
        "eth1, bus",
        "eth1, speed",
        "eth1, MTU",
        "eth1, queues",
        "eth1, hash fields",
        "eth1, indirection table",
        "eth1, interrupts (CPUs)",
        "eth1, offloads",
        "eth1, rings",
        "eth1, coalescing",
        "changed during the run",
    ]
    assert found["CPUs"] == ("2 sockets, 16 cores, 2 threads a core, 32 CPUs online",)
    assert found["governor"] == ("policy0, policy1: performance",)
    assert found["kernel configuration"] == ("SHA-256 abababababab…",)
    assert found["eth1, driver"] == ("ixgbe 6.12 (8086:10fb)",)
    assert found["eth1, bus"] == (
        "0000:01:00.0, x4 at 5.0 GT/s PCIe, of at most x8 at 5.0 GT/s PCIe",
    )
    assert found["eth1, queues"] == ("4 receive, 4 send, RSS over 4 (toeplitz)",)
    assert found["eth1, hash fields"] == ("tcp4: IP SA, IP DA, ports; udp4: IP SA, IP DA",)
    assert found["eth1, indirection table"] == ("128 entries, by ring 0: 32, 1: 32, 2: 32, 3: 32",)
    assert found["eth1, interrupts (CPUs)"] == ("40 (eth1-TxRx-0): 0-3, taken by 2",)
    assert found["eth1, offloads"] == ("tso on, gro off",)
    assert found["changed during the run"] == ("nothing that was read",)


def test_what_differs_is_said_for_each_host() -> None:
    change = {"path": "cpu.governors.policy0", "before": "powersave", "after": "performance"}
    found = lines(client=host(), server=host(changed_during_run=[change]))
    assert found["changed during the run"] == (
        "client: nothing that was read",
        "server: cpu.governors.policy0: powersave before, performance after",
    )


def test_what_no_host_says_is_no_line() -> None:
    assert lines(client={"schema": 1, "cpu": {"model": None}, "devices": {"eth1": {}}}) == {}
    assert lines() == {}


def test_a_device_without_scaling_says_so_and_many_changes_are_counted() -> None:
    plain = {"driver": "virtio_net", "rx_queues": 1, "tx_queues": 1, "rss": {"rings": None}}
    many = [{"path": f"p{i}", "before": 1, "after": 2} for i in range(25)]
    found = lines(client=host(devices={"eth1": plain}, changed_during_run=many))
    assert found["eth1, queues"] == ("client: 1 receive, 1 send, no RSS",)
    assert found["changed during the run"][0].endswith("; and 5 more")


def test_scaling_that_nobody_could_ask_for_is_not_said_to_be_absent() -> None:
    unknown = {"rx_queues": 1, "tx_queues": 1, "rss": None}
    found = lines(client=host(devices={"eth1": unknown}))
    assert found["eth1, queues"] == ("client: 1 receive, 1 send",)
