"""pktgen of the Linux kernel: /proc/net/pktgen files and the output of samples/pktgen scripts.

Formats: pktgen_if_show, pktgen_thread_show and show_results in net/core/pktgen.c; the scripts
print ``Device: eth0@0`` with the result lines, or ``Result device: eth0`` with the whole file.
pktgen counts packets that it handed to the driver or the qdisc: a *generated* rate, which says
nothing of what was on the wire. Its packet size is without the frame check sequence (FCS).
"""

from __future__ import annotations

import re
from dataclasses import replace

from collector.kernel_state.pktgen import FIELDS, RESULT

from .base import Document, Failure, Line, Problem, Reading, Source, Status, in_order
from .pktgen_record import TOOL, Block, PktgenResult, changes, rate_line, run, threads

__all__ = ["TOOL", "PktgenResult", "parse", "recognise"]

_RESULT = re.compile(RESULT)
_RATE = re.compile(
    r"(?<![\d.,])(?P<pps>\d+)\s*pps\s+(?P<mbps>\d+)\s*Mb/sec\s*\(\s*(?P<bps>\d+)\s*bps\s*\)"
    r"(?:\s*errors:\s*(?P<errors>\d+)(?![\d.,]))?(?!\s*errors)"
)
_LOOSE_RESULT = re.compile(r"Result:\s*OK:\s*[\d.,]+\s*\(|\bc\d+\+d\d+\)\s*usec")
_LOOSE_RATE = re.compile(r"\bMb/sec\s*\(|[\d.,]+pps\s+[\d.,]+\s*Mb/sec")
_DEVICE = re.compile(r"^\s*(?:Result )?[Dd]evice:\s*(?P<device>\S+)\s*$")
_PROC = re.compile(r"/proc/net/pktgen/(?P<device>[\w.@:-]+)\s*(?:<==|:)?\s*$")
_PARAMS = re.compile(r"^\s*Params:\s*count\s+(?P<count>\d+)\b")
_OTHER_RESULT = re.compile(r"^\s*Result:\s*(?P<text>.+)$")
_FIELDS = {name: re.compile(pattern) for name, pattern in FIELDS.items()} | {
    "xmit_mode": re.compile(r"\bxmit_mode:\s*(\w+)"),
    "imix_weights": re.compile(r"\bimix_weights:\s*((?:\d+,\d+\s*)+)$"),
    "imix_counts": re.compile(r"\bimix(?:_size)?_counts:\s*((?:\d+,\d+\s*)+)$"),
}
_BLOCK = re.compile(
    r"^\s*(?:Params:|frags:|flows:|queue_map_min:|skb_priority:|dst_min:|src_min:|[sd]addr:"
    r"|src_mac:|dst_mac:|udp_src_min:|src_mac_count:|dst_mac_count:|Flags:|Current:|pkts-sofar:"
    r"|started:|seq_num:|cur_|node:|xmit_mode:|burst:|mpls:|vlan_id:|svlan_id:|tos:|traffic_class:"
    r"|imix|min_pkt_size:)"
)
_NOISE = re.compile(
    r"^\s*(?:Running\.\.\. ctrl\^C to stop|Done|Running:.*|Stopped:.*|Name: kpktgend_\d+.*"
    r"|Packet Generator for packet performance testing\..*)\s*$"
)
_ERROR = re.compile(
    r"(?P<text>(?:ERROR:\s*)?(?:Write error\(\d+\) occurred|Please specify output device|"
    r"Unable to load module pktgen|.*\bModule pktgen not found|"
    r"/proc/net/pktgen.*(?:not|No).*|.*\bpktgen\b.*(?:not loaded|No such)).*)"
)
_NO_MODULE = re.compile(r"Unable to load module pktgen|\bModule pktgen not found")
_WIRE = re.compile(r"on the wire:?\s*(?:about |~ ?)?(\d+)\s*(k?)pps")
_CONTEXT = re.compile(r"\(\s*count\s+(?P<count>\d+)\s*\((?P<size>\d+)byte,\s*(?P<frags>\d+)frags\)")
_STARTS = re.compile(rf"{_BLOCK.pattern}|^\s*(?:Result )?[Dd]evice:|^\s*Result:")
_HEADING = re.compile(r"^\s*(?P<label>[A-Za-z][^:|/]{0,58}?)\s*:\s*$")
_LABEL = re.compile(r"^(?P<label>[A-Za-z][^:|]*?)\s*:\s*(?=\d+pps)")


def recognise(document: Document) -> bool:
    """Whether the document holds pktgen results, parameters or script errors."""
    return any(
        _LOOSE_RESULT.search(line.text)
        or _LOOSE_RATE.search(line.text)
        or _PARAMS.match(line.text)
        or "pkts-sofar:" in line.text
        or "/proc/net/pktgen" in line.text
        or _NO_MODULE.search(line.text)
        for line in document.lines
    )


def parse(document: Document) -> Reading:
    """Read every device report and rate line, then totals over threads and differences.

    Quoting, lost leading blanks and rows broken by a mail program are accepted. A result or rate
    line that does not match is a problem, and its report is ``suspect``.
    """
    return _Pass(document).read()


class _Pass:
    """One pass over a document."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.reading = Reading()
        self.block: Block | None = None
        self.runs: list[PktgenResult] = []
        self.rates: list[PktgenResult] = []
        self.heading: str | None = None

    def read(self) -> Reading:
        index = 0
        while index < len(self.document.lines):
            index += self._take(index)
        self._close()
        file = self.document.file
        found = [*self.reading.records, *self.runs, *threads(file, self.runs), *self.rates]
        labelled = [one for one in self.runs if one.label]
        self.reading.records = in_order([*found, *changes(self.rates), *changes(labelled)])
        return self.reading

    def _close(self) -> None:
        if self.block and self.block.has_content:
            self.runs.append(run(self.document.file, self.block))
        self.block = None

    def _open(self, number: int) -> Block:
        if self.block is None:
            self.block = Block(number, number, label=self.heading)
            self.heading = None
        return self.block

    def _take(self, index: int) -> int:
        """Read the line at ``index`` with its continuation; returns how many lines were used."""
        line = self.document.lines[index]
        device = _DEVICE.match(line.text) or _PROC.search(line.text)
        again = _PARAMS.match(line.text) and self.block and (self.block.params or self.block.result)
        if device or again:
            self._close()
        if device:
            self.block = Block(line.number, line.number, device["device"])
            self.reading.claimed.add(line.number)
            return 1
        if _LOOSE_RESULT.search(line.text):
            return self._take_result(index)
        if _LOOSE_RATE.search(line.text) or self._half_rate(index):
            return self._take_rate(index)
        self._note(line)
        return 1

    def _take_result(self, index: int) -> int:
        match, used = _joined(self.document, index, _RESULT, whole=None)
        if match is None:
            return self._bad(index, '"Result: OK: N(cN+dN) usec, N (Nbyte,Nfrags)"')
        if self.block and (self.block.result or self.block.rate):
            self._close()
        self._claim(index, used, self._open(self.document.lines[index].number))
        assert self.block is not None
        self.block.result = match
        # Linux 2.4 prints both on one line.
        self.block.rate = _RATE.search(match.string[match.end() :])
        return used

    def _take_rate(self, index: int) -> int:
        match, used = _joined(self.document, index, _RATE, whole="errors")
        if match is None:
            return self._bad(index, '"Npps NMb/sec (Nbps) errors: N" with whole numbers')
        line = self.document.lines[index]
        label = _LABEL.match(line.text.strip())
        if label or self.block is None or self.block.rate:
            self._close()
            self._claim(index, used, None)
            self.rates.append(
                rate_line(self.document.file, line, label["label"] if label else None, match)
            )
            return used
        self._claim(index, used, self.block)
        self.block.rate = match
        return used

    def _claim(self, index: int, used: int, block: Block | None) -> None:
        numbers = [line.number for line in self.document.lines[index : index + used]]
        self.reading.claimed.update(numbers)
        if block:
            block.last = numbers[-1]

    def _bad(self, index: int, wanted: str) -> int:
        line = self.document.lines[index]
        self.reading.problems.append(Problem.of_line(self.document.file, line, wanted))
        block = self._open(line.number)
        block.damaged = True
        self._claim(index, 1, block)
        return 1

    def _half_rate(self, index: int) -> bool:
        """Whether a rate line begins here that was broken before ``Mb/sec``."""
        if not re.match(r"^\s*\d+\s*pps\b", self.document.lines[index].text):
            return False
        return _joined(self.document, index, _RATE, whole="errors")[0] is not None

    def _note(self, line: Line) -> None:
        """Take in a line that is no result: parameters, counters, errors, notes on the wire."""
        text, number = line.text, line.number
        if _BLOCK.match(text):
            block = self._open(number)
            block.params = True
            for name, pattern in _FIELDS.items():
                if match := pattern.search(text):
                    block.facts[name] = match[1]
            block.last = number
        elif error := _ERROR.search(text):
            self.reading.records.append(
                PktgenResult(
                    tool=TOOL,
                    kind="run",
                    status=Status.FAILED,
                    source=Source(self.document.file, number, number),
                    failure=Failure("tool_error", error["text"].strip()),
                    device=self.block.device if self.block else None,
                )
            )
        elif self.block and (other := _OTHER_RESULT.match(text)):
            self.block.other, self.block.last = other["text"].strip(), number
        elif self.rates and (_WIRE.search(text) or _CONTEXT.search(text)):
            self._context(text)
        elif heading := _HEADING.match(text):
            self._close()
            self.heading = heading["label"]
            return
        elif not _NOISE.match(text):
            return
        self.reading.claimed.add(number)

    def _context(self, text: str) -> None:
        """Words below rate lines: how many packets of what size, how many on the wire."""
        wire, context = _WIRE.search(text), _CONTEXT.search(text)
        for i, found in enumerate(self.rates):
            rate = found
            if wire:
                pps = float(wire[1]) * (1000 if wire[2] else 1)
                generated = rate.packets_per_second or 0.0
                rate = replace(
                    rate,
                    wire_packets_per_second=pps,
                    wire_share_pct=100 * pps / generated if generated else None,
                    warnings=(*rate.warnings, "the wire rate is as the text says, not a counter"),
                )
            if context:
                rate = replace(
                    rate,
                    requested_packets=int(context["count"]),
                    frame_bytes=int(context["size"]),
                    frags=int(context["frags"]),
                )
            self.rates[i] = rate


def _joined(
    document: Document, index: int, pattern: re.Pattern[str], whole: str | None
) -> tuple[re.Match[str] | None, int]:
    """Match at a line, joined with up to two following ones until ``whole`` is there too."""
    text = ""
    best: tuple[re.Match[str] | None, int] = (None, 1)
    for used, line in enumerate(document.lines[index : index + 3], start=1):
        if used > 1 and (not line.text.strip() or _STARTS.match(line.text)):
            break
        text = f"{text} {line.text.strip()}".strip()
        if match := pattern.search(text):
            if whole is None or match[whole] is not None:
                return match, used
            if best[0] is None:
                best = (match, used)
    return best
