"""What a lab shall be: everything that is asked for when it is started."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Optional


@dataclass(frozen=True)
class Wish:
    """``kernel`` is the folder of a built kernel (docs/data-format.md), None for the image's own;
    ``boot`` counts its boots: each is a real one, saved on its own."""

    name: str
    topology: dict[str, Any]
    image: Path  # folder of a baked image, or a cloud image file
    cloud: bool
    cloud_packages: tuple[str, ...]
    accelerator: str
    memory_mib: int
    cpus: int
    selinux: str
    append: str
    restrict: bool
    boot_timeout_s: float
    kernel: Optional[Path] = None
    boot: int = 0

    def document(self) -> dict[str, Any]:
        """The form that the state file has."""
        return {
            **vars(self),
            "image": str(self.image),
            "cloud_packages": list(self.cloud_packages),
            "kernel": None if self.kernel is None else str(self.kernel),
        }


def from_document(document: dict[str, Any]) -> Wish:
    """The wish of a state file. TypeError or KeyError for any other document."""
    kernel = document["kernel"]
    return Wish(
        **{
            **document,
            "image": Path(document["image"]),
            "cloud_packages": tuple(document["cloud_packages"]),
            "kernel": None if kernel is None else Path(kernel),
        }
    )
