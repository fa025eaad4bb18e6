# SPDX-License-Identifier: GPL-2.0-or-later
"""Commands that a module runs, and that a person can type: one form for both. Pure.

A key never stands in a command. Its placeholder does, which is a variable to a shell; only what is
handed to a program's standard input ever has the key itself. By hand, a key is made of ``SECRET``,
one text that whoever types the commands gives to both hosts, so that both come to the same keys.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import List, Optional, Tuple

# The hexadecimal digits that one derivation gives: those of SHA-512.
MOST_DIGITS = 128
_PLACEHOLDER = re.compile(r"\$KEY_[A-Z0-9_]+")
_END = "END"


class Expanded(str):
    """A word that a shell is to fill in, so that it is printed as it is."""

    __slots__ = ()


@dataclass(frozen=True)
class Step:
    """A command. ``stdin`` is what it reads; ``undo`` takes back what it did."""

    argv: Tuple[str, ...]
    stdin: Optional[str] = None
    undo: Tuple["Step", ...] = ()

    def shell(self) -> str:
        """The command as one types it. A placeholder is left for the shell to fill in."""
        line = " ".join(
            word if isinstance(word, Expanded) else shlex.quote(word) for word in self.argv
        )
        return line if self.stdin is None else f"printf '%s\\n' \"{self.stdin}\" | {line}"


def placeholder(owner: str, what: str) -> Expanded:
    """How commands name a key of a link, a connection, an SA."""
    return Expanded("$KEY_" + re.sub("[^A-Z0-9]", "_", f"{owner}_{what}".upper()))


def expand(words: Iterable[str]) -> Tuple[str, ...]:
    """The words of a command that was written as text, placeholders marked as such."""
    return tuple(Expanded(word) if _PLACEHOLDER.fullmatch(word) else word for word in words)


def fill(text: str, keys: Mapping[str, str]) -> str:
    """The text with keys in the place of their placeholders. Raises KeyError for an unknown one."""
    return _PLACEHOLDER.sub(lambda match: keys[match.group()], text)


def hide(text: str, keys: Mapping[str, str]) -> str:
    """The text of a program with placeholders in the place of keys."""
    for name, key in keys.items():
        text = text.replace(key, name)
    return text


# --- by hand ------------------------------------------------------------------------------------

# What a host with SELinux must have been given before, by the role selinux or by hand.
SSH_STAYS = (
    "# under SELinux, enforcing: SSH stays with the policy module crossover_netlabel"
    " (roles/selinux/files)"
)
IPSEC_WORKS = (
    "# under SELinux, enforcing: labelled SAs and IKE daemons need the policy module"
    " crossover_ipsec (roles/selinux/files)"
)
ASK_SECRET = ': "${SECRET:?wanted a text of your own, the same on both hosts}"'


def hashed(purpose: str, then: str) -> str:
    """A substitution that makes something of SECRET for one purpose; ``then`` is given the
    hexadecimal digits of the hash. The purpose may hold variables of the shell."""
    return f'$(printf %s "$SECRET {purpose}" | sha512sum | {then})'


def hexadecimal(length: int) -> str:
    """What :func:`hashed` is followed by for a key of ``length`` bytes. Raises ValueError."""
    if not 0 < 2 * length <= MOST_DIGITS:
        raise ValueError(f"{length} bytes, wanted 1 to {MOST_DIGITS // 2}")
    return f"cut -c 1-{2 * length}"


def key_line(name: str, purpose: str, then: str, prefix: str = "") -> str:
    """The line that makes a key, unless its variable is set already."""
    variable = name.lstrip("$")
    return f"{variable}=${{{variable}:-{prefix}{hashed(purpose, then)}}}"


def here_document(path: str, text: str, expanded: bool = False) -> str:
    """The command that writes a file that only its owner reads, over several lines. ``expanded``:
    the shell fills in placeholders; without, every character stands for itself. Raises ValueError
    for a text with the line that ends the document."""
    if _END in text.splitlines():
        raise ValueError(f"{path}: a line is {_END!r}, wanted another text")
    end = _END if expanded else f"'{_END}'"
    return f"(umask 077 && cat >{shlex.quote(path)}) <<{end}\n{text.rstrip()}\n{_END}"


def with_secret(lines: List[str]) -> List[str]:
    """The lines, after the one that asks for SECRET where any of them needs it."""
    return [ASK_SECRET, *lines] if any("$SECRET" in line for line in lines) else lines
