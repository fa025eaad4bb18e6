"""A trial from its filters to its counters, and counting on another host."""

import json

import pytest

from ansible_collections.crossover.lab.plugins.module_utils import pktgen_measure as measuring
from ansible_collections.crossover.lab.plugins.module_utils import pktgen_sink as sink
from ansible_collections.crossover.lab.plugins.module_utils.host import record
from ansible_collections.crossover.lab.plugins.module_utils.host.errors import HostError
from ansible_collections.crossover.lab.plugins.module_utils.pktgen_filter import Counted

from .pktgen_kernel import Kernel
from .test_pktgen_trial import LEFT, RIGHT, read


class Host:
    """Answers as ip, ethtool and nft. Every reading of a port is 1000 frames further on, up to
    the reading ``last``.

    ``without``: tools that are refused.
    """

    def __init__(self, last=3, without=()):
        self.last, self.without, self.readings, self.tables = last, without, {}, {}
        self.deleted = []

    def __call__(self, argv):
        tool, *words = argv
        if tool in self.without:
            return 1, "", f"{tool}: Operation not supported"
        if tool == "ip":
            self.readings[words[-1]] = self.readings.get(words[-1], 0) + 1
            frames = 1000 * min(self.readings[words[-1]], self.last)
            rx = {"packets": frames, "bytes": 60 * frames, "errors": 0, "dropped": 3}
            stats = {"rx": {**rx, "missed_errors": 2}, "tx": rx}
            link = {"ifindex": 2, "ifname": words[-1], "mtu": 1500, "flags": ["UP"]}
            return 0, json.dumps([{**link, "stats64": stats}]), ""
        if tool == "ethtool":
            return (
                0,
                f"NIC statistics:\n     rx_kicks: {self.readings[words[-1]]}\n     fixed: 7\n",
                "",
            )
        if "tables" in words:
            tables = [{"table": {"family": "netdev", "name": name}} for name in self.tables]
            return 0, json.dumps({"nftables": tables}), ""
        if "counters" in words:
            names = (("matched", 990), ("other", 10))
            items = [{"counter": {"name": n, "packets": c, "bytes": 46 * c}} for n, c in names]
            return 0, json.dumps({"nftables": items}), ""
        if "delete" in words:
            self.deleted.append(words[-1])
            del self.tables[words[-1]]
            return 0, "", ""
        commands = json.loads(words[-1])["nftables"]
        chain = next(c["add"]["chain"] for c in commands if "chain" in c["add"])
        self.tables[chain["table"]] = chain["dev"]
        return 0, "", ""


@pytest.fixture
def kernel(tmp_path):
    return Kernel(tmp_path, cpus=2)


@pytest.fixture
def net(tmp_path):
    """/sys/class/net of a tester with two ports."""
    for name in ("eth1", "eth2"):
        folder = tmp_path / "net" / name
        (folder / "queues" / "tx-0").mkdir(parents=True)
        (folder / "carrier").write_text("1\n")
        (folder / "mtu").write_text("1500\n")
    return tmp_path / "net"


def test_a_trial_returns_everything_that_was_counted(kernel):
    host, slept = Host(), []
    kernel.sends = {"eth1@0": 1000}
    found = measuring.measure(read(drain_s=2.5), kernel, host, slept.append)
    (one,) = found["directions"]
    assert (found["intended_fps"], found["configured_fps"]) == (1000.0, pytest.approx(1000))
    assert (one["sent"], one["received"], one["received_by"]) == (1000, 990, "filter")
    assert (one["elapsed_s"], one["offered_fps"], one["idle_s"]) == (1.0, 1000.0, 0.4)
    assert (one["filter"], one["filter_reason"]) == ("nft", None)
    assert one["counters"] == {
        "pktgen_sofar": 1000,
        "pktgen_errors": 0,
        "port_tx": 2000,
        "port_tx_bytes": 120000,
        "port_tx_errors": 0,
        "port_tx_dropped": 0,
        "far_rx": 2000,
        "far_rx_bytes": 120000,
        "far_rx_errors": 0,
        "far_rx_dropped": 0,
        "far_rx_filter": 990,
        "far_rx_filter_bytes": 45540,
        "far_rx_other": 10,
    }
    # A frame arrived while counters were read, so they were read again.
    assert one["port_driver"] == {"rx_kicks": 3}
    assert one["settled"] is True
    assert slept[0] == 2.5
    assert kernel.runs == [(2.0, True)]
    # Nothing of the trial is left.
    assert (host.tables, kernel.devices()) == ({}, {})


def test_frames_that_do_not_cease_to_arrive_are_told(kernel):
    host = Host(last=1000)
    (one,) = measuring.measure(read(), kernel, host, lambda _s: None)["directions"]
    assert one["settled"] is False
    assert host.readings["eth2"] == 1 + 2 * measuring.READINGS


def test_both_directions_are_counted_apart(kernel):
    found = measuring.measure(
        read(ports=[LEFT, RIGHT], rate_fps=None), kernel, Host(), lambda _s: None
    )
    assert [one["device"] for one in found["directions"]] == ["eth1", "eth2"]
    assert [one["settled"] for one in found["directions"]] == [True, True]
    assert kernel.runs == [(2.0, False)]
    assert found["configured_fps"] is None


def test_frames_that_arrive_elsewhere_are_not_counted_here(kernel):
    away = {**LEFT, "receive_device": None}
    host = Host()
    (one,) = measuring.measure(read(ports=[away]), kernel, host, lambda _s: None)["directions"]
    assert (one["received"], one["received_by"], one["settled"]) == (None, None, None)
    assert "far_rx" not in one["counters"]
    assert host.deleted == []


def test_what_a_killed_trial_left_is_removed_first(kernel):
    host = Host()
    host.tables = {"crossover_pktgen_1": "eth9", "firewall": "eth0"}
    measuring.measure(read(), kernel, host, lambda _s: None)
    assert host.deleted[0] == "crossover_pktgen_1"
    assert list(host.tables) == ["firewall"]


def test_a_trial_that_fails_leaves_nothing(kernel):
    kernel.refuses.add("count")
    host = Host()
    with pytest.raises(HostError, match="count wanted 2000, is 1000"):
        measuring.measure(read(), kernel, host, lambda _s: None)
    assert (host.tables, kernel.devices(), kernel.remembered.exists()) == ({}, {}, False)


def test_two_devices_of_one_thread_wait_together(tmp_path):
    kernel = Kernel(tmp_path, cpus=1)
    both = read(ports=[LEFT, RIGHT])
    found = measuring.measure(both, kernel, Host(), lambda _s: None)
    assert [one["idle_s"] for one in found["directions"]] == [0.8, 0.8]


def test_without_a_filter_the_port_is_what_is_known():
    counters = {"far_rx": 5, "far_rx_filter": None}
    watch = measuring.Watch("eth2", None, "nft: not installed on this host")
    assert measuring.arrived(counters, watch) == {
        "received": 5,
        "received_by": "port",
        "filter": "none",
        "filter_reason": "nft: not installed on this host",
    }
    assert watch.read() == Counted(None, None, None)


def test_a_packet_socket_does_not_count_beyond_its_limit():
    class Socket:
        kind = "packet"

    counters = {"far_rx": 2**32, "far_rx_filter": 0}
    found = measuring.arrived(counters, measuring.Watch("eth2", Socket(), "nft: no"))
    assert (found["received"], found["received_by"]) == (2**32, "port")
    assert "which a packet socket cannot count" in found["filter_reason"]


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        ("eth1/carrier", "0\n", "device eth1: carrier 0; wanted a link that is up"),
        ("eth2/mtu", "45\n", "frame_bytes: 64 needs an MTU of 46; eth2 has 45"),
    ],
)
def test_a_device_that_cannot_is_told_before_anything_is_changed(
    net, file, text, message, monkeypatch
):
    monkeypatch.setattr(measuring, "NEGOTIATION_S", 0.0)
    measuring.check_devices(read(), net)
    (net / file).write_text(text)
    with pytest.raises(HostError, match=message):
        measuring.check_devices(read(), net)


def test_a_link_that_was_set_up_just_now_is_waited_for(net, monkeypatch):
    (net / "eth1/carrier").write_text("0\n")
    slept = []

    def sleep(seconds):
        slept.append(seconds)
        if len(slept) == 3:
            (net / "eth1/carrier").write_text("1\n")

    monkeypatch.setattr(measuring.time, "sleep", sleep)
    measuring.check_devices(read(), net)
    assert len(slept) == 3


def test_more_queues_than_a_device_has_and_devices_that_are_not_there(net):
    with pytest.raises(HostError, match="queues: found 2; eth1 has 1 to send by"):
        measuring.check_devices(read(queues=2, flows=2), net)
    with pytest.raises(HostError, match="device eth7: not on this host"):
        measuring.check_devices(read(ports=[{**LEFT, "receive_device": "eth7"}]), net)


SINK = {
    "streams": [
        {"device": "eth1", "ipv4_source": "198.18.0.1", "ipv4_destination": "198.19.0.1"},
        {"device": "eth2", "ipv4_source": "198.19.0.1", "ipv4_destination": "198.18.0.1"},
    ],
    "frame_bytes": 512,
    "flows": 4,
    "udp_port": 9,
    "udp_source_port": 1024,
}


class TestSink:
    @pytest.fixture(autouse=True)
    def boot(self, tmp_path, monkeypatch):
        path = tmp_path / "boot_id"
        path.write_text("boot\n")
        monkeypatch.setattr(record, "BOOT_ID", path)
        return path

    def test_a_beginning_and_an_end(self, tmp_path, net):
        host, path = Host(), tmp_path / "run" / "sink.json"
        watches = sink.start(sink.read_streams(SINK), host, path, net)
        assert [(one["device"], one["packets"], one["reason"]) for one in watches] == [
            ("eth1", 1000, None),
            ("eth2", 1000, None),
        ]
        assert host.tables == {"crossover_sink_0": "eth1", "crossover_sink_1": "eth2"}
        found = sink.stop(1.0, host, path, lambda _s: None)
        assert [(one["device"], one["received"], one["filter"]) for one in found] == [
            ("eth1", 990, "nft"),
            ("eth2", 990, "nft"),
        ]
        assert found[0]["counters"]["far_rx"] == 2000
        assert (host.tables, path.exists()) == ({}, False)

    def test_without_nftables_the_port_counts_and_the_reason_is_kept(self, tmp_path, net):
        host, path = Host(without=("nft",)), tmp_path / "sink.json"
        sink.start(sink.read_streams(SINK), host, path, net)
        (one, _two) = sink.stop(0, host, path, lambda _s: None)
        assert (one["received"], one["received_by"]) == (2000, "port")
        assert one["filter_reason"] == "nft: nft: Operation not supported"

    def test_a_second_beginning_replaces_the_first(self, tmp_path, net):
        host, path = Host(), tmp_path / "sink.json"
        sink.start(sink.read_streams(SINK), host, path, net)
        sink.start(sink.read_streams({**SINK, "streams": SINK["streams"][1:]}), host, path, net)
        assert host.tables == {"crossover_sink_0": "eth2"}
        assert sink.forget(host, path) is True
        assert sink.forget(host, path) is False

    def test_an_end_without_a_beginning_of_this_boot_is_an_error(self, tmp_path, net, boot):
        path = tmp_path / "sink.json"
        with pytest.raises(HostError, match="nothing is being counted; wanted started before"):
            sink.stop(0, Host(), path, lambda _s: None)
        sink.start(sink.read_streams(SINK), Host(), path, net)
        boot.write_text("another\n")
        with pytest.raises(HostError, match="nothing is being counted"):
            sink.stop(0, Host(), path, lambda _s: None)

    @pytest.mark.parametrize(
        ("changed", "message"),
        [
            ({"streams": []}, "streams: found none"),
            ({"streams": [SINK["streams"][0]] * 2}, "streams: found one device twice"),
            ({"frame_bytes": 10}, r"streams\[0\]\.frame_bytes: found 10; wanted 64 to 65535"),
        ],
    )
    def test_what_cannot_be_counted_is_told(self, changed, message):
        with pytest.raises(HostError, match=message):
            sink.read_streams({**SINK, **changed})
