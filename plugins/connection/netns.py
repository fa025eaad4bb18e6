# SPDX-License-Identifier: GPL-2.0-or-later
"""Ansible connection: a host of the lab of network namespaces, on this machine."""

from __future__ import annotations

DOCUMENTATION = r"""
name: netns
short_description: Run on a host of the lab of network namespaces
version_added: 0.1.0
description:
  - Enters the namespaces of a host that M(crossover.lab.netns_lab) has started. There is no server
    and no key; the connection is a process of this machine's superuser.
  - Nothing that a host's configuration does to its links can cut this connection.
  - Mitogen does not know this connection and leaves it to Ansible itself.
author: Crossover developers
options:
  lab:
    description: Name of the lab.
    type: str
    default: default
    vars:
      - name: lab_name
  node:
    description: The host's name in the topology.
    type: str
    vars:
      - name: inventory_hostname
"""

import shlex
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import IO, Any

from ansible.errors import AnsibleConnectionFailure, AnsibleFileNotFound
from ansible.plugins.connection import ConnectionBase
from ansible.utils.display import Display

from ansible_collections.crossover.lab.plugins.module_utils.lab.errors import LabError
from ansible_collections.crossover.lab.plugins.module_utils.lab.netns import state, view

DISPLAY = Display()


class Connection(ConnectionBase):  # type: ignore[misc]
    """Each command is a process of its own in the host's namespaces."""

    transport = "crossover.lab.netns"
    has_pipelining = True

    def _connect(self) -> Connection:
        """Nothing is kept open between commands."""
        self._connected = True
        return self

    def close(self) -> None:
        """Nothing to close."""
        self._connected = False

    def exec_command(
        self, cmd: str, in_data: bytes | None = None, sudoable: bool = True
    ) -> tuple[int, bytes, bytes]:
        """Run a shell command on the host; returns its exit code and output."""
        super().exec_command(cmd, in_data=in_data, sudoable=sudoable)
        DISPLAY.vvv(f"EXEC {cmd}", host=self.get_option("node"))
        done = self._run(["/bin/sh", "-c", cmd], in_data or b"")
        return done.returncode, done.stdout, done.stderr

    def put_file(self, in_path: str, out_path: str) -> None:
        """Copy a file of the controller to the host: its /tmp and /run are others."""
        super().put_file(in_path, out_path)
        if not Path(in_path).is_file():
            raise AnsibleFileNotFound(f"file or module does not exist: {in_path}")
        with open(in_path, "rb") as source:
            done = self._run(["/bin/sh", "-c", f"cat >{shlex.quote(out_path)}"], source)
        self._must(done, f"{in_path} cannot be written to {out_path}")

    def fetch_file(self, in_path: str, out_path: str) -> None:
        """Copy a file of the host to the controller."""
        super().fetch_file(in_path, out_path)
        done = self._run(["cat", in_path], b"")
        self._must(done, f"{in_path} cannot be read")
        Path(out_path).write_bytes(done.stdout)

    def _run(
        self, command: Iterable[str], data: bytes | IO[bytes]
    ) -> subprocess.CompletedProcess[bytes]:
        given: dict[str, Any] = {"input": data} if isinstance(data, bytes) else {"stdin": data}
        return subprocess.run(
            view.entry(self._pid(), command),
            capture_output=True,
            check=False,
            env=view.ENVIRONMENT,
            cwd="/",
            **given,
        )

    def _pid(self) -> int:
        """The host's first process, looked up each time: the lab may have been started anew."""
        lab, node = self.get_option("lab"), self.get_option("node")
        try:
            found = state.load(lab)
        except LabError as error:
            raise AnsibleConnectionFailure(str(error)) from error
        process = found.nodes.get(node) if found is not None else None
        if process is None or not process.alive():
            raise AnsibleConnectionFailure(
                f"{node} of the lab {lab} does not run on this machine (or this is not its"
                " superuser); start it as root with: CROSSOVER_INVENTORY=inventories/netns"
                " crossover lab up"
            )
        return process.pid

    def _must(self, done: subprocess.CompletedProcess[bytes], what: str) -> None:
        if done.returncode:
            said = done.stderr.decode(errors="replace").strip()
            raise AnsibleConnectionFailure(f"{self.get_option('node')}: {what}: {said}")
