"""Makes the factories of tests/unit importable when only this folder's tests are run."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))
