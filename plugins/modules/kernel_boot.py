#!/usr/bin/python
# SPDX-License-Identifier: GPL-2.0-or-later
"""Ansible module: another kernel on a host, booted once and taken back by the host itself."""

from __future__ import annotations

DOCUMENTATION = r"""
module: kernel_boot
short_description: Boot another kernel once, with the way back ensured
version_added: 0.2.0
description:
  - Installs a kernel by copy or by package, boots it once (GRUB's one-shot entry, or kexec), and
    checks over a new SSH connection that release and configuration are those that were wanted.
  - The boot loader's default stays. A kernel that panics reboots by C(panic=); one that comes up
    and is not confirmed in time is left by a unit of systemd; one whose check fails is left at
    once. What hangs before systemd wants its power switched, and then comes back on the default.
  - Reboots are counted on the host and never more than O(reboots_max) without success.
  - Runs as an action plugin that calls the module once for each step. A host that already runs the
    kernel is left alone.
author: Crossover developers
options:
  state:
    description:
      - C(booted) installs the kernel and runs it; C(installed) only installs it.
      - C(home) reboots into the default if a kernel of this module runs; what is installed stays.
      - C(absent) does that too where needed, and takes away the kernel O(name), without one every
        kernel that was added.
    type: str
    choices: [installed, booted, home, absent]
    default: booted
  name:
    description: Name of the kernel. Required for C(installed) and C(booted).
    type: str
  release:
    description: What C(uname -r) must print. Read from O(folder), or from the package.
    type: str
  config_sha256:
    description: SHA-256 that the running configuration must have. Read from O(folder).
    type: str
  folder:
    description: Folder of a built kernel on the controller (C(vmlinuz), C(config), C(modules.tar),
      C(entry.json), and C(initrd) if it brings one). Without one the host makes its own.
    type: path
  package:
    description: Debian package with the kernel, in place of O(folder).
    type: str
  version:
    description: Version of O(package).
    type: str
  package_files:
    description: Files (C(.deb)) of O(package) and what it needs, on the controller. Without them it
      comes from the host's own archives.
    type: list
    elements: path
    default: []
  append:
    description: Further words of the one-shot command line.
    type: list
    elements: str
    default: []
  boot:
    description: Number of the boot, where a kernel is measured in more than one. A host that runs
      the kernel in another of its boots is booted again.
    type: int
  method:
    description: C(auto) takes GRUB, and kexec only where GRUB cannot boot an entry once.
    type: str
    choices: [auto, grub, kexec]
    default: auto
  panic_s:
    description: Seconds from a panic to the reboot.
    type: int
    default: 10
  timeout_s:
    description: Seconds that a boot may take. A host that nobody has confirmed by then goes back by
      itself; the controller waits twice as long.
    type: int
    default: 600
  reboots_max:
    description: Reboots of the host for this kernel without a confirmed one. A failed attempt takes
      two, there and back.
    type: int
    default: 4
  step:
    description: Set by the action plugin.
    type: str
    choices: [read, look, install, arm, confirm, leave, remove]
    default: read
  token:
    description: Set by the action plugin.
    type: str
  content:
    description: Set by the action plugin. Hash of what O(folder) or O(package_files) hold.
    type: str
  files:
    description: Set by the action plugin. Folder on the host with what was copied there.
    type: path
attributes:
  check_mode:
    support: full
    description: Says what would be done.
  diff_mode:
    support: full
    description: Running kernel and added kernels before and after.
"""

EXAMPLES = r"""
- name: Ensure the host runs the kernel with the patches
  crossover.lab.kernel_boot:
    name: patched
    folder: "{{ built_kernel_folder }}"

- name: Ensure the host runs a kernel of the distribution, once
  crossover.lab.kernel_boot:
    name: debian61
    package: linux-image-6.1.0-50-amd64

- name: Ensure the host runs its own kernel again and nothing is left
  crossover.lab.kernel_boot:
    state: absent
"""

RETURN = r"""
actions:
  description: What is, or in check mode would be, done, as of C(home), C(remove), C(install),
    C(boot) and C(confirm).
  type: list
  elements: str
  returned: always
running:
  description: What runs now, as release, config_sha256, config_source (the file that was hashed)
    and boot_id.
  type: dict
  returned: always
kernel:
  description: Name of the added kernel that runs; null for the host's own.
  type: str
  returned: always
reboots:
  description: Reboots for each added kernel since one of them was confirmed.
  type: dict
  returned: always
booted_after:
  description: Seconds from each ordered reboot to the first login after it.
  type: list
  elements: float
  returned: when the host was rebooted
"""

from dataclasses import asdict
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.crossover.lab.plugins.module_utils.host import (
    kernel_boot,
    kernel_entry,
)
from ansible_collections.crossover.lab.plugins.module_utils.host.errors import HostError

STATES = ["installed", "booted", "home", "absent"]
STEPS = ["read", "look", "install", "arm", "confirm", "leave", "remove"]


def _view(host, now):
    mine = kernel_entry.attempt_of(host.attempts, now.token)
    return {
        "running": {key: value for key, value in asdict(now).items() if key != "words"},
        "kernel": mine.name if mine else None,
        "reboots": {name: kernel_entry.spent(host.attempts, name) for name in host.added},
    }


def _after(actions, wanted, host, now):
    """What the host would be once the actions are done, for the diff."""
    names = set(host.added)
    if "remove" in actions:
        names -= {wanted.name} if wanted else names
    if "install" in actions:
        names |= {wanted.name}
    own = "the host's own"
    mine = kernel_entry.attempt_of(host.attempts, now.token)
    runs = f"{mine.name if mine else own} ({now.release})"
    before = {"runs": runs, "added": sorted(host.added)}
    if "boot" in actions:
        runs = f"{wanted.name} ({wanted.release or wanted.package})"
    elif "home" in actions:
        runs = own
    return {"before": before, "after": {"runs": runs, "added": sorted(names)}}


def _read(params, host, now, wanted):
    actions = kernel_entry.plan(params["state"], wanted, now, host.attempts, host.added)
    if "boot" in actions:
        kernel_entry.require_reboots(host.attempts, wanted.name, params["reboots_max"])
        kernel_boot.choose_method(host, params["method"])
    return {
        "actions": list(actions),
        "changed": bool(actions),
        "diff": _after(actions, wanted, host, now),
    }


def _step(params, host, now, wanted):
    step = params["step"]
    if step == "install":
        kernel_boot.install(host, wanted, Path(params["files"]) if params["files"] else None)
    elif step == "remove":
        names = [wanted.name] if wanted else list(host.added)
        kernel_boot.remove(host, names)
    elif step == "leave":
        return {"order": list(kernel_boot.leave(host))}
    elif step == "confirm":
        return {"wrong": kernel_boot.confirm(host, wanted, params["token"], now)}
    elif step == "arm":
        armed = kernel_boot.arm(
            host,
            wanted,
            params["token"],
            params["method"],
            params["panic_s"],
            params["timeout_s"],
            params["reboots_max"],
        )
        return {"order": list(armed.order), "method": armed.method}
    return {}


def _apply(module):
    params = module.params
    host = kernel_boot.Host()
    now = host.load()
    wanted = None
    if params["state"] in ("installed", "booted"):
        wanted = kernel_boot.with_release(kernel_entry.wanted_kernel(params), host)
    elif params["name"]:
        wanted = kernel_entry.Wanted(params["name"], None, None, "")
    if params["step"] == "read":
        module.exit_json(**_read(params, host, now, wanted), **_view(host, now))
    if params["step"] == "look":
        module.exit_json(changed=False, actions=[], **_view(host, now))
    done = _step(params, host, now, wanted)
    host.save()
    module.exit_json(changed=True, actions=[], **_view(host, now), **done)


def main() -> None:
    """Entry point of the module."""
    module = AnsibleModule(
        argument_spec={
            "state": {"type": "str", "choices": STATES, "default": "booted"},
            "name": {"type": "str"},
            "release": {"type": "str"},
            "config_sha256": {"type": "str"},
            "folder": {"type": "path"},
            "package": {"type": "str"},
            "version": {"type": "str"},
            "package_files": {"type": "list", "elements": "path", "default": []},
            "append": {"type": "list", "elements": "str", "default": []},
            "boot": {"type": "int"},
            "method": {"type": "str", "choices": ["auto", "grub", "kexec"], "default": "auto"},
            "panic_s": {"type": "int", "default": 10},
            "timeout_s": {"type": "int", "default": 600},
            "reboots_max": {"type": "int", "default": 4},
            "step": {"type": "str", "choices": STEPS, "default": "read"},
            "token": {"type": "str", "no_log": False},
            "content": {"type": "str"},
            "files": {"type": "path"},
        },
        supports_check_mode=True,
    )
    try:
        _apply(module)
    except HostError as error:
        module.fail_json(msg=str(error))
    except OSError as error:
        # /boot is full, say.
        where = f": {error.filename}" if error.filename else ""
        module.fail_json(msg=f"kernel boot: {error.strerror or error}{where}")


if __name__ == "__main__":
    main()
