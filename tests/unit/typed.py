"""Commands typed into a shell whose programs only note what they were given."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

END = "\x1e"
_NOTE = f"""#!/bin/sh
{{ basename "$0"; for word; do printf '%s\\n' "$word"; done; printf '{END}\\n'; }} >>"$NOTED"
"""


def type_in(
    lines: Sequence[str],
    folder: Path,
    programs: Sequence[str],
    more: str = "",
    check: bool = True,
    **variables: str,
) -> tuple[list[list[str]], subprocess.CompletedProcess[str]]:
    """Run lines with sh; what the programs were given, argv by argv, and how the shell ended.

    ``more`` is what each program does besides, as shell text.
    """
    stubs, noted = folder / "stubs", folder / "noted"
    stubs.mkdir(exist_ok=True)
    noted.write_text("")
    for name in programs:
        path = stubs / name
        path.write_text(_NOTE + more)
        path.chmod(0o755)
    done = subprocess.run(
        ["/bin/sh", "-s"],
        input="set -e\n" + "\n".join(lines) + "\n",
        env={"PATH": f"{stubs}:{os.environ['PATH']}", "NOTED": str(noted), **variables},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert not check or done.returncode == 0, done.stderr
    records = noted.read_text().split(f"{END}\n")[:-1]
    return [record[:-1].split("\n") for record in records], done
