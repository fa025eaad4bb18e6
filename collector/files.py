"""Files that appear whole: written beside their place and renamed."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any


def write_whole(path: Path, data: bytes | str) -> None:
    """Write a file in one step."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_bytes(data if isinstance(data, bytes) else data.encode())
    temporary.rename(path)


def write_json(path: Path, document: Any) -> None:
    """Write a JSON document in one step."""
    write_whole(path, json.dumps(document, indent=2, ensure_ascii=False) + "\n")
