# SPDX-License-Identifier: GPL-2.0-or-later
"""Two workers of one task, each with the connection to its own host, that work hand in hand.

Ansible runs a task on several hosts in a process each. Where what one host has to do next depends
on another, one of these processes leads: it says what the other is to do, call by call, and both
do theirs at the same time. They meet at a socket in the folder that Ansible makes for its own
process, so nobody else can come in, and each is told at once when the other is gone.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

Answer = Mapping[str, Any]
# A module's name and its arguments, to what it returned (with ``failed`` and ``msg`` if it did).
Execute = Callable[[str, Mapping[str, Any]], Answer]
# Workers are started one after the other, on a busy machine slowly.
MEET_S = 120.0
_POLL_S = 0.05


class MeetingError(Exception):
    """The other worker did not come, or is gone."""


class Line:
    """One end of the connection: documents, a line each."""

    def __init__(self, connected: socket.socket, other: str) -> None:
        connected.settimeout(None)
        self._socket, self._other = connected, other
        self._lines = connected.makefile("r", encoding="utf-8")

    def say(self, document: Mapping[str, Any]) -> None:
        """Send a document. MeetingError when nobody is there to hear it."""
        try:
            self._socket.sendall(f"{json.dumps(document)}\n".encode())
        except OSError as error:
            raise MeetingError(f"the task on {self._other} has ended ({error})") from error

    def hear(self) -> dict[str, Any] | None:
        """The next document, None when the other has nothing more to say."""
        try:
            text = self._lines.readline()
        except OSError:
            return None
        found: dict[str, Any] | None = json.loads(text) if text.endswith("\n") else None
        return found

    def close(self) -> None:
        """End the connection; the other hears that nothing more comes."""
        self._lines.close()
        self._socket.close()


@contextlib.contextmanager
def leading(place: str, other: str, limit_s: float = MEET_S) -> Iterator[Line]:
    """Wait for the worker of ``other`` at a path. MeetingError when it does not come."""
    with socket.socket(socket.AF_UNIX) as listening:
        try:
            listening.bind(place)
        except OSError as error:
            raise MeetingError(f"{place}: {error}; a shorter local_tmp may help") from error
        listening.listen(1)
        listening.settimeout(limit_s)
        try:
            connected, _ = listening.accept()
        except TimeoutError:
            raise MeetingError(_alone(other, limit_s)) from None
        finally:
            os.unlink(place)
    line = Line(connected, other)
    try:
        yield line
    finally:
        line.close()


@contextlib.contextmanager
def following(place: str, other: str, limit_s: float = MEET_S) -> Iterator[Line]:
    """Go to the worker of ``other`` at a path. MeetingError when it is not there in time."""
    limit = time.monotonic() + limit_s
    connected = socket.socket(socket.AF_UNIX)
    try:
        while True:
            try:
                connected.connect(place)
                break
            except (FileNotFoundError, ConnectionRefusedError):
                if time.monotonic() > limit:
                    raise MeetingError(_alone(other, limit_s)) from None
                time.sleep(_POLL_S)
            except OSError as error:
                raise MeetingError(f"{place}: {error}; a shorter local_tmp may help") from error
        line = Line(connected, other)
    except BaseException:
        connected.close()
        raise
    try:
        yield line
    finally:
        line.close()


def _alone(other: str, limit_s: float) -> str:
    return (
        f"the task on {other} did not begin within {limit_s:g} s; both hosts have to be worked on"
        " at the same time, so wanted forks of 2 or more, and no throttle or serial"
    )


def serve(line: Line, execute: Execute) -> int:
    """Do what the leader says until it has nothing more; how many calls that were.

    An exception of ``execute`` is told to the leader, then raised.
    """
    calls = 0
    while True:
        asked = line.hear()
        if asked is None:
            return calls
        try:
            answer = execute(asked["module"], asked["arguments"])
        except Exception as error:
            line.say({"failed": True, "msg": str(error)})
            raise
        calls += 1
        line.say(answer)


class Pair:
    """Calls on this worker's host, on the other's, or on both at once."""

    def __init__(self, host: str, execute: Execute, line: Line, other: str) -> None:
        self._host, self._execute = host, execute
        self._line, self._other = line, other

    def together(self, calls: Mapping[str, tuple[str, Mapping[str, Any]]]) -> dict[str, Answer]:
        """What each host's call returned. MeetingError when the other worker is gone, or for a
        host that is neither of the two."""
        unknown = set(calls) - {self._host, self._other}
        if unknown:
            raise MeetingError(f"{', '.join(unknown)}: wanted {self._host} or {self._other}")
        if self._other in calls:
            module, arguments = calls[self._other]
            self._line.say({"module": module, "arguments": dict(arguments)})
        found = {}
        if self._host in calls:
            found[self._host] = self._execute(*calls[self._host])
        if self._other in calls:
            answer = self._line.hear()
            if answer is None:
                raise MeetingError(f"the task on {self._other} has ended; see what it says")
            found[self._other] = answer
        return found
