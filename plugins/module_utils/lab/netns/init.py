"""The first process of a host of a netns lab; the host is its namespaces, and ends with it.

Started by ``instance`` as a program of its own (standard library only). Its first line of input is
a JSON document: ``name`` of the host, ``steps`` that make its view, ``mark`` with a file's ``path``
and ``text``. It answers with one line, {"pid"} as the machine counts, or {"error"}. Then it waits
on the descriptor ``go``: a byte means that the lab is complete, the end of the pipe that whoever
started it is dead, and then the host ends as well. So a lab is there as a whole or not at all.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from typing import Any


def main() -> int:
    """Make the view, wait for the word, then reap orphans until SIGTERM."""
    signal.signal(signal.SIGTERM, _end)
    order = json.loads(sys.stdin.readline())
    # The machine's /proc is still mounted here, and counts as the machine does.
    pid = int(os.readlink("/proc/self"))
    socket.sethostname(order["name"])
    for argv in order["steps"]:
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, check=False)
        if done.returncode:
            said = (done.stderr or done.stdout).decode(errors="replace").strip()
            return _answer(
                {"error": f"{' '.join(argv)}: {said or f'ended with {done.returncode}'}"}
            )
    with open(order["mark"]["path"], "w", encoding="utf-8") as handle:
        handle.write(order["mark"]["text"])
    _answer({"pid": pid})
    if not os.read(order["go"], 1):
        return 1
    os.close(order["go"])
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nothing, descriptor)
    os.chdir("/")
    _reap()
    return 0


def _answer(document: dict[str, Any]) -> int:
    print(json.dumps(document), flush=True)
    return 1


def _end(_number: int, _frame: Any) -> None:
    """The kernel ends every other process of the host with this one."""
    os._exit(0)


def _reap() -> None:
    """A first process inherits the orphans of its host. Blocked, no signal is missed."""
    awaited = {signal.SIGCHLD, signal.SIGTERM}
    signal.pthread_sigmask(signal.SIG_BLOCK, awaited)
    while True:
        while _reaped_one():
            pass
        if signal.sigwait(awaited) == signal.SIGTERM:
            return


def _reaped_one() -> bool:
    try:
        ended, _status = os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        return False
    return bool(ended)


if __name__ == "__main__":
    sys.exit(main())
