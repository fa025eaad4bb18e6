"""What an option depends on, read from a source tree's Kconfig files.

Reads as much of the language (Linux, Documentation/kbuild/kconfig-language.rst) as it takes to
answer that: ``config``/``menuconfig``, ``depends on``, the ``if`` of a prompt, enclosing ``if``,
``menu`` and ``choice`` blocks, and ``source`` lines with the few variables that occur in them.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Optional

from .configuration import Wanted

_SOURCE = re.compile(r'(?:source|rsource|osource|orsource)\s+"([^"]+)"')
_OPENS = re.compile(r"(if|menu|choice)\b\s*(.*)")
_CLOSES = re.compile(r"end(if|menu|choice)\b")
_CONFIG = re.compile(r"(?:menu)?config\s+(\w+)")
_DEPENDS = re.compile(r"depends\s+on\s+(.+)")
_VISIBLE = re.compile(r"visible\s+if\s+(.+)")
_TYPE = re.compile(r"(?:def_)?(bool|tristate|int|hex|string)\b")
_PROMPT = re.compile(
    r"""(?:bool|tristate|int|hex|string|prompt)\s+(?:"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')"""
    r"(?:\s+if\s+(.+))?"
)
_TOKEN = re.compile(r"&&|\|\||[!<>]=|[!=<>()]|\"[^\"]*\"|'[^']*'|[A-Za-z0-9_]+")
_COMPARED: Mapping[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_TRISTATE = {"n": 0, "m": 1, "y": 2}


@dataclass
class Option:
    """One definition of an option: the conditions that must all hold before it can be set, whether
    it has a prompt (without one nothing but other options set it), its type (empty: said
    elsewhere), and the names of a choice that it is one of (empty: of none)."""

    conditions: list[str] = field(default_factory=list)
    prompt: bool = False
    type: str = ""
    choice: list[str] = field(default_factory=list)


def _lines(file: Path) -> Iterator[str]:
    """Lines without comments, continued ones joined, help texts left out."""
    held, help_indent = "", None
    for raw in file.read_text(encoding="utf-8", errors="replace").splitlines():
        line = raw.expandtabs(8)
        indent = len(line) - len(line.lstrip())
        if help_indent is not None:
            if not line.strip() or indent > help_indent:
                continue
            help_indent = None
        stripped = line.strip()
        if stripped in ("help", "---help---"):
            help_indent = indent
            continue
        if stripped.startswith("#"):
            continue
        held += stripped
        if held.endswith("\\"):
            held = held[:-1] + " "
            continue
        if held:
            yield held
        held = ""


class Definitions:
    """Every option of a source tree, by name without ``CONFIG_``."""

    def __init__(self, tree: Path, architecture: str = "x86") -> None:
        self._tree = tree
        self._variables = {"SRCARCH": architecture, "HEADER_ARCH": architecture}
        self.options: dict[str, list[Option]] = {}
        self._read("Kconfig", [])

    def _read(self, name: str, outer: list[str]) -> None:
        for variable, value in self._variables.items():
            name = name.replace(f"$({variable})", value)
        file = self._tree / name
        if not file.is_file():  # an optional source, or one with a variable of another architecture
            return
        blocks: list[list[str]] = []
        choices: list[list[str]] = []
        current: Optional[Option] = None
        for line in _lines(file):
            around = [*outer, *(term for block in blocks for term in block)]
            source = _SOURCE.match(line)
            if source:
                self._read(source[1], around)
                current = None
                continue
            config = _CONFIG.fullmatch(line)
            if config:
                current = Option(list(around), choice=choices[-1] if choices else [])
                current.choice.append(config[1])
                self.options.setdefault(config[1], []).append(current)
                continue
            opened = _OPENS.match(line)
            if opened:
                blocks.append([opened[2]] if opened[1] == "if" else [])
                if opened[1] == "choice":
                    choices.append([])
                current = None
                continue
            closed = _CLOSES.match(line)
            if closed:
                if blocks:
                    blocks.pop()
                if closed[1] == "choice" and choices:
                    choices.pop()
                current = None
                continue
            self._attribute(line, current, blocks)

    @staticmethod
    def _attribute(line: str, current: Optional[Option], blocks: list[list[str]]) -> None:
        depends = _DEPENDS.match(line) or (_VISIBLE.match(line) if current is None else None)
        if depends:
            if current is not None:
                current.conditions.append(depends[1])
            elif blocks:
                blocks[-1].append(depends[1])
            return
        kind = _TYPE.match(line)
        if kind and current is not None:
            current.type = kind[1]
        prompt = _PROMPT.match(line)
        if prompt and current is not None:
            current.prompt = True
            if prompt[1]:
                current.conditions.append(prompt[1])


def _without_comment(condition: str) -> str:
    return condition.split(" #", maxsplit=1)[0].strip()


def explain(name: str, wanted: str, definitions: Definitions, final: Mapping[str, Wanted]) -> str:
    """Why an option may not be as wanted: what it depends on, as far as that does not hold, with
    the values of the options in it. ``name`` has its ``CONFIG_``."""
    short = name.removeprefix("CONFIG_")
    found = definitions.options.get(short)
    if not found:
        return "this source has no option of that name"
    if not any(option.prompt for option in found):
        return "it has no prompt: only other options that select it set it"
    texts = []
    for option in found:
        # An option stands below many that always hold: only the others say anything.
        terms = [_without_comment(term) for term in dict.fromkeys(option.conditions)]
        # An option that is on or off may be on where what it depends on is a module.
        least = _TRISTATE["y"] if wanted == "y" and option.type != "bool" else _TRISTATE["m"]
        open_terms = [term for term in terms if evaluate(term, final) < least]
        values = {key: value for term in open_terms for key, value in _named(term, final).items()}
        if values:
            shown = ", ".join(f"{key}={value}" for key, value in values.items())
            texts.append(f"it depends on {' && '.join(open_terms)}, and here {shown}")
    if texts:
        return "; or ".join(texts)
    others = [one for option in found for one in option.choice if one != short]
    taken = [one for one in others if _value(one, final) == "y"]
    if wanted == "y" and taken:
        return f"it is one of a choice, of which {taken[0]} is taken"
    return "another option selects it, or its type does not allow the value"


def _value(word: str, final: Mapping[str, Wanted]) -> str:
    if word in _TRISTATE or word[0] in "\"'" or word.isdigit():
        return word.strip("\"'")
    option = final.get(f"CONFIG_{word}")
    return option.value.strip('"') if option else "n"


def _compare(sign: str, left: str, right: str) -> bool:
    """Whether a comparison holds: of numbers where both are (versions of compilers), else of texts
    by the alphabet."""
    if left.isdecimal() and right.isdecimal():
        return _COMPARED[sign](int(left), int(right))
    return _COMPARED[sign](left, right)


def _named(condition: str, final: Mapping[str, Wanted]) -> dict[str, str]:
    """The options that a condition names, with their values."""
    words = [word for word in _TOKEN.findall(condition) if word[0].isalpha()]
    return {word: _value(word, final) for word in words if word not in _TRISTATE}


def evaluate(condition: str, final: Mapping[str, Wanted]) -> int:
    """The value of an expression: 0 (n), 1 (m) or 2 (y); kconfig-language.rst, "Menu
    dependencies". What cannot be read counts as y: it is then not named as a reason."""
    tokens = _TOKEN.findall(condition)
    position = 0

    def peek() -> str:
        return tokens[position] if position < len(tokens) else ""

    def take() -> str:
        nonlocal position
        position += 1
        return tokens[position - 1] if position <= len(tokens) else "y"

    def either() -> int:
        result = both()
        while peek() == "||":
            take()
            result = max(result, both())
        return result

    def both() -> int:
        result = single()
        while peek() == "&&":
            take()
            result = min(result, single())
        return result

    def single() -> int:
        token = take()
        if token == "!":
            return 2 - single()
        if token == "(":
            result = either()
            take()
            return result
        if peek() in _COMPARED:
            sign = take()
            return 2 * _compare(sign, _value(token, final), _value(take(), final))
        return _TRISTATE.get(_value(token, final), 0)

    return either()
