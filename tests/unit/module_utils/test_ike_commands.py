"""An IKE daemon by hand: its files, what is run, in which order, and no secret that stays."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.crossover.lab.plugins.module_utils import ike_commands
from ansible_collections.crossover.lab.plugins.module_utils.ike_commands import by_hand
from ansible_collections.crossover.lab.plugins.module_utils.ike_config import (
    FOLDERS,
    configuration,
)
from ansible_collections.crossover.lab.plugins.module_utils.ipsec_declared import (
    Connection,
    read_connections,
)
from tests.unit.typed import type_in

ENDS4 = ["198.18.0.1", "198.18.0.2"]
ENDS6 = ["2001:db8:18::1", "2001:db8:18::2"]
CONTEXT = "unconfined_u:unconfined_r:unconfined_t:s0"
SECRET = "a text that both hosts are given"
PROGRAMS = ("ipsec", "systemd-run", "swanctl", "restorecon", "runcon", "whack", "sleep")
# What the daemon has read by the time that its unit is ready, and what pluto then says.
STARTED = """
if [ "$(basename "$0")" = systemd-run ]; then
    cat {folder}/secrets {folder}/swanctl.conf >{folder}/read 2>/dev/null
    for n in 1 2 3 4; do echo 'added IKEv2 connection'; done >{folder}/log
    echo 'loading secrets from' >>{folder}/log
fi
"""


def declared(**values: Any) -> tuple[Connection, ...]:
    items = read_connections([{"name": "test", "ends": ENDS4, **values}])
    return tuple(replace(item, label=CONTEXT) if item.label else item for item in items)


def typed(
    keying: str,
    connections: tuple[Connection, ...],
    end: int,
    folder: Path,
    level: str | None = None,
) -> list[list[str]]:
    """Type the commands where the daemon's folder is below ``folder``; what was run."""
    lines = by_hand(keying, connections, [end] * len(connections), level)
    place = str(folder / "run")
    moved = [
        line.replace("/run/pluto", place).replace("/usr/libexec/ipsec/whack --init", "whack --init")
        for line in lines
    ]  # fmt: skip
    more = STARTED.format(folder=FOLDERS[keying].replace("/run/pluto", place))
    noted, _done = type_in(moved, folder, PROGRAMS, more, SECRET=SECRET)
    return [[word.replace(place, "/run/pluto") for word in argv] for argv in noted]


def made(keying: str, folder: Path, name: str) -> Path:
    return folder / "run" / Path(FOLDERS[keying]).name / name


def test_libreswan_is_started_as_the_module_starts_it(tmp_path: Path) -> None:
    connections = declared(selectors=[{"protocol": "tcp"}, {"protocol": "udp"}])
    run = typed("libreswan", connections, 0, tmp_path)
    wanted = [ike_commands.INITNSS, ike_commands.PLUTO]
    assert [argv for argv in run if argv[0] != "restorecon"] == [
        *(list(argv) for argv in wanted),
        ["whack", "--initiate", "--asynchronous", "--name", "crossover-test-1"],
        ["whack", "--initiate", "--asynchronous", "--name", "crossover-test-2"],
    ]
    text = made("libreswan", tmp_path, "ipsec.conf").read_text()
    config = configuration("libreswan", connections, [0])
    assert text.replace(str(tmp_path / "run"), "/run/pluto") == config


def test_strongswan_is_started_as_the_module_starts_it(tmp_path: Path) -> None:
    run = typed("strongswan", declared(), 0, tmp_path)
    assert [argv for argv in run if argv[0] != "restorecon"] == [
        list(ike_commands.CHARON),
        list(ike_commands.LOAD),
        list(ike_commands.initiate("strongswan", "crossover-test")),
    ]
    text = made("strongswan", tmp_path, "strongswan.conf").read_text()
    assert text.replace(str(tmp_path / "run"), "/run/pluto") == ike_commands.CHARON_SETTINGS
    read = made("strongswan", tmp_path, "read").read_text()
    assert read.startswith(configuration("strongswan", declared(), [0]))


@pytest.mark.parametrize("keying", list(FOLDERS))
def test_both_hosts_read_one_key_and_none_keeps_it(keying: str, tmp_path: Path) -> None:
    connections = read_connections(
        [
            {"name": "a", "ends": ENDS4, "selectors": [{"protocol": "tcp"}]},
            {"name": "b", "ends": ENDS4, "selectors": [{"protocol": "udp"}]},
            {"name": "six", "ends": ENDS6},
        ]
    )
    keys = []
    for end in (0, 1):
        folder = tmp_path / str(end)
        folder.mkdir()
        typed(keying, connections, end, folder)
        text = made(keying, folder, "read").read_text()
        keys.append({word.strip('"') for word in text.split() if word.strip('"').startswith("0x")})
        left = "".join(
            path.read_text() for path in made(keying, folder, "").iterdir()
            if path.is_file() and path.name != "read"
        )  # fmt: skip
        assert not any(key in left for key in keys[-1])
    assert keys[0] == keys[1]
    assert [len(key) for key in keys[0]] == [66, 66]


@pytest.mark.parametrize("end", [0, 1])
def test_the_first_end_asks_for_labelled_sas_with_a_packet_of_the_level(
    end: int, tmp_path: Path
) -> None:
    connections = declared(label="process")
    run = typed("libreswan", connections, end, tmp_path, "s0:c0.c239")
    asked = [argv for argv in run if argv[0] == "runcon"]
    sent = "echo >/dev/udp/198.18.0.2/9"
    wanted = ["runcon", "-l", "s0:c0.c239", "timeout", "5", "bash", "-c", sent]
    assert asked == ([wanted] if end == 0 else [])
    assert not any(argv[0] == "whack" for argv in run)


def test_nothing_declared_is_nothing_to_type() -> None:
    assert by_hand("libreswan", (), (), None) == []
