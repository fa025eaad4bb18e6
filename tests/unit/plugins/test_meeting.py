"""Two workers of one task that work hand in hand."""

import socket
import threading

import pytest

from ansible_collections.crossover.lab.plugins.plugin_utils.meeting import (
    MeetingError,
    Pair,
    following,
    leading,
    serve,
)


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A path that is short wherever the tests are run."""
    monkeypatch.chdir(tmp_path)
    return "meeting"


class Far:
    """The other worker, in a thread of its own."""

    def __init__(self, place, execute):
        self.calls, self.error = None, None
        self._thread = threading.Thread(target=self._work, args=(place, execute))
        self._thread.start()

    def _work(self, place, execute):
        try:
            with following(place, "near", 30) as line:
                self.calls = serve(line, execute)
        except Exception as error:
            self.error = error

    def end(self):
        self._thread.join(30)
        assert not self._thread.is_alive()


def echo(host):
    return lambda name, arguments: {"host": host, "name": name, **arguments}


def test_calls_are_made_on_both_hosts_and_answered(place):
    far = Far(place, echo("far"))
    with leading(place, "far", 30) as line:
        pair = Pair("near", echo("near"), line, "far")
        both = pair.together({"far": ("send", {"n": 1}), "near": ("count", {"n": 2})})
        one = pair.together({"far": ("stop", {"text": "ä"})})
        own = pair.together({"near": ("stop", {})})
    far.end()
    assert both == {
        "near": {"host": "near", "name": "count", "n": 2},
        "far": {"host": "far", "name": "send", "n": 1},
    }
    assert one == {"far": {"host": "far", "name": "stop", "text": "ä"}}
    assert list(own) == ["near"]
    assert (far.calls, far.error) == (2, None)


def test_both_are_at_work_at_the_same_time(place):
    meet = threading.Barrier(2, timeout=30)

    def execute(_name, _arguments):
        meet.wait()  # each goes on only when the other is there
        return {}

    far = Far(place, execute)
    with leading(place, "far", 30) as line:
        pair = Pair("near", execute, line, "far")
        assert pair.together({"near": ("send", {}), "far": ("send", {})}) == {"near": {}, "far": {}}
    far.end()


def test_what_the_other_host_could_not_do_is_told_to_both(place):
    def refuse(_name, _arguments):
        raise OSError("no route to host")

    far = Far(place, refuse)
    with leading(place, "far", 30) as line:
        pair = Pair("near", echo("near"), line, "far")
        answer = pair.together({"far": ("send", {})})["far"]
        assert answer == {"failed": True, "msg": "no route to host"}
        with pytest.raises(MeetingError, match="the task on far has ended"):
            pair.together({"far": ("send", {})})
    far.end()
    assert str(far.error) == "no route to host"


def test_the_end_of_the_one_that_leads_ends_the_other(place):
    far = Far(place, echo("far"))
    with pytest.raises(ValueError, match="the search"), leading(place, "far", 30):
        raise ValueError("the search failed")
    far.end()
    assert (far.calls, far.error) == (0, None)


@pytest.mark.parametrize("meet", [leading, following])
def test_the_only_one_that_came_says_what_was_wanted(place, meet):
    wanted = "the task on far did not begin within 0.1 s; .* wanted forks of 2 or more"
    with pytest.raises(MeetingError, match=wanted), meet(place, "far", 0.1):
        pytest.fail("nobody came")


@pytest.mark.parametrize("meet", [leading, following])
def test_a_path_that_is_too_long_for_a_socket_is_told(tmp_path, meet):
    place = str(tmp_path / ("x" * 120))
    with pytest.raises(MeetingError, match="a shorter local_tmp may help"), meet(place, "far", 1):
        pytest.fail("nobody came")


def test_a_third_host_is_none_of_the_two():
    near, far = socket.socketpair()
    with near, far:
        pair = Pair("near", echo("near"), near, "far")
        with pytest.raises(MeetingError, match=r"^third: wanted near or far$"):
            pair.together({"third": ("send", {})})
