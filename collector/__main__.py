"""``python -m collector`` is the command line."""

import sys

from collector.cli import main

sys.exit(main())
