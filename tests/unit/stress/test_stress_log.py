"""stress.jsonl: written so that a killed controller loses and doubles nothing, read strictly."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import stress_factory as factory
from hypothesis import given
from hypothesis import strategies as st

from collector.errors import InputError
from collector.stress.log import (
    LOG_FILE,
    append_event,
    append_failed_poll,
    append_poll,
    parse_log,
    read_log,
    read_rates,
)


def host_lines(host: str) -> list[str]:
    """A host's own lines, as its program writes them."""
    found = []
    for item in factory.lines(10):
        if item["host"] == host:
            del item["host"]
            found.append(json.dumps(item))
    return found


def answer(lines: list[str], start: int, end: int) -> dict[str, object]:
    """What the module returns for a part of the lines."""
    return {
        "lines": lines[start:end],
        "offset": sum(len(line) + 1 for line in lines[:end]),
        "active": True,
        "identity": {"boot_id": "c0ffee"},
        "time": 1_800_000_000.0,
        "words": "",
        "clock": {"offset_s": 0.1, "uncertainty_s": 0.01},
        "more": False,
    }


def test_what_is_polled_is_read_back(tmp_path: Path) -> None:
    lines = host_lines("client")
    append_event(tmp_path, "started")
    assert append_poll(tmp_path, "client", answer(lines, 0, 5)) == 5
    found = read_log(tmp_path)
    assert [sample.seq for sample in found.samples["client"]] == [0, 1, 2, 3, 4]
    assert found.offset("client") == sum(len(line) + 1 for line in lines[:5])
    assert found.offset("server") == 0
    assert found.events[0].endswith("started")
    assert not found.ended
    poll = found.polls["client"][0]
    assert (poll.active, poll.clock_offset_s, poll.error) == (True, 0.1, None)


def test_a_poll_without_an_answer_keeps_the_offset(tmp_path: Path) -> None:
    lines = host_lines("client")
    append_poll(tmp_path, "client", answer(lines, 0, 5))
    append_failed_poll(tmp_path, "client, Poll: unreachable")
    found = read_log(tmp_path)
    assert found.polls["client"][-1].error == "client, Poll: unreachable"
    assert found.offset("client") == sum(len(line) + 1 for line in lines[:5])


@given(cut=st.integers(min_value=1, max_value=4000))
def test_a_controller_killed_while_writing_loses_and_doubles_nothing(
    tmp_path_factory: pytest.TempPathFactory, cut: int
) -> None:
    folder = tmp_path_factory.mktemp("run")
    lines = host_lines("client")
    append_poll(folder, "client", answer(lines, 0, 4))
    whole = (folder / LOG_FILE).read_bytes()
    append_poll(folder, "client", answer(lines, 4, 9))
    torn = (folder / LOG_FILE).read_bytes()
    (folder / LOG_FILE).write_bytes(torn[: max(len(whole), len(torn) - cut)])
    # The next controller asks from the last poll that was noted whole.
    offset = read_log(folder).offset("client")
    start = next(i for i in range(10) if sum(len(x) + 1 for x in lines[:i]) == offset)
    append_poll(folder, "client", answer(lines, start, len(lines)))
    found = read_log(folder).samples["client"]
    assert [sample.seq for sample in found] == list(range(len(lines)))


def test_without_a_log_nothing_happened_yet(tmp_path: Path) -> None:
    found = read_log(tmp_path)
    assert found.samples == {"client": (), "server": ()}
    assert found.chunks == ()


def test_sas_are_read_and_those_too_many_are_told() -> None:
    known = {"client": factory.sas(5000), "server": {"text": None, "bytes": 99999, "error": None}}

    def change(sample, minute):
        sample["sas"] = known[sample["host"]]

    found = factory.timeline(factory.lines(2, change=change))
    (sa,) = found.samples["client"][1].sas or ()
    assert (sa.spi, sa.dst, sa.bytes, sa.larval) == (0x1000, "198.18.0.2", 5000, False)
    server = found.samples["server"][1]
    assert server.sas is None
    assert server.sas_error == "99999 bytes of SAs, too many to be kept each time"


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("{", "found no JSON"),
        ('{"schema": 2, "event": "poll"}', "written by a newer version of Crossover"),
        ('{"schema": 1, "event": "x"}', "wanted one of begin, sample, end, poll, controller"),
        ('{"schema": 1, "event": "end", "host": "x"}', "wanted one of client, server"),
        (json.dumps({**factory.poll("client", 1), "x": 1}), "x: found an unknown field"),
    ],
)
def test_a_line_that_is_none_is_an_error_with_its_number(line: str, text: str) -> None:
    with pytest.raises(InputError) as seen:
        parse_log([json.dumps(factory.poll("client", 1)), line], "stress.jsonl")
    assert str(seen.value).startswith("stress.jsonl:2")
    assert text in str(seen.value)


def test_text_that_ip_does_not_print_is_an_error() -> None:
    def change(sample, minute):
        sample["sas"] = {"text": "nonsense", "bytes": 8, "error": None}

    with pytest.raises(InputError, match=r"stress\.jsonl:2: sas: found 'nonsense'"):
        factory.timeline(factory.lines(1, change=change))


def test_rates_are_bits_a_second_and_never_guessed() -> None:
    assert read_rates(factory.output(12.5, 50.25)) == (50.25e6, 12.5e6)
    with pytest.raises(InputError, match=r"wanted 10\^6bits/s"):
        read_rates(factory.output(12.5).replace("10^6bits/s", "KBytes/s"))
    with pytest.raises(InputError, match="wanted a rate"):
        read_rates(factory.output(12.5).replace("THROUGHPUT=12.50", "THROUGHPUT=-1.00"))
