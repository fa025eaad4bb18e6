# SPDX-License-Identifier: GPL-2.0-or-later
"""Ansible action: the tunnel module under the guard against lock-out."""

from __future__ import annotations

from ansible_collections.crossover.lab.plugins.plugin_utils.guarded import GuardedAction


class ActionModule(GuardedAction):
    """See the module's documentation."""

    subject = "tunnel"
