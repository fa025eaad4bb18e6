# SPDX-License-Identifier: GPL-2.0-or-later
"""Ansible action: the seed of a run's keys of tunnels."""

from __future__ import annotations

from ansible_collections.crossover.lab.plugins.plugin_utils.seed import SeedAction


class ActionModule(SeedAction):
    """See the base class."""
