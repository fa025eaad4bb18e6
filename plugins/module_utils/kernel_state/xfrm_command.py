"""``ip xfrm`` command lines, written and read.

Writing: lines for ``ip -batch -``, which reads them from its standard input, so that keys are
never seen in a process list. Words are checked: a line can hold nothing but its own command
(ip takes quotes, ``#`` and a backslash specially). Reading: scripts and transcripts, so that
what they declare can be checked; keys are dropped.
"""

from __future__ import annotations

import functools
import re
from typing import Dict, List, Optional

from .errors import StateError
from .xfrm import (
    Algorithm,
    Limits,
    Mark,
    Policy,
    Selector,
    State,
    Vault,
    state_id,
)
from .xfrm_text import Words, address, network, protocol_number

_WORD = re.compile(r"[A-Za-z0-9_.,:/()=-]+")
# What stands for a key in a command that is only shown (see shell_step).
_PLACEHOLDER = re.compile(r"\$KEY_[A-Z0-9_]+")
_LIMITS = {
    "soft_bytes": "byte-soft", "hard_bytes": "byte-hard",
    "soft_packets": "packet-soft", "hard_packets": "packet-hard",
    "soft_add_s": "time-soft", "hard_add_s": "time-hard",
    "soft_use_s": "time-use-soft", "hard_use_s": "time-use-hard",
}  # fmt: skip


class MissingKeyError(ValueError):
    """An SA cannot be written because the vault has no key for it."""


@functools.lru_cache(maxsize=4096)
def _word(text: object) -> str:
    # Thousands of SAs share most of their words.
    word = str(text)
    if not _WORD.fullmatch(word):
        raise ValueError(f"{word!r} cannot stand in a line for ip -batch")
    return word


def _mark(mark: Optional[Mark]) -> List[str]:
    return [] if mark is None else ["mark", f"0x{mark.value:x}", "mask", f"0x{mark.mask:x}"]


def _selector(selector: Selector) -> List[str]:
    words = ["src", _word(selector.src), "dst", _word(selector.dst)]
    if selector.dev is not None:
        words += ["dev", _word(selector.dev)]
    if selector.proto is not None:
        words += ["proto", _word(protocol_number(selector.proto))]
    icmp = selector.proto in ("icmp", "ipv6-icmp", "mobility-header")
    for name, value in (
        ("type" if icmp else "sport", selector.sport),
        ("code" if icmp else "dport", selector.dport),
        ("key", selector.key),
    ):
        if value is not None:
            words += [name, str(value)]
    return words


def _limits(limits: Optional[Limits]) -> List[str]:
    words: List[str] = []
    for name, option in _LIMITS.items():
        value = None if limits is None else getattr(limits, name)
        if value is not None:
            words += ["limit", option, str(value)]
    return words


def _state_key(state: State) -> List[str]:
    words = ["dst", _word(state.dst), "proto", _word(state.proto), "spi", f"0x{state.spi or 0:x}"]
    return words + _mark(state.mark)


def _algorithm(state: State, algorithm: Algorithm, keys: Vault) -> List[str]:
    words = [algorithm.kind, _word(algorithm.name)]
    if algorithm.kind == "comp":
        return words
    key = keys.get(state_id(state), algorithm.kind)
    if key is not None:
        words.append(_key(key.reveal()))
    elif algorithm.key_bits == 0:
        words.append('""')
    else:
        raise MissingKeyError(f"no key for {algorithm.kind} of {state_name(state)}")
    return words if algorithm.bits is None else [*words, str(algorithm.bits)]


def _key(text: str) -> str:
    if text in ("", "0x"):
        return '""'
    return text if _PLACEHOLDER.fullmatch(text) else _word(text)


def state_name(state: State) -> str:
    """How messages name an SA, e.g. ``esp spi 0x1000 to 192.0.2.2``."""
    spi = "?" if state.spi is None else f"0x{state.spi:x}"
    name = f"{state.proto} spi {spi} to {state.dst}"
    if state.mark is None:
        return name
    mask = "" if state.mark.mask == 0xFFFFFFFF else f"/0x{state.mark.mask:x}"
    return f"{name} mark 0x{state.mark.value:x}{mask}"


def policy_name(policy: Policy) -> str:
    """How messages name a policy, e.g. ``out 192.0.2.1/32 to 192.0.2.2/32 tcp``."""
    chosen = policy.selector
    parts = [policy.direction, chosen.src, "to", chosen.dst]
    if chosen.proto is not None:
        parts.append(chosen.proto)
    for name, value in (
        ("sport", chosen.sport),
        ("dport", chosen.dport),
        ("key", chosen.key),
        ("dev", chosen.dev),
        ("ctx", policy.context),
        ("if_id", policy.if_id),
    ):
        if value is not None:
            parts.append(f"{name} {value}")
    if policy.mark is not None:
        parts.append(f"mark 0x{policy.mark.value:x}/0x{policy.mark.mask:x}")
    return " ".join(parts)


def add_state(state: State, keys: Vault) -> str:
    """The line that adds an SA; holds its keys. Raises :class:`MissingKeyError`."""
    words = ["xfrm", "state", "add", "src", _word(state.src), *_state_key(state)]
    words += ["reqid", str(state.reqid or 0), "mode", _word(state.mode)]
    if state.window:
        words += ["replay-window", str(state.window)]
    for flag in state.flags:
        words += ["flag", _word(flag)]
    if state.extra_flags:
        words += ["extra-flag", *(_word(flag) for flag in state.extra_flags)]
    for algorithm in state.algorithms:
        words += _algorithm(state, algorithm, keys)
    if state.encap is not None:
        encap = state.encap
        words += ["encap", _word(encap.type), str(encap.sport), str(encap.dport)]
        words.append(_word(encap.address))
    if state.selector is not None:
        words += ["sel", *_selector(state.selector)]
    words += _limits(state.limits)
    if state.offload is not None:
        packet = ["packet"] if state.offload.mode == "packet" else []
        words += ["offload", *packet, "dev", _word(state.offload.dev)]
        words += ["dir", _word(state.offload.direction)]
    if state.output_mark is not None:
        words += ["output-mark", f"0x{state.output_mark.value:x}"]
        words += ["mask", f"0x{state.output_mark.mask:x}"]
    if state.if_id is not None:
        words += ["if_id", f"0x{state.if_id:x}"]
    if state.tfc_pad is not None:
        words += ["tfcpad", str(state.tfc_pad)]
    if state.direction is not None:
        words += ["dir", _word(state.direction)]
    if state.context is not None:
        words += ["ctx", _word(state.context)]
    return " ".join(words)


def delete_state(state: State) -> str:
    """The line that deletes an SA."""
    return " ".join(["xfrm", "state", "delete", *_state_key(state)])


def _policy_key(policy: Policy) -> List[str]:
    words = [*_selector(policy.selector), "dir", _word(policy.direction)]
    if policy.context is not None:
        words += ["ctx", _word(policy.context)]
    words += _mark(policy.mark)
    if policy.ptype != "main":
        words += ["ptype", _word(policy.ptype)]
    return words if policy.if_id is None else [*words, "if_id", f"0x{policy.if_id:x}"]


def put_policy(verb: str, policy: Policy) -> str:
    """The line that adds (``add``) a policy or replaces it at once (``update``)."""
    words = ["xfrm", "policy", _word(verb), *_policy_key(policy)]
    words += ["action", _word(policy.action), "priority", str(policy.priority or 0)]
    for flag in policy.flags:
        words += ["flag", _word(flag)]
    words += _limits(policy.limits)
    for template in policy.templates:
        words += ["tmpl", "src", _word(template.src), "dst", _word(template.dst)]
        words += ["proto", _word(template.proto)]
        if template.spi is not None:
            words += ["spi", f"0x{template.spi:x}"]
        words += ["reqid", str(template.reqid or 0), "mode", _word(template.mode)]
        words += ["level", _word(template.level)]
    return " ".join(words)


def delete_policy(policy: Policy) -> str:
    """The line that deletes a policy."""
    return " ".join(["xfrm", "policy", "delete", *_policy_key(policy)])


_STATE_ADD = re.compile(
    r"(?:^|[\s>#$;])(?:ip\s+)?x(?:frm)?\s+s(?:tate|a)?\s+add\s+(?P<rest>src\s.*|dst\s.*)$"
)


def parse_state_add(line: str, number: int = 1) -> Optional[State]:
    """The SA that an ``ip xfrm state add`` line of a script declares, without its key.

    None when the line is no such command; words may be shortened as ip allows (``ip x s add``).
    Raises :class:`StateError` when it is one that cannot be read. What only matters to the
    kernel's handling (limits, offload, selector) is left out.
    """
    match = _STATE_ADD.search(line)
    if match is None:
        return None
    words = Words(number, match.group("rest").replace('"', " ").replace("'", " "), [])
    ends: Dict[str, str] = {}
    values: Dict[str, object] = {"proto": "esp", "mode": "transport", "spi": None, "reqid": 0}
    while words.peek() is not None:
        word = words.take("an option")
        if word in ("src", "dst") and word not in ends:
            ends[word] = address(words.take("an address"), number)
        elif word in ("proto", "mode"):
            values[word] = words.take(f"a {word}")
        elif word in ("spi", "reqid"):
            values[word] = words.number(word)
        elif word == "mark":
            value = words.required("mark")
            mask = words.required("mask") if words.optional("mask") else 0xFFFFFFFF
            values["mark"] = Mark(value, mask)
        elif word == "ctx":
            values["context"] = words.take("a context")
        elif word == "sel":
            break
    if "dst" not in ends or values["spi"] is None:
        raise StateError(number, "ip xfrm state add without dst or spi", "both")
    return State(src=ends.get("src", "0.0.0.0"), dst=ends["dst"], **values)  # type: ignore[arg-type]


def host_selector(src: str, dst: str) -> Selector:
    """The selector of exactly two addresses."""
    length = 32 if "." in src else 128
    return Selector(network(f"{src}/{length}", 1), network(f"{dst}/{length}", 1))
