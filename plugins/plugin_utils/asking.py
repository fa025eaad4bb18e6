# SPDX-License-Identifier: GPL-2.0-or-later
"""Base of action plugins that ask their host over a new connection beside Ansible's own."""

from __future__ import annotations

from collections.abc import Callable

from ansible.plugins.action import ActionBase

from ansible_collections.crossover.lab.plugins.plugin_utils.new_connection import (
    Answer,
    Route,
    RouteError,
    ask,
    read_route,
)

SSH_OPTIONS = (
    "host",
    "port",
    "remote_user",
    "private_key_file",
    "ssh_args",
    "ssh_common_args",
    "ssh_extra_args",
    "ssh_executable",
    "password",
)

# Connections without a network, which no configuration of a host can cut.
ON_THIS_MACHINE = ("local", "crossover.lab.netns")
# Runs a command (argv) on the host over a new connection within some seconds.
Ask = Callable[[list[str], float], Answer]


class AskingAction(ActionBase):  # type: ignore[misc]
    """Knows how its host is asked."""

    # What messages call the change.
    subject = ""

    def _way(self) -> Ask:
        """How this host is asked: over a new ssh connection, or directly if it is this machine."""
        transport = self._connection.transport
        if transport in ON_THIS_MACHINE:
            return self._ask_locally
        if transport != "ssh":
            raise RouteError(
                f"guard: connection {transport!r}; a change that can cut the connection wants ssh "
                "or local"
            )
        route = self._route()
        return lambda command, limit_s: ask(route, command, limit_s)

    def _route(self) -> Route:
        options = {name: self._connection.get_option(name) for name in SSH_OPTIONS}
        context = self._play_context
        become = None
        if context.become:
            become = {
                "method": context.become_method,
                "user": context.become_user,
                "password": context.become_pass,
            }
        return read_route(options, become)

    def _ask_locally(self, command: list[str], _limit_s: float) -> Answer:
        done = self._low_level_execute_command(" ".join(command), sudoable=True)
        return Answer(True, int(done["rc"]), done["stdout"], done["stderr"].strip())
