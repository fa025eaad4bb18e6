"""``ip xfrm policy`` (also ``ip -s``, ``ip -o``): policies and their templates."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any, Dict, List, Optional, Tuple

from .errors import StateError, Text
from .xfrm import Policy, Template, varied
from .xfrm_alike import MOST_32, Values, read_alike
from .xfrm_text import (
    Block,
    LifetimeReader,
    Words,
    address,
    blocks,
    context,
    flags,
    offload,
    once,
    selector,
    slashed_mark,
    unknown_line,
)

# What differs between the policies of a table: see xfrm_alike.
_VARIES = re.compile(
    r" sport (?P<sport>[0-9]{1,5})(?= )| dport (?P<dport>[0-9]{1,5})(?= )"
    r"| index (?P<index>[0-9]{1,10})(?= )"
    r"| reqid (?P<reqid>[0-9]{1,10})\(0x[0-9a-f]{8}\)(?= )"
)
_MOST_PORT = (1 << 16) - 1
_MODES = ("transport", "tunnel", "beet", "ro", "in_trigger", "iptfs")


def parse_policies(text: Text) -> Tuple[Policy, ...]:
    """Every policy of a listing, in order; an empty listing has none.

    Raises :class:`StateError` on other text, a value that cannot be, or a block that is not
    whole. A policy without templates and with action ``allow`` lets packets pass in clear.
    """
    if isinstance(text, str) and "\\" not in text:
        return tuple(read_alike(text, _VARIES, _read, _fill))
    return tuple(_read(block) for block in blocks(text))


def _read(block: Block) -> Policy:
    return _PolicyReader(block).policy()


def _fill(like: Policy, values: Values, line: int) -> Optional[Policy]:
    """Another policy of a table. None where a value is out of range, or stands there twice."""
    numbers = [(name, int(text)) for name, text in values]
    reqids = [number for name, number in numbers if name == "reqid"]
    ports = {name: number for name, number in numbers if name in ("sport", "dport")}
    index = [number for name, number in numbers if name == "index"]
    if (
        len(reqids) != len(like.templates)
        or len(index) > 1
        or len(numbers) != len(reqids) + len(index) + len(ports)
        or max(ports.values(), default=0) > _MOST_PORT
        or max(reqids + index, default=0) > MOST_32
    ):
        return None
    return varied(
        like,
        selector=varied(like.selector, **ports),
        index=index[0] if index else like.index,
        templates=tuple(
            varied(template, reqid=reqid)
            for template, reqid in zip(like.templates, reqids)  # noqa: B905 - Python 3.9
        ),
    )


class _PolicyReader:
    """Reads one block, a line at a time."""

    def __init__(self, block: Block) -> None:
        self._block = block
        self._seen: Dict[str, int] = {}
        self._blanked: List[str] = []
        self._unknown: List[str] = []
        self._templates: List[Template] = []
        self._ends: Tuple[str, ...] = ()  # addresses of a template whose second line is to come
        self._in_template = False
        self._values: Dict[str, Any] = {}
        self._lifetime = LifetimeReader()

    def policy(self) -> Policy:
        number, line = self._block[0]
        words = Words(number, line, self._blanked)
        if words.peek() in ("Deleted", "Updated", "Expired"):
            raise StateError(number, repr(line), "a listing, not the output of ip xfrm monitor")
        chosen = selector(words)
        for at, text in self._block[1:]:
            self._line(at, text)
        if "dir" not in self._seen or self._ends:
            raise StateError(
                number,
                f"a policy without all of its lines ({line})",
                "its dir line and two lines a template",
            )
        return Policy(
            selector=chosen,
            templates=tuple(self._templates),
            limits=self._lifetime.limits(number),
            usage=self._lifetime.usage(number),
            blanked=tuple(self._blanked),
            unknown=tuple(self._unknown),
            **self._values,
        )

    def _line(self, number: int, line: str) -> None:
        words = Words(number, line, self._blanked)
        first = line.split(maxsplit=1)[0]
        if self._ends and first != "proto":
            raise StateError(number, repr(line), "the template's proto line")
        if line.startswith("security context"):
            once(self._seen, "security context", number)
            self._values["context"] = context(number, line)
        elif first in ("dir", "socket"):
            once(self._seen, "dir", number)
            self._head(words, first)
        elif first == "tmpl":
            self._template(words)
        elif first == "proto" and self._ends:
            self._template_body(words)
        elif first in ("level", "enc-mask") and self._in_template:
            self._template_rest(words, first)
        elif first == "mark":
            once(self._seen, first, number)
            words.literal("mark")
            self._values["mark"] = slashed_mark(words, "mark")
            words.end()
        elif first == "if_id":
            once(self._seen, first, number)
            words.literal("if_id")
            self._values["if_id"] = words.number("if_id")
            words.end()
        elif first == "crypto":
            once(self._seen, first, number)
            self._values["offload"] = offload(words)
        elif first in ("proto", "level", "enc-mask"):
            raise StateError(number, f"{first!r} outside a template", "its tmpl line first")
        elif not self._lifetime.read(number, line):
            once(self._seen, first, number)
            self._unknown.append(unknown_line(number, line))

    def _head(self, words: Words, first: str) -> None:
        words.literal(first)
        direction = words.take("in, out or fwd")
        if direction not in ("in", "out", "fwd"):
            raise StateError(words.line, repr(direction), "in, out or fwd")
        self._values.update(direction=direction, socket=first == "socket")
        if words.optional("action"):
            action = words.take("allow or block")
            if action not in ("allow", "block"):
                raise StateError(words.line, repr(action), "allow or block")
            self._values["action"] = action
        if words.optional("index"):
            self._values["index"] = words.number("index")
        words.literal("priority")
        self._values["priority"] = words.number("priority")
        if words.optional("ptype"):
            self._values["ptype"] = words.take("main or sub")
        if words.optional("share"):
            words.take("any, session, user or unique")
        if words.optional("flag"):
            self._values["flags"] = flags(words)
        words.end()

    def _template(self, words: Words) -> None:
        words.literal("tmpl")
        words.literal("src")
        src = address(words.take("an address"), words.line)
        words.literal("dst")
        dst = address(words.take("an address"), words.line)
        words.end()
        self._ends, self._in_template = (src, dst), True

    def _template_body(self, words: Words) -> None:
        words.literal("proto")
        proto = words.take("a protocol")
        spi = words.number("spi") if words.optional("spi") else None
        words.literal("reqid")
        reqid = words.number("reqid")
        words.literal("mode")
        mode = words.take("a mode")
        if mode not in _MODES:
            raise StateError(words.line, repr(mode), f"one of {', '.join(_MODES)}")
        words.end()
        src, dst = self._ends
        self._templates.append(Template(src, dst, proto, reqid, mode, spi or None))
        self._ends = ()

    def _template_rest(self, words: Words, first: str) -> None:
        if first == "enc-mask":
            self._in_template = False
            return
        words.literal("level")
        level = words.take("required or use")
        if level not in ("required", "use") and not level.isdecimal():
            raise StateError(words.line, repr(level), "required or use")
        self._templates[-1] = replace(self._templates[-1], level=level)
        if words.optional("share"):
            words.take("any, session, user or unique")
        words.end()
