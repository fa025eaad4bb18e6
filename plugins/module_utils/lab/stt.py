"""The STT module in a guest image: built in the image's own tree while it is baked.

A module fits one kernel only, and that kernel's headers want a compiler and C library of its own
release, so the tree itself is the place. What the build needs is removed again.
"""

from __future__ import annotations

from pathlib import Path

# Where the sources lie during the bake.
_FOLDER = "/usr/src/crossover-stt"
_COMPILER = ("gcc", "libc6-dev", "make")
_BUILD = " && ".join(
    (
        "release=$(ls /lib/modules)",
        f'packages="{" ".join(_COMPILER)} linux-headers-$release"',
        "export DEBIAN_FRONTEND=noninteractive LC_ALL=C",
        "apt-get -qq -y --no-install-recommends -o Dpkg::Options::=--force-unsafe-io"
        " install $packages",
        f"make -s -C {_FOLDER} KERNEL=$release all install",
        # Otherwise what anything that stays merely suggests would stay with it.
        "apt-get -qq -y -o Dpkg::Options::=--force-unsafe-io"
        " -o APT::AutoRemove::SuggestsImportant=false"
        " -o APT::AutoRemove::RecommendsImportant=false purge --autoremove $packages",
        f"rm -rf {_FOLDER}",
    )
)


def source_files(sources: Path) -> list[Path]:
    """The files that the module and the plugin are made of, in a fixed order."""
    wanted = ("*.c", "*.h", "Kbuild", "Makefile", "plugin/*.c")
    return sorted(path for pattern in wanted for path in sources.glob(pattern))


def identity(sources: Path) -> bytes:
    """What an image depends on beside the rest of its inputs: names, contents, how it is built."""
    files = (path.name.encode() + b"\0" + path.read_bytes() for path in source_files(sources))
    return b"".join((_BUILD.encode(), *files))


def bake_hooks(sources: Path) -> list[str]:
    """mmdebstrap options that build the module and the plugin in the guest's tree."""
    options = [
        f'--customize-hook=mkdir -p "$1{_FOLDER}/plugin"',
    ]
    for path in source_files(sources):
        target = f"{_FOLDER}/{path.relative_to(sources)}"
        options.append(f"--customize-hook=upload {path} {target}")
    return [*options, f"--customize-hook=chroot \"$1\" sh -c '{_BUILD}'"]
