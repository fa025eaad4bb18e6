"""A source tree that answers the makefile targets a kernel has, in milliseconds: options with
dependencies, an image that says its release, modules to install. One file is compiled for each
``*.c``, and only if it is newer than its object, so that incremental builds can be told.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

KCONFIG = """\
mainmenu "small"
source "net/Kconfig"
"""
NET_KCONFIG = """\
menuconfig NET
\tbool "Networking"
\thelp
\t  config NOT_AN_OPTION is text here.

if NET
config NETLABEL
\tbool "Labels"
\tdepends on SECURITY
config PLAIN
\ttristate "Plain"
config HIDDEN
\tbool
endif
config SECURITY
\tbool "Security"
"""
CONF = """\
import os, re, sys
from pathlib import Path
target, out = sys.argv[1], Path(sys.argv[2])
known = {"NET": [], "NETLABEL": ["NET", "SECURITY"], "PLAIN": ["NET"], "SECURITY": []}
source = os.environ.get("KCONFIG_ALLCONFIG") or out / ".config"
lines = [] if target == "defconfig" else Path(source).read_text().splitlines()
asked = dict(re.fullmatch(r"CONFIG_(\\w+)=(.*)", line).groups() for line in lines if "=" in line)
if target == "defconfig":
    asked = {"NET": "y", "SECURITY": "y"}
kept = {key: value for key, value in asked.items()
        if key not in known or all(asked.get(need, "n") != "n" for need in known[key])}
kept = {key: value for key, value in kept.items()
        if key in known or key.startswith("LOCALVERSION") or key == "MODULES"}
(out / ".config").write_text("".join(f"CONFIG_{key}={value}\\n" for key, value in kept.items()))
"""
BUILD = """\
import os, re, struct, sys
from pathlib import Path
target, out, outside = sys.argv[1], Path(sys.argv[2]), os.environ["M"]
config = (out / ".config").read_text()
local = re.search(r'LOCALVERSION="(.*)"', config)
release = "6.9.0" + (local[1] if local else "")
if target == "bzImage":
    for file in sorted(Path().glob("*.c")):
        made = out / (file.stem + ".o")
        if "#error" in file.read_text():
            print(f"{file}:1:2: error: {file.read_text().strip()}")
            sys.exit(2)
        if not made.exists() or made.stat().st_mtime_ns < file.stat().st_mtime_ns:
            print(f"  CC      {made.name}", flush=True)
            made.write_text(file.read_text())
    head = bytearray(0x8000)
    head[0x202:0x206] = b"HdrS"
    struct.pack_into("<H", head, 0x20E, 0x3000)
    text = f"{release} (crossover@crossover) #1 SMP Thu Jan  1 00:00:00 UTC 1970".encode()
    head[0x3200 : 0x3200 + len(text)] = text
    image = out / "arch" / "x86" / "boot" / "bzImage"
    image.parent.mkdir(parents=True, exist_ok=True)
    image.write_bytes(bytes(head))
    (out / "vmlinux").write_text("")
elif target == "modules" and outside:
    print(f"  CC [M]  {outside}/outside.o", flush=True)
    (Path(outside) / "outside.ko").write_text((Path(outside) / "outside.c").read_text())
elif target == "modules_install" and outside:
    folder = Path(sys.argv[3]) / "lib" / "modules" / release / "updates"
    folder.mkdir()
    (folder / "outside.ko").write_text((Path(outside) / "outside.ko").read_text())
elif target == "modules_install":
    folder = Path(sys.argv[3]) / "lib" / "modules" / release
    folder.mkdir(parents=True)
    for name in ("modules.order", "modules.builtin"):
        (folder / name).write_text("")
    (folder / "build").symlink_to("/nowhere")
"""
MAKEFILE = """\
O ?= .
defconfig allnoconfig olddefconfig:
\t@KCONFIG_ALLCONFIG=$(KCONFIG_ALLCONFIG) $(PYTHON) conf.py $@ $(O)
bzImage modules modules_install:
\t@M=$(M) $(PYTHON) build.py $@ $(O) $(INSTALL_MOD_PATH)
"""


def write(folder: Path) -> Path:
    """The tree in a folder."""
    (folder / "net").mkdir(parents=True)
    (folder / "Kconfig").write_text(KCONFIG)
    (folder / "net" / "Kconfig").write_text(NET_KCONFIG)
    (folder / "conf.py").write_text(CONF)
    (folder / "build.py").write_text(BUILD)
    (folder / "Makefile").write_text(f"PYTHON = {sys.executable}\n{MAKEFILE}")
    (folder / "tcp.c").write_text("int tcp;\nint backlog = 1;\n")
    (folder / "udp.c").write_text("int udp;\n")
    return folder


def tarball(folder: Path) -> Path:
    """An archive of the tree, below one folder."""
    write(folder / "small-6.9")
    target = folder / "small-6.9.tar.xz"
    subprocess.run(["tar", "-cJf", target, "-C", folder, "small-6.9"], check=True)
    return target


def patch(target: Path, file: str, old: str, new: str) -> Path:
    """A patch that changes one line of a file."""
    target.write_text(
        f"--- a/{file}\n+++ b/{file}\n@@ -1,1 +1,1 @@\n-{old}\n+{new}\n", encoding="utf-8"
    )
    return target
