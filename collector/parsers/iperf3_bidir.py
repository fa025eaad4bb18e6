"""iperf3's two-way documents of 3.7 to 3.10, which have both directions under the same keys.

Later versions call the second ``sum_sent_bidir_reverse`` and so on (esnet/iperf issue 1196). Which
is which follows from the ``sender`` flag of each, and only if the streams with that flag add up to
it; otherwise nothing is told apart.
"""

from __future__ import annotations

from typing import Any

from .iperf3_json import Ambiguous

TOLD_APART = "both directions are under one key: told apart by their streams"
_REVERSE = "_bidir_reverse"
_NAMES = ("sum", "sum_sent", "sum_received")


def split_end(end: dict[str, Any], server: bool) -> tuple[dict[str, Any], bool]:
    """``end`` with the names of later versions, and whether anything was told apart.

    ``server``: the document is the server's, whose sending streams are the reverse direction.
    """
    doubled = [name for name in _NAMES if isinstance(end.get(name), Ambiguous)]
    streams = end.get("streams")
    if not doubled or not isinstance(streams, list):
        return end, False
    bytes_by_flag = _stream_bytes(streams)
    result = dict(end)
    for name in doubled:
        pair = _by_flag(end[name])
        if pair is None or bytes_by_flag is None:
            return end, False
        if name != "sum_received" and any(
            pair[flag].get("bytes") != bytes_by_flag[flag] for flag in (True, False)
        ):
            return end, False
        result[name], result[f"{name}{_REVERSE}"] = pair[not server], pair[server]
    return result, True


def split_interval(block: dict[str, Any], server: bool) -> dict[str, Any]:
    """One interval with the names of later versions, if its two sums have different flags."""
    value = block.get("sum")
    pair = _by_flag(value) if isinstance(value, Ambiguous) else None
    if pair is None:
        return block
    return {**block, "sum": pair[not server], f"sum{_REVERSE}": pair[server]}


def _by_flag(value: Ambiguous) -> dict[bool, dict[str, Any]] | None:
    """Two blocks by their ``sender`` flag; None unless there is one of each."""
    blocks = [one for one in value.values if isinstance(one, dict)]
    if len(blocks) != 2 or len(value.values) != 2:
        return None
    flags = [one.get("sender") for one in blocks]
    if sorted(map(str, flags)) != ["False", "True"]:
        return None
    return {bool(flag): block for flag, block in zip(flags, blocks, strict=True)}


def _stream_bytes(streams: list[Any]) -> dict[bool, float] | None:
    """Bytes that the streams of each flag sent; None if a stream does not say."""
    sums: dict[bool, float] = {}
    for stream in streams:
        block = stream.get("sender", stream.get("udp")) if isinstance(stream, dict) else None
        if not isinstance(block, dict):
            return None
        flag, size = block.get("sender"), block.get("bytes")
        if not isinstance(flag, bool) or not isinstance(size, (int, float)):
            return None
        sums[flag] = sums.get(flag, 0) + size
    return sums if set(sums) == {True, False} else None
