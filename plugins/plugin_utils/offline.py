# SPDX-License-Identifier: GPL-2.0-or-later
"""Makes the package ``collector`` importable for control-side plugins.

The command line's own Python has it installed; a plain ``ansible-playbook`` finds it here, beside
the collection.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

if importlib.util.find_spec("collector") is None:
    sys.path.append(str(Path(__file__).resolve().parents[2]))
