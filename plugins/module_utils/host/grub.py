# SPDX-License-Identifier: GPL-2.0-or-later
"""GRUB's files as data: the menu of ``grub.cfg``, the environment block, ``custom.cfg``.

Formats: GRUB manual, "Writing full configuration files directly", "The GRUB environment block";
what ``grub-mkconfig`` writes (its ``00_header``, ``10_linux``, ``41_custom``). Pure.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Dict, List, Optional, Tuple, Union

from .errors import HostError

ENVIRONMENT_BYTES = 1024
ENVIRONMENT_HEAD = "# GRUB Environment Block\n"
BEGIN, END = "# crossover: begin", "# crossover: end"
LINUX_COMMANDS = ("linux", "linux16", "linuxefi")
INITRD_COMMANDS = ("initrd", "initrd16", "initrdefi")
# Commands of an entry that remember a choice or report on the screen, which a one-shot must not.
_LEFT_OUT = ("echo", "savedefault", "recordfail")
_DEFAULT = re.compile(r'^\s*set default="([^"]*)"', re.MULTILINE)


@dataclass(frozen=True)
class Entry:
    """A menu entry. ``path`` is how ``grub-reboot`` and ``default`` name it: identifiers (titles,
    where there is none) of its submenus and of itself, joined by ``>``."""

    path: str
    title: str
    body: Tuple[str, ...]

    def command(self, names: Sequence[str]) -> Optional[List[str]]:
        """The words of its first command of these names; None if it has none."""
        for line in self.body:
            words = line.split()
            if words and words[0] in names:
                return words
        return None

    @property
    def image(self) -> Optional[str]:
        """The kernel's path as GRUB has it; None for what boots no Linux."""
        words = self.command(LINUX_COMMANDS)
        return words[1] if words and len(words) > 1 else None


@dataclass(frozen=True)
class Menu:
    """The entries of a menu in their order, submenus under their own ``(name, title)``."""

    name: str
    title: str
    items: Tuple[Union[Entry, Menu], ...]

    def entries(self) -> Tuple[Entry, ...]:
        """All entries, those of submenus in their place."""
        found: List[Entry] = []
        for item in self.items:
            found += item.entries() if isinstance(item, Menu) else (item,)
        return tuple(found)


def read_environment(data: bytes) -> Dict[str, str]:
    """The variables of an environment block. HostError if it is none."""
    text = data.decode(errors="replace")
    if len(data) != ENVIRONMENT_BYTES or not text.startswith(ENVIRONMENT_HEAD):
        raise HostError(
            f"grubenv: found {len(data)} bytes that begin with {text[:24]!r}; wanted an environment"
            f" block of {ENVIRONMENT_BYTES}"
        )
    found = {}
    # A backslash keeps the character after it, a line end too.
    for line in re.split(r"(?<!\\)\n", text[len(ENVIRONMENT_HEAD) :]):
        name, equals, value = line.partition("=")
        if equals and not line.startswith("#"):
            found[name] = re.sub(r"\\(.)", r"\1", value, flags=re.DOTALL)
    return found


def _heading(line: str, number: int) -> Tuple[str, str]:
    """Title and identifier of a ``menuentry`` or ``submenu`` line."""
    try:
        words = shlex.split(line.strip()[: -len("{")])
    except ValueError as error:
        raise HostError(f"grub.cfg: line {number}: {line.strip()!r}: {error}") from None
    title = words[1] if len(words) > 1 else ""
    for option in ("$menuentry_id_option", "--id"):
        if option in words[:-1]:
            return title, words[words.index(option) + 1]
    return title, title


def read_menu(text: str) -> Menu:
    """The menu of a ``grub.cfg``. HostError that names the line at fault."""
    stack = [_Open("menu", "", "")]
    for number, line in enumerate(text.splitlines(), start=1):
        stripped = line.strip()
        first = stripped.split(None, 1)[0] if stripped else ""
        kind = stack[-1].kind
        if first in ("menuentry", "submenu") and stripped.endswith("{"):
            title, name = _heading(line, number)
            stack.append(_Open(first, name, title))
        elif first == "function" and stripped.endswith("{"):
            stack.append(_Open("function", "", ""))
        elif stripped == "}":
            if len(stack) == 1:
                raise HostError(f"grub.cfg: line {number}: found a '}}' that closes nothing")
            _close(stack)
        elif kind == "menuentry" and stripped:
            stack[-1].lines.append(stripped)
    if len(stack) > 1:
        raise HostError(f"grub.cfg: {stack[-1].kind} {stack[-1].title!r} is never closed")
    return Menu("", "", tuple(stack[0].items))


@dataclass
class _Open:
    """A brace that is open while a menu is read, and what stands inside it so far."""

    kind: str
    name: str
    title: str
    items: List[Union[Entry, Menu]] = field(default_factory=list)
    lines: List[str] = field(default_factory=list)


def _close(stack: List[_Open]) -> None:
    done = stack.pop()
    if done.kind == "submenu":
        stack[-1].items.append(Menu(done.name, done.title, tuple(done.items)))
    elif done.kind == "menuentry":
        menus = [item.name for item in stack if item.kind == "submenu"]
        path = ">".join([*menus, done.name])
        stack[-1].items.append(Entry(path, done.title, tuple(done.lines)))


def default_name(text: str, environment: Dict[str, str]) -> str:
    """What ``grub.cfg`` takes as default when there is no one-shot entry."""
    names = [name for name in _DEFAULT.findall(text) if name != "${next_entry}"]
    if not names:
        return "0"
    if names[0] == "${saved_entry}":
        return environment.get("saved_entry") or "0"
    return names[0]


def find(menu: Menu, name: str) -> Optional[Entry]:
    """The entry of a name: numbers, titles or identifiers, one a level, joined by ``>``.

    A name that ends at a submenu means the submenu's first entry. None if there is no such one.
    """
    item: Union[Entry, Menu, None] = menu
    for part in name.split(">"):
        if not isinstance(item, Menu):
            return None
        item = _child(item, part)
    while isinstance(item, Menu):
        item = item.items[0] if item.items else None
    return item


def _child(menu: Menu, part: str) -> Union[Entry, Menu, None]:
    if part.isdecimal():
        return menu.items[int(part)] if int(part) < len(menu.items) else None
    for item in menu.items:
        own = item.name if isinstance(item, Menu) else item.path.rsplit(">", 1)[-1]
        if part in (own, item.title):
            return item
    return None


def default_entry(text: str, environment: Dict[str, str]) -> Entry:
    """The entry that boots when nothing else is asked for. HostError if there is no such one."""
    name = default_name(text, environment)
    found = find(read_menu(text), name)
    if found is None or found.image is None:
        raise HostError(
            f"grub.cfg: its default is {name!r}, "
            + ("which names no entry" if found is None else "which boots no Linux")
            + "; wanted an entry that boots this host's kernel (see GRUB_DEFAULT in"
            " /etc/default/grub, then update-grub)"
        )
    return found


def lasting_path(text: str, entry: Entry) -> str:
    """How to name ``entry`` so that a newer kernel in the menu does not take its place.

    ``grub-mkconfig`` calls the first entry by one name whatever its kernel, so the entry of the
    same kernel whose name has the release in it is taken instead.
    """
    release = (entry.image or "").rsplit("/", 1)[-1].partition("-")[2]
    for other in read_menu(text).entries():
        own = other.path.rsplit(">", 1)[-1]
        if other.image == entry.image and release and release in own and "recovery" not in own:
            return other.path
    return entry.path


def one_shot_entry(
    template: Entry, identifier: str, title: str, folder: str, words: Sequence[str]
) -> List[str]:
    """The lines of a menu entry that boots ``folder``'s ``vmlinuz`` and ``initrd`` as ``template``
    boots its own kernel, with further words on the command line.

    ``folder`` is relative to the folder of the template's kernel. A quote in a word is refused.
    """
    for word in (identifier, title, folder, *words):
        if re.search(r"['\"\\\n${};]", word):
            raise HostError(f"menu entry {identifier}: {word!r}: wanted no quote or sign of GRUB's")
    lines = [f"menuentry '{title}' --id '{identifier}' {{"]
    above = (template.image or "").rsplit("/", 1)[0]
    for line in template.body:
        parts = line.split()
        if parts[0] in LINUX_COMMANDS:
            lines.append(
                " ".join([f"\t{parts[0]}", f"{above}/{folder}/vmlinuz", *parts[2:], *words])
            )
        elif parts[0] in INITRD_COMMANDS:
            continue
        elif parts[0] not in _LEFT_OUT:
            lines.append(f"\t{line}")
    # Files before the last are processor microcode, which any kernel wants.
    initrd = template.command(INITRD_COMMANDS) or ["initrd", ""]
    lines.append(" ".join([f"\t{initrd[0]}", *initrd[1:-1], f"{above}/{folder}/initrd"]))
    return [*lines, "}"]


def keep_default(path: str) -> List[str]:
    """Lines that make ``path`` the default, whatever comes first in the menu, except where a
    one-shot entry was asked for."""
    return ['if [ "${boot_once}" != "true" ]; then', f"\tset default='{path}'", "fi"]


def custom(before: str, lines: Sequence[str]) -> str:
    """The text of ``custom.cfg`` with our part replaced by ``lines``; what others wrote stays."""
    kept, inside = [], False
    for line in before.splitlines():
        if line.strip() == BEGIN:
            inside = True
        elif line.strip() == END:
            inside = False
        elif not inside:
            kept.append(line)
    own = [BEGIN, *lines, END] if lines else []
    return "".join(f"{line}\n" for line in [*kept, *own])
