"""Damaged input: right, or a problem; never an exception, a key or a number from nowhere."""

import json
import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kernel_documents import DATA, document, real

from collector.parsers import avc, interrupts, ip_link, netlabelctl, proc_stat, xfrm, xfrm_stat
from collector.parsers.base import as_json

PARSERS = (avc, interrupts, ip_link, netlabelctl, proc_stat, xfrm, xfrm_stat)
KEYS = ("000102030405060708090a0b0c0d0e0f", "ENCAUTHKEY")
TEXTS = {
    name: (DATA / "cases" / f"{name}.txt").read_text()
    for name in ("34-a", "37-a", "39-a", "40-a", "40-b", "41-a", "43-a", "44-a")
} | {
    name: real(name)
    for name in (
        "ip-s-s-d-link.txt", "ip-s-s-d-j-link.json", "ip-s-xfrm-policy.txt",
        "ip-s-xfrm-state.txt", "proc-interrupts.txt", "proc-stat.txt", "xfrm_stat.txt",
    )
}  # fmt: skip


@st.composite
def damaged(draw):
    """One of the texts with lines dropped, doubled, swapped, cut, wrapped or altered."""
    text = TEXTS[draw(st.sampled_from(sorted(TEXTS)))]
    lines = text.splitlines()
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(lines) - 1))
        action = draw(st.sampled_from(["drop", "double", "swap", "cut", "wrap", "alter", "indent"]))
        line = lines[at]
        spot = draw(st.integers(0, len(line)))
        if action == "drop" and len(lines) > 1:
            del lines[at]
        elif action == "double":
            lines.insert(at, line)
        elif action == "swap":
            other = draw(st.integers(0, len(lines) - 1))
            lines[at], lines[other] = lines[other], line
        elif action == "cut":
            lines = [*lines[:at], line[:spot]]
        elif action == "wrap":
            lines[at : at + 1] = [line[:spot], line[spot:]]
        elif action == "indent":
            lines[at] = line.strip()
        else:
            lines[at] = line[:spot] + draw(st.text(max_size=3)) + line[spot + 1 :]
    return "\n".join(lines)


# The first draw of a character loads the Unicode tables, which the health check takes for slowness.
@settings(max_examples=150, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(damaged())
def test_damaged_text_gives_records_or_problems(text):
    source = document(text)
    for parser in PARSERS:
        parser.recognise(source)
        reading = parser.parse(source)
        shown = json.dumps(as_json(reading.records), allow_nan=False)
        shown += " ".join(str(item) for item in reading.problems)
        assert "0102030405060708" not in shown
        assert all(item.file and item.line >= 1 and item.wanted for item in reading.problems)
        given_numbers = set(re.findall(r"[0-9]+", text))
        for record in reading.records:
            assert 1 <= record.source.line <= record.source.last_line <= len(source.lines)
            if record.kind == "xfrm_stat":
                assert {str(count) for count in record.counters.values()} <= given_numbers
            elif record.kind == "link":
                counts = [*record.rx.values(), *record.tx.values()]
                assert {str(count) for count in counts} <= given_numbers


@settings(deadline=None)
@given(st.text())
def test_any_text_is_survived(text):
    for parser in PARSERS:
        parser.recognise(document(text))
        parser.parse(document(text))


@pytest.mark.parametrize("name", sorted(TEXTS))
def test_every_line_dropped_once(name):
    """With a line missing, what is still read is what was read before, or less."""
    lines = TEXTS[name].splitlines()
    for at in range(len(lines)):
        source = document("\n".join([*lines[:at], *lines[at + 1 :]]))
        for parser in PARSERS:
            shown = json.dumps(as_json(parser.parse(source).records))
            assert not any(key in shown for key in KEYS)


@pytest.mark.parametrize("name", ["40-a", "ip-s-xfrm-state.txt", "ip-s-xfrm-policy.txt"])
def test_a_doubled_line_of_a_block_is_never_taken_as_two(name):
    """Every line of a block stands once, but for a bitmap's and a template's."""
    lines = TEXTS[name].splitlines()
    whole = as_json(xfrm.parse(document("\n".join(lines))).records)
    for at, line in enumerate(lines):
        if line.startswith("src ") or re.fullmatch(r"\t(stats:|lifetime \w+:)?", line):
            continue
        reading = xfrm.parse(document("\n".join([*lines[: at + 1], *lines[at:]])))
        if not reading.problems:
            kept = as_json(reading.records)
            assert [item["state" if "state" in item else "policy"] for item in kept] == [
                item["state" if "state" in item else "policy"] for item in whole
            ], line
