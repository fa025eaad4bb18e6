# SPDX-License-Identifier: GPL-2.0-or-later
"""Documentation that modules share whose change can cut the connection to the host."""

from __future__ import annotations


class ModuleDocFragment:
    """The option whose argument is ``module_utils.guard.ARGUMENT``."""

    DOCUMENTATION = r"""
options:
  guard:
    description: The guard against lock-out.
    type: dict
    suboptions:
      timeout:
        description: >-
          Seconds within which a new connection must confirm the change; otherwise it is rolled back
          (3 to 3600).
        type: int
        default: 30
      token:
        description: Name of the guard. Set by the action plugin.
        type: str
"""
