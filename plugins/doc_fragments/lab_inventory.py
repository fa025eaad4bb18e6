# SPDX-License-Identifier: GPL-2.0-or-later
"""Documentation that the inventories of labs share: which lab, which topology."""

from __future__ import annotations


class ModuleDocFragment:
    """The options that plugin_utils/lab_inventory.py reads."""

    DOCUMENTATION = r"""
options:
  lab:
    description: Name of the lab.
    type: str
    default: default
    env:
      - name: CROSSOVER_LAB
  topology:
    description: Name of a topology of the role C(lab_qemu).
    type: str
    default: pair
    env:
      - name: CROSSOVER_TOPOLOGY
"""
