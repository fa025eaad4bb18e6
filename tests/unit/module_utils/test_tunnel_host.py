"""Running steps: in order, ip's as one batch, keys on standard input only, failures told."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.crossover.lab.plugins.module_utils import tunnel_host
from ansible_collections.crossover.lab.plugins.module_utils.tunnel_commands import (
    Place,
    Step,
    create,
)
from ansible_collections.crossover.lab.plugins.module_utils.tunnel_host import Record, Row
from ansible_collections.crossover.lab.plugins.module_utils.tunnel_keys import make_keys
from tests.unit.tunnel_factory import ENDS6, link

# Notes how it was called and what it read; refuses a line with "bad" as ip does.
STAND_IN = """#!/bin/sh
printf '%s %s\\n' "${0##*/}" "$*" >>"$LOG.argv"
n=0
while IFS= read -r line; do
    n=$((n + 1))
    printf '%s\\n' "$line" >>"$LOG.stdin"
    case $line in *bad*)
        echo "RTNETLINK answers: File exists" >&2
        echo "Command failed -:$n" >&2
        exit 1;;
    esac
done
exit 0
"""


@pytest.fixture
def programs(tmp_path, monkeypatch):
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("ip", "wg", "modprobe"):
        (folder / name).write_text(STAND_IN)
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    monkeypatch.setenv("LOG", str(tmp_path / "log"))
    return tmp_path


def lines(programs: Path, what: str) -> list[str]:
    return (programs / f"log.{what}").read_text().splitlines()


def step(text: str) -> Step:
    return Step(tuple(text.split()))


def test_neighbouring_ip_commands_are_one_batch(programs):
    steps = [step("ip link add a"), step("ip link set a up"), step("modprobe fou"), step("ip x")]
    assert tunnel_host.execute(steps, {}) == (4, "")
    assert lines(programs, "argv") == ["ip -batch -", "modprobe fou", "ip -batch -"]
    assert lines(programs, "stdin") == ["link add a", "link set a up", "x"]


def test_the_step_that_is_refused_is_the_first_that_was_not_done(programs):
    steps = [step("ip link add a"), step("ip bad"), step("ip link add b"), step("wg set b")]
    assert tunnel_host.execute(steps, {}) == (1, "RTNETLINK answers: File exists")
    assert lines(programs, "argv") == ["ip -batch -"]


def test_a_program_that_is_not_there_is_named(programs):
    done, said = tunnel_host.execute([step("ip a"), step("no-such-program b")], {})
    assert (done, said) == (1, "no-such-program: not installed on this host")


@pytest.mark.parametrize("sort", ["wireguard", "macsec"])
def test_secret_keys_are_on_standard_input_and_in_no_argument(programs, sort):
    place = Place(link(sort), 0, "eth1", 1400)
    keys = make_keys(place.link, 0, bytes(32))
    steps = create(place)
    assert tunnel_host.execute(steps, keys) == (len(steps), "")
    secret = [value for name, value in keys.items() if not name.endswith(("PEER", "PUBLIC"))]
    given, read = lines(programs, "argv"), lines(programs, "stdin")
    for value in secret:
        assert not any(value in one for one in given)
        assert any(value in one for one in read)
    assert not any("$KEY_" in one for one in given + read)


def test_what_a_program_says_shows_no_key(programs):
    Path(programs / "bin" / "wg").write_text("#!/bin/sh\ncat >&2\nexit 1\n")
    place = Place(link("wireguard"), 0, "eth1", 1400)
    keys = make_keys(place.link, 0, bytes(32))
    done, said = tunnel_host.execute([create(place)[1]], keys)
    assert (done, said) == (0, "$KEY_XT0_PRIVATE")


SHOWS = """#!/bin/sh
case "$*" in
    "-j fou show") echo '[{"port":5555,"ipproto":4,"family":"inet"}]';;
    "-j l2tp show tunnel") echo '[{"tunnel_id":42,"peer_tunnel":42,"encap":"UDP"}]';;
    *) exit 3;;
esac
"""


def test_what_is_left_of_links_whose_device_is_gone_is_found(programs):
    (programs / "bin" / "ip").write_text(SHOWS)
    bridge = programs / "bin" / "ovs-vsctl"
    bridge.write_text('#!/bin/sh\n[ "$*" = "--timeout=5 br-exists br" ]\n')
    bridge.chmod(0o755)
    links = [
        link("fou", name="four"), link("fou", name="six", ends=ENDS6), link("gue", name="gue"),
        link("l2tp", name="l2tp"), link("l2tp", name="other", id=43), link("ovs", name="br"),
        link("ovs", name="no"), link("vxlan", name="vx"), link("fou", name="here"),
    ]  # fmt: skip
    places = [Place(one, 0, "eth1", 1400) for one in links]
    assert tunnel_host.read_remains(places, {"here": {}}) == ["four", "l2tp", "br"]
    bridge.unlink()
    assert tunnel_host.read_remains(places[5:8], {}) == []


def test_the_record_holds_places_and_no_key(tmp_path, monkeypatch):
    monkeypatch.setattr(tunnel_host, "RECORD", tmp_path / "tunnel.json")
    assert tunnel_host.read_record() == Record()
    rows = tuple(
        Row(Place(link(sort, name=f"x{number}"), 1, "eth1", 1400), "generation")
        for number, sort in enumerate(("vxlan", "wireguard", "macsec"))
    )
    record = Record(rows, (("eth1 generic-receive-offload", "on"),))
    tunnel_host.write_record(record)
    # Not the same classes: the factory's come from the offline side's name of the module.
    assert tunnel_host.read_record().as_dict() == record.as_dict()
    assert "KEY" not in (tmp_path / "tunnel.json").read_text()
    assert record.generation("x1") == "generation"
    assert record.generation("y") is None
    tunnel_host.write_record(Record())
    assert not (tmp_path / "tunnel.json").exists()


def test_a_record_of_another_shape_is_named(tmp_path, monkeypatch):
    path = tmp_path / "tunnel.json"
    monkeypatch.setattr(tunnel_host, "RECORD", path)
    path.write_text('{"schema": 1, "links": [{}], "offloads": []}')
    with pytest.raises(tunnel_host.TunnelError, match=str(path)):
        tunnel_host.read_record()
