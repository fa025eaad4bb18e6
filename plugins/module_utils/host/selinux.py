"""SELinux as the kernel and the policy store say it is."""

from __future__ import annotations

import hashlib
import re
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Dict, List, Mapping, Optional, Tuple

from .errors import HostError
from .run import Run, output

FS = Path("/sys/fs/selinux")
CONFIG = Path("/etc/selinux/config")
CMDLINE = Path("/proc/cmdline")
MODES = ("enforcing", "permissive", "disabled")
_ASSIGNMENT = re.compile(r"\s*(SELINUX|SELINUXTYPE)\s*=\s*(\S+)\s*")


@dataclass(frozen=True)
class Module:
    """A policy module in the store. ``checksum`` is ``sha256:…`` of the file it came from."""

    name: str
    priority: int
    language: str
    checksum: Optional[str]


def mode(fs: Path = FS) -> str:
    """The running mode: ``enforcing``, ``permissive`` or ``disabled``."""
    try:
        return "enforcing" if (fs / "enforce").read_text().strip() == "1" else "permissive"
    except OSError:
        return "disabled"


def set_mode(wanted: str, fs: Path = FS) -> None:
    """Switch between enforcing and permissive and read back. HostError when it does not hold."""
    try:
        (fs / "enforce").write_text("1" if wanted == "enforcing" else "0")
    except OSError as error:
        raise HostError(f"SELinux mode wanted {wanted}, cannot be set: {error.strerror}") from None
    if mode(fs) != wanted:
        raise HostError(f"SELinux mode wanted {wanted}, is {mode(fs)}")


def policy_version(fs: Path = FS) -> Optional[int]:
    """The newest version of binary policies that the kernel takes; None without SELinux."""
    try:
        return int((fs / "policyvers").read_text())
    except OSError:
        return None


def policy_digest(fs: Path = FS) -> Optional[str]:
    """SHA-256 of the policy that is loaded now; None without SELinux or without permission."""
    digest = hashlib.sha256()
    try:
        with open(fs / "policy", "rb") as stream:
            for block in iter(lambda: stream.read(1 << 20), b""):
                digest.update(block)
    except OSError:
        return None
    return digest.hexdigest()


def parse_config(text: str) -> Dict[str, str]:
    """``SELINUX`` and ``SELINUXTYPE`` of the configuration file; the last of each counts."""
    found = {}
    for line in text.splitlines():
        match = _ASSIGNMENT.fullmatch(line)
        if match:
            found[match.group(1)] = match.group(2)
    return found


def edit_config(text: str, values: Mapping[str, str]) -> str:
    """The file's text with these values; comments and everything else stay."""
    lines, missing = [], dict(values)
    for line in text.splitlines():
        match = _ASSIGNMENT.fullmatch(line)
        if match and match.group(1) in values:
            missing.pop(match.group(1), None)
            lines.append(f"{match.group(1)}={values[match.group(1)]}")
        else:
            lines.append(line)
    lines += [f"{key}={value}" for key, value in missing.items()]
    return "\n".join(lines) + "\n"


def config(path: Path = CONFIG) -> Dict[str, str]:
    """The configuration; empty when there is no file."""
    try:
        return parse_config(path.read_text())
    except FileNotFoundError:
        return {}


def boolean_value(name: str, fs: Path = FS) -> Optional[bool]:
    """The boolean's value now; None when the policy has none of this name."""
    if not re.fullmatch(r"\w+", name):
        raise HostError(f"SELinux boolean {name!r}: wanted letters, digits or '_'")
    try:
        return (fs / "booleans" / name).read_text().split()[0] == "1"
    except FileNotFoundError:
        return None


def set_booleans(values: Mapping[str, bool], fs: Path = FS) -> None:
    """Set booleans until the next policy load, all at once, and read them back."""
    for name, value in values.items():
        (fs / "booleans" / name).write_text("1" if value else "0")
    (fs / "commit_pending_bools").write_text("1")
    for name, value in values.items():
        if boolean_value(name, fs) != value:
            raise HostError(f"SELinux boolean {name}: wanted {value}, is {not value}")


def boot_selects_selinux(cmdline: str, lsm: str) -> bool:
    """Whether a boot with this command line starts SELinux.

    ``lsm`` is the running list (``/sys/kernel/security/lsm``). AppArmor and SELinux exclude each
    other, so a kernel that runs AppArmor now needs ``security=selinux`` or ``lsm=…,selinux``.
    """
    words = dict(word.partition("=")[::2] for word in cmdline.split())
    if words.get("selinux") == "0":
        return False
    if "security" in words:
        return words["security"] == "selinux"
    if "lsm" in words:
        return "selinux" in words["lsm"].split(",")
    return "apparmor" not in lsm.split(",") or "selinux" in lsm.split(",")


def parse_modules(text: str) -> Tuple[Module, ...]:
    """``semodule -lfull``, with or without ``--checksum``: priority, name, language, sum."""
    found = []
    for line in text.splitlines():
        words = line.split()
        if not words:
            continue
        if len(words) < 3 or not words[0].isdecimal():
            raise HostError(f"semodule -lfull: found {line!r}; wanted PRIORITY NAME LANGUAGE")
        # "disabled" stands before the sum.
        checksum = words[-1] if words[-1].startswith("sha256:") else None
        found.append(Module(words[1], int(words[0]), words[2], checksum))
    return tuple(found)


def checksum(content: bytes) -> str:
    """As semodule prints it."""
    return "sha256:" + hashlib.sha256(content).hexdigest()


def modules(run: Run, wanted: Mapping[Tuple[str, int], str]) -> Dict[Tuple[str, int], Module]:
    """The modules in the store by (name, priority).

    Before policycoreutils 3.4 semodule knows no sums; then the wanted ones (name and priority to
    language) are extracted and summed.
    """
    code, out, _err = run(["semodule", "-lfull", "--checksum"])
    found = parse_modules(out if code == 0 else output(["semodule", "-lfull"], run))
    by_key = {(item.name, item.priority): item for item in found}
    for key in wanted:
        item = by_key.get(key)
        if item is not None and item.checksum is None:
            by_key[key] = Module(
                item.name, item.priority, item.language, checksum(extract(run, item))
            )
    return by_key


def extract(run: Run, item: Module) -> bytes:
    """The source that a module in the store came from. HostError when semodule gives none."""
    kind = "--cil" if item.language == "cil" else "--hll"
    with tempfile.TemporaryDirectory() as folder:
        argv = ["semodule", f"--priority={item.priority}", kind, f"--extract={item.name}"]
        code, _out, err = run(["env", f"--chdir={folder}", *argv])
        files = list(Path(folder).iterdir())
        if code != 0 or len(files) != 1:
            raise HostError(f"SELinux module {item.name}: cannot be extracted: {err.strip()}")
        return files[0].read_bytes()


def transaction(
    install: List[Tuple[int, Path]], remove: List[Tuple[int, str]], *, reload: bool
) -> List[str]:
    """One semodule command for all: a rebuild of the policy takes most of a minute in a guest."""
    argv = ["semodule"] if reload else ["semodule", "--noreload"]
    priority = None
    for option, items in (("--install", install), ("--remove", remove)):
        for wanted, subject in items:
            if wanted != priority:
                argv.append(f"--priority={wanted}")
                priority = wanted
            argv.append(f"{option}={subject}")
    return argv
