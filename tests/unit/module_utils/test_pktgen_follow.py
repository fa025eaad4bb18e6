"""When a generator begins that another host's is to be followed by."""

import pytest

from ansible_collections.crossover.lab.plugins.module_utils import pktgen_begin as begins
from ansible_collections.crossover.lab.plugins.module_utils import pktgen_follow as following
from ansible_collections.crossover.lab.plugins.module_utils import pktgen_measure as measuring
from ansible_collections.crossover.lab.plugins.module_utils.host.errors import HostError

from .pktgen_kernel import Kernel
from .test_pktgen_measure import Host
from .test_pktgen_trial import read

FOLLOW = {"device": "eth1", "packets": 7, "limit_s": 10}
BEGIN = begins.read_begin(0, FOLLOW)
STREAM = read().ports[0].stream


def seen(begin=BEGIN, packets=7, arrived=12.5, slept=None):
    asked = []

    def first(device, stream, limit_s):
        asked.append((device, stream.source, stream.destination, limit_s))
        return arrived

    found = following.await_begin(
        begin, STREAM, lambda _device: packets, first, ([] if slept is None else slept).append
    )
    return found, asked


def test_without_another_host_there_is_nothing_to_see():
    slept = []
    assert seen(begins.AT_ONCE, slept=slept) == (None, [])
    assert slept == []
    assert seen(begins.read_begin(1.5, None), slept=slept) == (None, [])
    assert slept == [1.5]


def test_the_first_frame_of_the_same_stream_the_other_way_is_waited_for():
    found, asked = seen()
    assert asked == [("eth1", STREAM.destination, STREAM.source, 10)]
    assert found == begins.Seen("in time", 12.5)
    assert begins.begun(found, 12.75) == begins.Begun("in time", 0.25)


def test_frames_that_were_there_before_are_told():
    found, asked = seen(packets=8)
    assert (found.how, asked) == ("late", [])
    assert begins.begun(found, 12.75) == begins.Begun("late", None)


def test_frames_that_never_come_are_told():
    found, _ = seen(arrived=None)
    assert begins.begun(found, 12.75) == begins.Begun("never", None)


@pytest.mark.parametrize(
    ("lead_s", "follow", "text"),
    [
        (-1, None, "lead_s: found -1; wanted 0 to 600"),
        (0, {**FOLLOW, "limit_s": 601}, "follow.limit_s: found 601; wanted 0 to 600"),
        (0, {**FOLLOW, "packets": -1}, "follow.packets: found -1; wanted a count"),
    ],
)
def test_what_is_no_beginning(lead_s, follow, text):
    with pytest.raises(HostError, match=f"^{text}$"):
        begins.read_begin(lead_s, follow)


def test_the_longest_wait_is_known_beforehand():
    assert begins.read_begin(2, FOLLOW).longest_s == 12


def test_a_device_that_is_not_there_is_told(tmp_path):
    with pytest.raises(HostError, match=r"^follow.device eth1: .*No such file"):
        following.received("eth1", tmp_path)
    folder = tmp_path / "eth1" / "statistics"
    folder.mkdir(parents=True)
    (folder / "rx_packets").write_text("12\n")
    assert following.received("eth1", tmp_path) == 12


def test_a_trial_says_how_it_began(tmp_path, monkeypatch):
    kernel = Kernel(tmp_path)
    monkeypatch.setattr(
        measuring, "await_begin", lambda begin, _stream: begins.Seen("in time", begin.lead_s)
    )
    found = measuring.measure(read(follow=FOLLOW), kernel, Host(), lambda _s: None)
    assert found["followed"] == {"how": "in time", "lag_s": pytest.approx(kernel.FIRST_S)}
    assert kernel.waits == [10]
