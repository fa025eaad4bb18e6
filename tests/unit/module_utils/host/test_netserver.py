"""netserver: who listens, who is ours, and what is said about strangers.

The processes are real; a Python program stands in for netserver because the host that runs the
tests may have none.
"""

import os
import socket
import subprocess
import sys
import time

import pytest

from ansible_collections.crossover.lab.plugins.module_utils.host import (
    listeners,
    netserver,
    process,
    record,
)
from ansible_collections.crossover.lab.plugins.module_utils.host.errors import BusyError, HostError

STAND_IN = """\
#!{python}
# Listens where -L and -p say, and has a child, as netserver has one a test.
import os, socket, sys, time
words = dict(zip(sys.argv[1:], sys.argv[2:]))
server = socket.socket()
server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
try:
    server.bind((words["-L"].split(",")[0], int(words["-p"])))
except OSError:
    sys.exit("Unable to start netserver")
server.listen()
os.fork()
time.sleep(60)
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Where pid files go; PATH begins with a stand-in for netserver."""
    programs = tmp_path / "bin"
    programs.mkdir()
    program = programs / "netserver"
    program.write_text(STAND_IN.format(python=sys.executable))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    made = tmp_path / "netserver"
    yield made
    for path, server in netserver.recorded(made).items():
        netserver.stop(server, path, 5)


@pytest.fixture
def port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def test_start_find_and_stop(folder, port):
    wanted = netserver.wish("127.0.0.1", port)
    assert netserver.in_the_way(wanted, {}) is None
    server = netserver.start(wanted, 10, folder)
    assert netserver.runs(server)
    ((path, found),) = netserver.recorded(folder).items()
    assert (found.pid, found.argv) == (server.pid, tuple(wanted.argv))
    assert netserver.in_the_way(wanted, {path: found}) is None
    members = process.session_members(server.pid, server.start_ticks)
    assert len(members) == 2
    netserver.stop(found, path, 5)
    netserver.wait_free(found, 5)
    assert not process.session_members(server.pid, server.start_ticks)
    assert list(folder.iterdir()) == []


def test_the_children_of_a_dead_server_are_ours_too(folder, port):
    server = netserver.start(netserver.wish("127.0.0.1", port), 10, folder)
    os.kill(server.pid, 9)
    os.waitpid(server.pid, 0)
    ((path, found),) = netserver.recorded(folder).items()
    assert not netserver.runs(found)
    assert netserver.in_the_way(netserver.wish("127.0.0.1", port), {path: found}) is None
    netserver.stop(found, path, 5)
    netserver.wait_free(found, 5)


def test_a_stranger_is_named_and_left_alone(folder, port):
    argv = [sys.executable, str(folder.parent / "bin" / "netserver"), "-p", str(port)]
    stranger = subprocess.Popen([*argv, "-L", "127.0.0.1,4"], start_new_session=True)
    try:
        wanted = netserver.wish("127.0.0.1", port)
        deadline = time.monotonic() + 10
        while netserver.in_the_way(wanted, {}) is None and time.monotonic() < deadline:
            time.sleep(0.02)
        said = netserver.in_the_way(wanted, {})
        assert f"127.0.0.1 port {port} is taken by process {stranger.pid} (" in said
        assert "netserver" in said
        assert said.endswith("it is not ours and is left alone")
        with pytest.raises(HostError, match=r"ended with 1: Unable to start netserver \(command:"):
            netserver.start(wanted, 10, folder)
        assert stranger.poll() is None
        with pytest.raises(BusyError, match=r"netserver stopped, but 127\.0\.0\.1 port"):
            netserver.wait_free(netserver.Server("127.0.0.1", port, 1, 1, ()), 0)
    finally:
        os.killpg(stranger.pid, 9)
        stranger.wait()


def test_the_distributions_service_is_named_with_its_remedy(monkeypatch):
    monkeypatch.setattr(listeners, "read", lambda: (listeners.Listener("::", 12865, 7),))
    monkeypatch.setattr(listeners, "owner", lambda _inode: 42)
    monkeypatch.setattr(process, "unit", lambda _pid: "netperf.service")
    monkeypatch.setattr(process, "command", lambda _pid: "/usr/bin/netserver")
    said = netserver.in_the_way(netserver.wish("198.18.0.2", 12865), {})
    assert said == (
        ":: port 12865 is taken by process 42 (/usr/bin/netserver), started by the distribution's "
        "netperf.service; remedy: systemctl mask --now netperf.service, which the role bench_host "
        "does"
    )


def test_a_number_that_is_somebody_elses_by_now_is_not_ours(tmp_path):
    mine = process.stat(os.getpid())
    server = netserver.Server("127.0.0.1", 1, mine.pid, mine.start_ticks - 1, ())
    assert not netserver.runs(server)
    assert netserver.runs(netserver.Server("127.0.0.1", 1, mine.pid, mine.start_ticks, ()))


def test_a_pid_file_of_another_boot_is_no_server(folder, monkeypatch, tmp_path):
    server = netserver.Server("127.0.0.1", 1, 1, 1, ("netserver",))
    record.save(folder / "x.json", {"boot_id": "another", **server.as_dict()})
    assert netserver.recorded(folder) == {}


def test_the_label_and_the_namespace_come_before_the_program():
    wanted = netserver.wish("2001:db8::1", 12865, ("--range", "s0:c0"), "blue")
    assert wanted.argv == [
        "nsenter",
        "--net=/run/netns/blue",
        "runcon",
        "--range",
        "s0:c0",
        "netserver",
        "-D",
        "-N",
        "-p",
        "12865",
        "-L",
        "2001:db8::1,6",
    ]
    assert wanted.name == "blue-2001_db8__1-12865"


@pytest.mark.parametrize(
    ("address", "port", "netns", "said"),
    [
        ("server", 12865, "", "netserver address: found 'server'; wanted an IP address"),
        ("198.18.0.2/24", 12865, "", "wanted an IP address"),
        ("198.18.0.2", 0, "", "netserver port: found 0; wanted 1 to 65535"),
        ("198.18.0.2", 12865, "../x", "wanted the name of a namespace"),
    ],
)
def test_a_wish_is_checked(address, port, netns, said):
    with pytest.raises(HostError, match=said):
        netserver.wish(address, port, (), netns)


TCP = """\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 020012C6:3241 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4711 1
   1: 020012C6:3241 010012C6:9C40 01 00000000:00000000 00:00000000 00000000     0        0 4712 1
   2: 00000000000000000000000000000000:0016 00000000000000000000000000000000:0 0A 0:0 0:0 0 0 0 9 1
   3: 0000000000000000FFFF0000020012C6:0017 00000000000000000000000000000000:0 0A 0:0 0:0 0 0 0 8 1
"""


def test_listening_sockets_of_the_kernels_table():
    found = listeners.parse(TCP, "little")
    assert [(item.address, item.port, item.inode) for item in found] == [
        ("198.18.0.2", 12865, 4711),
        ("::", 22, 9),
        ("198.18.0.2", 23, 8),
    ]


@pytest.mark.parametrize(
    ("bound", "wanted", "taken"),
    [
        ("198.18.0.2", "198.18.0.2", True),
        ("198.18.0.2", "198.18.0.1", False),
        ("0.0.0.0", "198.18.0.2", True),
        ("198.18.0.2", "0.0.0.0", True),
        ("0.0.0.0", "2001:db8::1", False),
        ("::", "198.18.0.2", True),
        ("2001:db8::2", "198.18.0.2", False),
    ],
)
def test_which_sockets_are_in_each_others_way(bound, wanted, taken):
    assert listeners.Listener(bound, 1, 1).takes(wanted) is taken


def test_a_command_with_parentheses_does_not_shift_the_fields():
    rest = "S 1 50 50 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 777 0"
    found = process.parse_stat(f"60 (a) b (c) {rest}")
    assert found == process.Stat(60, "S", 50, 50, 777)
    assert process.parse_stat("60 (cut") is None


def test_dropped_connections_are_read_by_name_not_by_place():
    text = (
        "TcpExt: SyncookiesSent ListenOverflows ListenDrops\nTcpExt: 1 2 3\n"
        "IpExt: InNoRoutes ListenDrops\nIpExt: 7 8\n"
    )
    assert listeners.parse_dropped(text) == 3
    assert listeners.parse_dropped("TcpExt: SyncookiesSent\nTcpExt: 1\n") == 0
    assert listeners.dropped() >= 0
