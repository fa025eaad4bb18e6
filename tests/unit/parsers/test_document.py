"""Loading: any bytes become numbered lines; nothing is repaired in silence."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.errors import InputError, UsageError
from collector.parsers import read
from collector.parsers.document import dequote, from_bytes, from_text, load


def texts(data: bytes) -> list[str]:
    return [line.text for line in from_bytes(data, "f").lines]


def test_line_ends_of_all_kinds_and_numbers_from_one() -> None:
    document = from_bytes(b"a\r\nb\rc\nd", "f")
    assert [(line.number, line.text) for line in document.lines] == [
        (1, "a"),
        (2, "b"),
        (3, "c"),
        (4, "d"),
    ]


@pytest.mark.parametrize(
    "data",
    [b"\xef\xbb\xbfx 1\n", "x 1\n".encode("utf-16"), b"\xfe\xff" + "x 1\n".encode("utf-16-be")],
)
def test_byte_order_marks(data: bytes) -> None:
    assert texts(data) == ["x 1"]


def test_bytes_that_are_no_text_stay_visible() -> None:
    assert texts(b"9\xff41.28\n9\x0041.28\n") == ["9\ufffd41.28", "9\ufffd41.28"]


def test_colours_and_odd_blanks_are_taken_off() -> None:
    assert texts("\x1b[1;32m$\x1b[0m a\u00a0b\u202fc\n".encode()) == ["$ a b c"]


@pytest.mark.parametrize(
    ("raw", "quote", "rest"),
    [
        ("> a", "> ", "a"),
        (">a", ">", "a"),
        (">> a", ">> ", "a"),
        ("> > >  a", "> > > ", " a"),
        ("| a", "| ", "a"),
        ("> | a", "> | ", "a"),
        (" > a", " > ", "a"),
        (">", ">", ""),
        ("| a | b |", "", "| a | b |"),
        (">100_SECS: 0", "", ">100_SECS: 0"),
        ("> >100_SECS: 0", "> ", ">100_SECS: 0"),
        ("a > b", "", "a > b"),
    ],
)
def test_mail_quoting(raw: str, quote: str, rest: str) -> None:
    assert dequote(raw) == (quote, rest)


@given(st.binary(max_size=200))
def test_any_bytes_load(data: bytes) -> None:
    document = from_bytes(data, "f")
    assert [line.number for line in document.lines] == list(range(1, len(document.lines) + 1))


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no readable file .*; wanted a file with tool output"):
        load(str(tmp_path / "missing"))
    with pytest.raises(InputError, match="directory"):
        load(str(tmp_path))


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"a\n")))
    document = load("-")
    assert (document.file, document.text) == ("<stdin>", "a")


def test_nothing_recognised_names_what_was_wanted() -> None:
    (problem,) = read(from_text("hello\n", "f")).problems
    assert str(problem).startswith("f:1: found nothing of it, but 'hello'; wanted output of one of")
    (problem,) = read(from_text("", "f")).problems
    assert "no text" in str(problem)
    (problem,) = read(from_text("hello\n", "f"), "iperf3").problems
    assert "iperf3" in str(problem)


def test_unknown_tool() -> None:
    with pytest.raises(UsageError, match="found 'nuttcp'; wanted one of: netperf, "):
        read(from_text("", "f"), "nuttcp")


def test_the_escapes_of_markdown_go() -> None:
    document = from_text("port 0 AF\\_INET\n\\[  5\\]   0.00-1.00\n")
    assert document.text == "port 0 AF_INET\n[  5]   0.00-1.00"
    assert from_text('{"text": "a\\nb\\"c"}').text == '{"text": "a\\nb\\"c"}'
