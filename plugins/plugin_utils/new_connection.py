# SPDX-License-Identifier: GPL-2.0-or-later
"""A management connection that shares nothing with Ansible's own: one ssh process a command.

An established connection can go on where no new one can be made, so what shows that a host can
still be reached is a new one. Host keys are checked exactly as for Ansible's own connection;
nothing here loosens that.
"""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass

CONNECT_LIMIT_S = 10


class RouteError(Exception):
    """No new connection can be made this way; the text says what was wanted."""


@dataclass(frozen=True)
class Route:
    """How a new connection is made. ``arguments``: the user's own, in Ansible's order.

    ``become``: the words before a command that needs root, and ``secret`` their standard input.
    """

    host: str
    executable: str = "ssh"
    arguments: tuple[str, ...] = ()
    user: str | None = None
    port: int | None = None
    key: str | None = None
    become: tuple[str, ...] = ()
    secret: str = ""

    def argv(self, command: Sequence[str], limit_s: float) -> list[str]:
        """The ssh command line that runs ``command`` (argv) as root.

        ssh takes the first value of an option, so ours come before the user's.
        """
        connect = max(1, int(min(limit_s, CONNECT_LIMIT_S)))
        words = [
            self.executable,
            *("-o", "ControlMaster=no", "-o", "ControlPath=none"),
            *("-o", "BatchMode=yes", "-o", f"ConnectTimeout={connect}"),
            *self.arguments,
        ]
        if self.port is not None:
            words += ["-o", f"Port={self.port}"]
        if self.user:
            words += ["-o", f"User={self.user}"]
        if self.key:
            words += ["-o", f"IdentityFile={self.key}"]
        return [*words, "-T", self.host, shlex.join([*self.become, *command])]


@dataclass(frozen=True)
class Answer:
    """What came back. ``reached``: whether the command ran at all; ``said``: stderr's last line."""

    reached: bool
    code: int
    out: str
    said: str


def read_route(options: dict[str, object], become: dict[str, object] | None) -> Route:
    """A route from the options of an ssh connection and, unless None, of privilege escalation.

    Raises :class:`RouteError` for what only Ansible's own connection can do.
    """
    if options.get("password"):
        raise RouteError(
            "guard: the connection uses a password; the new connection that confirms a change "
            "wants a key or an agent"
        )
    arguments: list[str] = []
    for name in ("ssh_args", "ssh_common_args", "ssh_extra_args"):
        arguments += shlex.split(str(options.get(name) or ""))
    port, key = options.get("port"), options.get("private_key_file")
    words, secret = _become(become) if become is not None else ((), "")
    return Route(
        host=str(options["host"]),
        executable=str(options.get("ssh_executable") or "ssh"),
        arguments=tuple(arguments),
        user=str(options["remote_user"]) if options.get("remote_user") else None,
        port=int(str(port)) if port else None,
        key=os.path.expanduser(str(key)) if key else None,
        become=words,
        secret=secret,
    )


def _become(options: dict[str, object]) -> tuple[tuple[str, ...], str]:
    method = options.get("method") or "sudo"
    if method != "sudo":
        raise RouteError(
            f"guard: become method {method!r}; the new connection that confirms a change knows "
            "sudo only"
        )
    secret = options.get("password")
    user = str(options.get("user") or "root")
    if secret:
        return ("sudo", "-S", "-p", "", "-u", user), f"{secret}\n"
    return ("sudo", "-n", "-u", user), ""


def ask(route: Route, command: Sequence[str], limit_s: float) -> Answer:
    """Run a command over a new connection, for at most ``limit_s`` seconds. Raises nothing."""
    argv = route.argv(command, limit_s)
    try:
        done = subprocess.run(
            argv,
            input=route.secret,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            timeout=max(1.0, limit_s),
            env={**os.environ, "LC_ALL": "C"},
        )
    except subprocess.TimeoutExpired:
        return Answer(False, 255, "", f"no answer within {limit_s:.0f} s")
    except OSError as error:
        return Answer(False, 255, "", f"{route.executable}: {error.strerror}")
    lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
    # ssh's own failures are 255.
    return Answer(done.returncode != 255, done.returncode, done.stdout, lines[-1] if lines else "")
