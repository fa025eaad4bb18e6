"""The STT module compiles for the kernels of both Debian releases, each in its own tree."""

from __future__ import annotations

import re
import subprocess

import pytest
from lab_plays import ROOT

from collector.lab import stt
from collector.lab.image import host_mirror, host_proxies

SOURCES = ROOT / "roles" / "tunnel" / "files" / "stt"
LIMIT_S = 1400
SHOW = (
    '--customize-hook=chroot "$1" sh -c "modinfo -k \\$(ls /lib/modules) stt;'
    ' ls /usr/lib/*/ip/link_stt.so; ip link help stt; test ! -e /usr/bin/gcc"'
)
# Of the compiler and of modpost; dpkg warns of folders that it leaves.
WARNING = re.compile(r"(?<!dpkg: )warning:|WARNING: modpost")


@pytest.mark.slow
@pytest.mark.timeout(LIMIT_S)
@pytest.mark.parametrize(("suite", "kernel"), [("bookworm", "6.1"), ("trixie", "6.12")])
def test_it_builds_without_a_warning_and_leaves_no_compiler(suite: str, kernel: str) -> None:
    done = subprocess.run(
        [
            "mmdebstrap",
            "--mode=auto",
            "--variant=apt",
            "--format=null",
            "--include=linux-headers-cloud-amd64,iproute2,kmod",
            *stt.bake_hooks(SOURCES),
            SHOW,
            *host_proxies(),
            suite,
            "/dev/null",
            host_mirror(),
        ],
        capture_output=True,
        text=True,
        check=False,
        timeout=LIMIT_S,
    )
    text = done.stdout + done.stderr
    assert done.returncode == 0, text[-4000:]
    assert [line for line in text.splitlines() if WARNING.search(line)] == []
    assert re.search(rf"^vermagic: +{re.escape(kernel)}\.", text, re.MULTILINE)
    assert "updates/stt.ko" in text
    assert "stt remote ADDRESS" in text
