# SPDX-License-Identifier: GPL-2.0-or-later
"""Ansible action: the steps of the kernel_boot module, and the reboots between them."""

from __future__ import annotations

import hashlib
import json
import secrets
from pathlib import Path
from typing import Any

from ansible.errors import AnsibleConnectionFailure

from ansible_collections.crossover.lab.plugins.plugin_utils.asking import AskingAction
from ansible_collections.crossover.lab.plugins.plugin_utils.new_connection import RouteError
from ansible_collections.crossover.lab.plugins.plugin_utils.rebooting import Rebooting

MODULE = "crossover.lab.kernel_boot"
SCHEMA = 1
FILES = ("vmlinuz", "config", "modules.tar")
DEFAULT_TIMEOUT_S = 600
# Beyond a boot there and one back: what firmware takes before either.
MARGIN_S = 60.0


class EntryError(Exception):
    """What is asked for cannot be done; the text says what was found and wanted."""


def read_entry(folder: Path) -> dict[str, Any]:
    """Release, configuration and content of a built kernel, from its ``entry.json``."""
    for name in (*FILES, "entry.json"):
        if not (folder / name).is_file():
            raise EntryError(f"folder: {folder} has no {name}; wanted a built kernel")
    path = folder / "entry.json"
    try:
        entry = json.loads(path.read_text(encoding="utf-8"))
        if entry["schema"] != SCHEMA:
            raise EntryError(f"{path}: schema {entry['schema']!r}, wanted {SCHEMA}")
        found = {"release": str(entry["release"]), "config_sha256": str(entry["config_sha256"])}
        content = [entry["identity"], entry["vmlinuz_sha256"], entry["config_sha256"]]
    except (ValueError, KeyError, TypeError) as error:
        raise EntryError(f"{path}: {error!r}; wanted the description of a built kernel") from None
    found["content"] = hashlib.sha256(json.dumps(content).encode()).hexdigest()
    return found


def read_packages(files: list[str]) -> str:
    """The hash of package files."""
    digest = hashlib.sha256()
    for name in sorted(files):
        if not name.endswith(".deb") or not Path(name).is_file():
            raise EntryError(f"package_files: found {name!r}; wanted .deb files of the controller")
        digest.update(Path(name).read_bytes())
    return digest.hexdigest()


class StepError(Exception):
    """A step has failed; ``result`` is the task's."""

    def __init__(self, result: dict[str, Any]) -> None:
        super().__init__(result.get("msg", ""))
        self.result = result


class ActionModule(AskingAction):
    """See the module's documentation."""

    TRANSFERS_FILES = True
    _supports_check_mode = True
    subject = "kernel_boot"

    def run(self, tmp: Any = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Read, and unless in check mode do what is to be done."""
        result: dict[str, Any] = super().run(tmp, task_vars)
        self._vars = task_vars or {}
        self._host = str(self._vars.get("inventory_hostname", "this host"))
        self._booted: list[float] = []
        self._ordered = False
        try:
            self._arguments = self._read_arguments()
            seen = self._step("read")
            actions = list(seen["actions"])
            if not self._task.check_mode and actions:
                self._require_a_way(actions)
                self._boot_id = str(seen["running"]["boot_id"])
                for action in actions:
                    self._act(action)
                seen = {**self._step("look"), "actions": actions, "diff": seen["diff"]}
                seen.update(changed=True, booted_after=self._booted)
        except StepError as error:
            return {**result, **error.result}
        except (EntryError, RouteError) as error:
            return {**result, "failed": True, "msg": f"kernel_boot: {error}"}
        except AnsibleConnectionFailure as error:
            if not self._ordered:
                raise
            return {**result, "failed": True, "changed": True, "msg": self._lost(error)}
        return {**result, **seen}

    def _require_a_way(self, actions: list[str]) -> None:
        """Refuse what cannot be seen through before anything of it is prepared on the host."""
        if not {"boot", "confirm", "home"} & set(actions):
            return
        if self._connection.transport == "local":
            raise EntryError("connection 'local'; a host that is rebooted wants ssh")
        self._ask = self._way()

    def _read_arguments(self) -> dict[str, Any]:
        arguments = {key: value for key, value in self._task.args.items() if value is not None}
        packages = arguments.pop("package_files", None) or []
        folder = arguments.pop("folder", None)
        if folder and arguments.get("package"):
            raise EntryError("folder and package: found both; wanted one of them")
        self._sources: list[Path] = []
        if folder:
            arguments.update(read_entry(Path(folder)))
            names = [*FILES, "initrd"]
            self._sources = [Path(folder, name) for name in names if Path(folder, name).is_file()]
        elif packages:
            arguments["content"] = read_packages(packages)
            self._sources = [Path(name) for name in packages]
        return arguments

    def _step(self, step: str, **more: Any) -> dict[str, Any]:
        """Call the module for a step. StepError with its result if it fails."""
        done: dict[str, Any] = self._execute_module(
            MODULE, module_args={**self._arguments, "step": step, **more}, task_vars=self._vars
        )
        if done.get("failed"):
            raise StepError({**done, "msg": f"{self._host}: {done.get('msg', 'no message')}"})
        return done

    def _act(self, action: str) -> None:
        if action == "install":
            self._install()
        elif action == "boot":
            self._boot()
        elif action == "confirm":
            self._confirm(None)
        elif action == "home":
            self._go_home()
        else:
            self._step(action)

    def _install(self) -> None:
        if not self._sources:
            self._step("install")
            return
        folder = str(self._make_tmp_path())
        targets = [self._connection._shell.join_path(folder, file.name) for file in self._sources]
        for source, target in zip(self._sources, targets, strict=True):
            self._transfer_file(str(source), target)
        self._fixup_perms2([folder, *targets])
        try:
            self._step("install", files=folder)
        finally:
            self._remove_tmp_path(folder)

    def _reboot(self, order: list[str], into: str) -> None:
        """Order a reboot and wait for a login after it. StepError if there is none."""
        limit_s = 2 * float(self._arguments.get("timeout_s") or DEFAULT_TIMEOUT_S) + MARGIN_S
        rebooting = Rebooting(self._ask)
        self._ordered = True
        took = rebooting.reboot(order, self._boot_id, limit_s)
        if took is None:
            raise StepError(
                {
                    "failed": True,
                    "changed": True,
                    "msg": (
                        f"{self._host} has not come back {limit_s:.0f} s after it was told to boot"
                        f" {into} ({rebooting.said}). It hangs before its own watch begins, or its"
                        " network does not come up: look at its console, then switch its power off"
                        " and on. The boot loader then takes its default entry, for the other was"
                        " for one boot only. Then run the same again: the host knows what was tried"
                    ),
                }
            )
        self._booted.append(took)
        self._connection.reset()
        self._boot_id = str(self._step("look")["running"]["boot_id"])

    def _lost(self, error: AnsibleConnectionFailure) -> str:
        """What to say when a host that came up cannot be talked to any more."""
        limit = self._arguments.get("timeout_s") or DEFAULT_TIMEOUT_S
        return (
            f"{self._host} came up and was lost again before it was confirmed ({error}); it goes"
            f" back to its default entry by itself within {limit} s. Run the same again to see what"
            " it runs"
        )

    def _boot(self) -> None:
        token = secrets.token_hex(6)
        armed = self._step("arm", token=token)
        self._reboot(armed["order"], f"kernel {self._arguments['name']}")
        self._confirm(token)

    def _confirm(self, token: str | None) -> None:
        """Confirm the boot, or see the host back on its own kernel and say so. StepError."""
        done = self._step("confirm", token=token)
        wrong = list(done["wrong"])
        if not wrong:
            return
        name, back = self._arguments["name"], done["running"]["release"]
        if done["running"]["token"] is None:
            text = (
                f"kernel {name} did not stay up on {self._host}, which is back on {back}: it"
                " panicked or could not be reached in time"
            )
        else:
            self._go_home()
            home = self._step("look")["running"]["release"]
            text = (
                f"kernel {name} on {self._host} is not what was wanted: {'; '.join(wrong)};"
                f" the host was rebooted and is back on {home}"
            )
        seen = self._step("look")
        most = self._arguments.get("reboots_max") or 4
        text += f" ({seen['reboots'].get(name)} of at most {most} reboots for it)"
        raise StepError({**seen, "failed": True, "changed": True, "msg": text})

    def _go_home(self) -> None:
        left = self._step("leave")
        self._reboot(left["order"], "its default entry")
        seen = self._step("look")
        if seen["running"]["token"] is not None:
            raise StepError(
                {
                    **seen,
                    "failed": True,
                    "msg": f"{self._host} was rebooted and runs {seen['kernel']} again; wanted the"
                    " boot loader's default entry",
                }
            )
