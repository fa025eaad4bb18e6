"""``ip xfrm state`` (also ``ip -s``, ``ip -o``, ``list nokeys``): SAs without their keys."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any, Dict, List, Optional, Tuple

from .errors import KEYS_HIDDEN, StateError, Text, decimal
from .xfrm import (
    Algorithm,
    Encap,
    Replay,
    ReplayErrors,
    Secret,
    State,
    Vault,
    state_id,
    varied,
)
from .xfrm_alike import MOST_32, Values, read_alike
from .xfrm_text import (
    Block,
    LifetimeReader,
    Words,
    address,
    blocks,
    context,
    date,
    flags,
    offload,
    once,
    selector,
    slashed_mark,
    unknown_line,
)

_ALGORITHMS = ("aead", "enc", "auth", "auth-trunc", "comp")
_MODES = ("transport", "tunnel", "beet", "ro", "in_trigger", "iptfs")
_STATS = re.compile(r"replay-window ([0-9]+) replay ([0-9]+) failed ([0-9]+)")
_BITMAP = re.compile(r"(?:[0-9a-fA-FX]{8}(?: |$))+")
_REPLAY = re.compile(r"anti-replay context: seq (\S+), oseq (\S+), bitmap (\S+)")
_ESN_NUMBERS = re.compile(r"seq-hi (\S+), seq (\S+), oseq-hi (\S+), oseq (\S+)")
_ESN_WINDOW = re.compile(r"replay_window (\S+), bitmap-length (\S+)")
_LABEL = "security context "
# What differs between the SAs of a table: see xfrm_alike. A key has at least 64 bits.
_VARIES = re.compile(
    r" spi 0x(?P<spi>[0-9a-f]{8})(?:\([0-9]+\))?(?= )"
    r"| reqid (?P<reqid>[0-9]{1,10})\(0x[0-9a-f]{8}\)(?= )"
    r"| 0x(?P<key>[0-9a-f]{16,})(?= )"
    r"|\n\tsecurity context (?P<context>[^ \n]+) ?(?=\n)"
)
_SHORT_KEY = len("0x") + 15
# An SA and the keys that stood in its listing, by the kind of algorithm.
Keyed = Tuple[State, Tuple[Tuple[str, Secret], ...]]
_KEY = re.compile(r"0x[0-9A-Za-z]*|<<Keys hidden>>")


def parse_states(text: Text, vault: Optional[Vault] = None) -> Tuple[State, ...]:
    """Every SA of a listing, in order; an empty listing has none.

    Keys are dropped. With a ``vault`` (on the host only) they are put there, in memory. Raises
    :class:`StateError` on other text, a value that cannot be, or a block that is not whole.
    """
    if isinstance(text, str) and "\\" not in text:
        found = read_alike(text, _VARIES, _read, _fill)
    else:
        found = [_read(block) for block in blocks(text)]
    if vault is not None:
        for state, keys in found:
            for kind, key in keys:
                vault.put(state_id(state), kind, key)
    return tuple(state for state, _ in found)


def _read(block: Block) -> Keyed:
    reader = _StateReader(block)
    return reader.state(), tuple(reader.keys)


def _fill(like: Keyed, values: Values, line: int) -> Optional[Keyed]:
    """Another SA of a table. None where a value is out of range, or stands there twice."""
    state, keys = like
    fields: Dict[str, Any] = {}
    new = [Secret(f"0x{text}") for name, text in values if name == "key"]
    for name, text in values:
        if name in fields:
            return None
        if name == "spi":
            fields[name] = int(text, 16)
        elif name == "reqid" and int(text) <= MOST_32:
            fields[name] = int(text)
        elif name == "context":
            fields[name] = context(line, f"{_LABEL}{text}")
        elif name != "key":
            return None
    at = [n for n, (_, key) in enumerate(keys) if len(key.reveal()) > _SHORT_KEY]
    if "spi" not in fields or len(new) != len(at):
        return None
    found = list(keys)
    for n, key in zip(at, new):  # noqa: B905 - Python 3.9
        found[n] = (found[n][0], key)
    return varied(state, **fields), tuple(found)


class _StateReader:
    """Reads one block, a line at a time."""

    def __init__(self, block: Block) -> None:
        self._block = block
        self.keys: List[Tuple[str, Secret]] = []
        self._seen: Dict[str, int] = {}
        self._blanked: List[str] = []
        self._unknown: List[str] = []
        self._algorithms: List[Algorithm] = []
        self._values: Dict[str, Any] = {}
        self._lifetime = LifetimeReader()
        self._esn: Dict[str, Optional[int]] = {}
        self._bitmap_words = 0
        self._readers = {
            "proto": self._identity, "replay-window": self._window, "mark": self._mark,
            "output-mark": self._output_mark, "encap": self._encap, "coa": self._care_of,
            "lastused": self._last_used, "crypto": self._offload, "if_id": self._if_id,
            "tfcpad": self._tfc_pad, "dir": self._direction, "sel": self._selector,
        }  # fmt: skip

    def state(self) -> State:
        number, line = self._block[0]
        words = Words(number, line, self._blanked)
        if words.peek() in ("Deleted", "Updated", "Expired"):
            raise StateError(number, repr(line), "a listing, not the output of ip xfrm monitor")
        words.literal("src")
        src = address(words.take("an address"), number)
        words.literal("dst")
        dst = address(words.take("an address"), number)
        words.end()
        if ("." in src) != ("." in dst):
            raise StateError(number, repr(line), "two addresses of one family")
        for at, text in self._block[1:]:
            self._line(at, text)
        if "proto" not in self._seen or "replay-window" not in self._seen:
            raise StateError(
                number,
                f"an SA without all of its lines ({line})",
                "its proto and replay-window lines",
            )
        self._replay(number)
        return State(
            src=src, dst=dst, algorithms=tuple(self._algorithms),
            limits=self._lifetime.limits(number), usage=self._lifetime.usage(number),
            blanked=tuple(self._blanked), unknown=tuple(self._unknown), **self._values,
        )  # fmt: skip

    def _line(self, number: int, line: str) -> None:
        first = line.split(maxsplit=1)[0]
        reader = self._readers.get(first)
        stats = _STATS.fullmatch(line) if first == "replay-window" else None
        if stats is not None:
            once(self._seen, "stats values", number)
            self._values["replay_errors"] = ReplayErrors(*(int(item) for item in stats.groups()))
        elif reader is not None:
            once(self._seen, first, number)
            reader(Words(number, line, self._blanked))
        elif first in _ALGORITHMS:
            once(self._seen, first, number)
            try:
                self._algorithm(Words(number, line, self._blanked))
            except StateError as error:
                # Without the text that was found: it may be a key.
                raise StateError(number, f"{first!r} with something else", error.wanted) from None
        elif not (self._other(number, line, first) or self._lifetime.read(number, line)):
            once(self._seen, first, number)
            self._unknown.append(unknown_line(number, line))

    def _other(self, number: int, line: str, first: str) -> bool:
        if first == "stats:":
            once(self._seen, first, number)
        elif first in ("anti-replay", "seq-hi", "replay_window"):
            self._replay_line(number, line)
        elif first == "security" and line.startswith("security context"):
            once(self._seen, "security context", number)
            self._values["context"] = context(number, line)
        elif _BITMAP.fullmatch(line):
            self._bitmap_words += len(line.split())
        else:
            return False
        return True

    def _identity(self, words: Words) -> None:
        words.literal("proto")
        proto = words.take("a protocol")
        if proto not in ("esp", "ah", "comp", "route2", "hao"):
            raise StateError(words.line, repr(proto), "esp, ah, comp, route2 or hao")
        spi = words.number("spi") if words.optional("spi") else None
        words.literal("reqid")
        reqid = words.number("reqid")
        words.literal("mode")
        mode = words.take("a mode")
        if mode not in _MODES:
            raise StateError(words.line, repr(mode), f"one of {', '.join(_MODES)}")
        words.end()
        self._values.update(proto=proto, spi=spi, reqid=reqid, mode=mode)

    def _window(self, words: Words) -> None:
        # iproute2 6.15 puts no blank between the last flag and "extra_flag".
        text = words.text.replace("extra_flag", " extra_flag")
        words = Words(words.line, text, self._blanked)
        words.literal("replay-window")
        self._values["replay_window"] = words.number("replay-window")
        if words.optional("seq"):
            words.take("a sequence number")
        if words.optional("flag"):
            self._values["flags"] = flags(words)
        if words.optional("extra_flag"):
            self._values["extra_flags"] = flags(words)
        words.end()

    def _mark(self, words: Words) -> None:
        words.literal("mark")
        self._values["mark"] = slashed_mark(words, "mark")
        if words.peek() == "output-mark":
            self._output_mark(words)
        words.end()

    def _output_mark(self, words: Words) -> None:
        words.literal("output-mark")
        self._values["output_mark"] = slashed_mark(words, "output-mark")
        words.end()

    def _algorithm(self, words: Words) -> None:
        kind, name = words.take("a kind"), words.take("the name of an algorithm")
        if not re.fullmatch(r"[a-z0-9_(),-]+", name):
            raise StateError(words.line, repr(name), "the name of an algorithm")
        key_bits = bits = None
        key: Optional[str] = None
        if words.optional("<<Keys"):
            words.literal("hidden>>")
            key = KEYS_HIDDEN
        elif _KEY.fullmatch(words.peek() or ""):
            key = words.take("a key")
        if key is None:
            key_bits = 0
        elif re.fullmatch(r"0x(?:[0-9a-f]{2})*", key):
            key_bits = 4 * (len(key) - 2)
            self.keys.append((kind, Secret(key)))
        if (words.peek() or "").startswith("("):
            printed = decimal(words.take("a length")[1:], words.line, "the key's bits")
            words.literal("bits)")
            if key_bits not in (None, printed):
                raise StateError(words.line, f"{key_bits} bits of key", f"the {printed} printed")
            key_bits = printed
        if kind in ("aead", "auth-trunc"):
            bits = decimal(words.take("a length in bits"), words.line, "an integrity value", 1024)
        words.end()
        self._algorithms.append(Algorithm(kind, name, None if kind == "comp" else key_bits, bits))

    def _encap(self, words: Words) -> None:
        words.literal("encap")
        words.literal("type")
        kind = words.take("a type")
        words.literal("sport")
        sport = words.required("sport")
        words.literal("dport")
        dport = words.required("dport")
        words.literal("addr")
        self._values["encap"] = Encap(kind, sport, dport, address(words.take("it"), words.line))
        words.end()

    def _care_of(self, words: Words) -> None:
        words.literal("coa")
        self._values["care_of"] = address(words.take("an address"), words.line)
        words.end()

    def _last_used(self, words: Words) -> None:
        text = words.text[len("lastused") :].strip()
        self._values["last_used"] = date(text, words.line, self._blanked, "lastused")

    def _offload(self, words: Words) -> None:
        self._values["offload"] = offload(words)

    def _if_id(self, words: Words) -> None:
        words.literal("if_id")
        self._values["if_id"] = words.number("if_id")
        words.end()

    def _tfc_pad(self, words: Words) -> None:
        words.literal("tfcpad")
        self._values["tfc_pad"] = words.number("tfcpad")
        words.end()

    def _direction(self, words: Words) -> None:
        words.literal("dir")
        direction = words.take("in or out")
        if direction not in ("in", "out"):
            raise StateError(words.line, repr(direction), "in or out")
        words.end()
        self._values["direction"] = direction

    def _selector(self, words: Words) -> None:
        words.literal("sel")
        self._values["selector"] = selector(words)

    def _replay_line(self, number: int, line: str) -> None:
        short, numbers = _REPLAY.fullmatch(line), _ESN_NUMBERS.fullmatch(line)
        window = _ESN_WINDOW.fullmatch(line)
        if line == "anti-replay esn context:":
            once(self._seen, line, number)
        elif short is not None:
            once(self._seen, "anti-replay context", number)
            seq, oseq = (self._optional(item, number) for item in short.groups()[:2])
            self._values["replay"] = Replay(False, None, seq, oseq)
        elif numbers is not None:
            once(self._seen, "seq-hi", number)
            for name, item in zip(("seq_hi", "seq", "oseq_hi", "oseq"), numbers.groups()):  # noqa: B905 - Python 3.9
                self._esn[name] = self._optional(item, number)
        elif window is not None:
            once(self._seen, "replay_window", number)
            self._esn["window"] = self._optional(window.group(1), number)
            self._esn["words"] = self._optional(window.group(2), number)
        else:
            raise StateError(number, repr(line), "an anti-replay context")

    def _optional(self, text: str, number: int) -> Optional[int]:
        return Words(number, text, self._blanked).number("anti-replay context")

    def _replay(self, number: int) -> None:
        if not self._esn and "anti-replay esn context:" not in self._seen:
            if self._bitmap_words:
                raise StateError(number, "a replay bitmap", "its anti-replay esn context first")
            return
        wanted = ("seq_hi", "seq", "oseq_hi", "oseq", "window", "words")
        if any(name not in self._esn for name in wanted):
            raise StateError(number, "a part of the anti-replay esn context", "both lines of it")
        if self._esn["words"] not in (None, self._bitmap_words):
            raise StateError(
                number,
                f"{self._bitmap_words} words of replay bitmap",
                f"the {self._esn['words']} announced",
            )
        self._values["replay"] = Replay(
            True, self._esn["window"], self._joined("seq_hi", "seq"),
            self._joined("oseq_hi", "oseq"),
        )  # fmt: skip

    def _joined(self, high: str, low: str) -> Optional[int]:
        upper, lower = self._esn[high], self._esn[low]
        return None if upper is None or lower is None else (upper << 32) + lower


def without_times(state: State) -> State:
    """The SA without what changes by itself: counters, sequence numbers and times of use."""
    replay = state.replay
    if replay is not None:
        replay = Replay(replay.esn, replay.window, None, None)
    return replace(state, last_used=None, usage=None, replay_errors=None, replay=replay)
