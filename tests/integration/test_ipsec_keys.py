"""Keys stay in memory: a canary is searched for in everything that a run leaves behind."""

from __future__ import annotations

import base64
import os
import subprocess
import threading
from pathlib import Path

import pytest
import yaml
from ipsec_lab import ENDS4, GUARD_S, LIMIT_S, environment

from ansible_collections.crossover.lab.plugins.module_utils.ike_config import shared_key
from ansible_collections.crossover.lab.plugins.module_utils.ipsec_build import make_keys
from ansible_collections.crossover.lab.plugins.module_utils.ipsec_declared import read_connections
from ansible_collections.crossover.lab.plugins.module_utils.kernel_state.xfrm import Vault

pytestmark = [pytest.mark.lab, pytest.mark.slow]

CONNECTIONS = [{"name": "canary", "ends": ENDS4}]
# Refused by the kernel half-way: its policy is there already, added by somebody else.
REFUSED = {"name": "canary", "ends": ENDS4, "offload": "crossover-none"}
GUEST_FOLDERS = "/var/log /run /tmp /root /etc /home"


def secrets_of(seed: bytes) -> list[str]:
    """Every text by which the seed or a key made from it could be found."""
    (connection,) = read_connections(CONNECTIONS)
    vault = Vault()
    make_keys(connection, seed, vault)
    keys = [vault.get(*entry).reveal()[2:] for entry in vault]
    raw = [seed, *(bytes.fromhex(key) for key in keys)]
    texts = {item.hex() for item in raw} | {base64.b64encode(item).decode() for item in raw}
    # Parts too: a key with its salt cut off is still a key.
    texts |= {key[:32] for key in keys}
    return sorted({*texts, shared_key(seed, connection)})


class Watcher(threading.Thread):
    """Samples the process lists of the guests and of this machine."""

    def __init__(self, lab) -> None:
        super().__init__(daemon=True)
        self.lab, self.texts, self.done = lab, [], threading.Event()

    def run(self) -> None:
        # Only the guests' argument lists: the environment of another process is root's secret.
        loop = "while true; do cat /proc/[0-9]*/cmdline; sleep 1; done"
        command = f"timeout {LIMIT_S} sh -c '{loop}' 2>/dev/null"
        remote = [
            subprocess.Popen(
                self.lab.ssh_argv(node, command),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
            for node in ("client", "server")
        ]
        readers = [threading.Thread(target=self._read, args=(item.stdout,)) for item in remote]
        for reader in readers:
            reader.start()
        while not self.done.wait(0.2):
            for path in Path("/proc").glob("[0-9]*/cmdline"):
                try:
                    self.texts.append(path.read_bytes())
                except OSError:
                    continue
        for item in remote:
            item.kill()
        for reader in readers:
            reader.join()
        for item in remote:
            item.communicate()

    def _read(self, stream) -> None:
        for block in iter(lambda: stream.read1(1 << 16), b""):
            self.texts.append(block)


def play(folder: Path, seed: bytes, *tasks: dict) -> Path:
    """A play whose seed comes from a file of this test, beside what is searched."""
    hidden = folder / "seed"
    hidden.write_text(base64.b64encode(seed).decode())
    hidden.chmod(0o600)
    path = folder / "play.yml"
    steps = [{**task, "no_log": False} for task in tasks]
    text = [{
        "hosts": "measured", "tasks": steps,
        "vars": {"given": f"{{{{ lookup('ansible.builtin.file', '{hidden}') }}}}"},
    }]  # fmt: skip
    path.write_text(yaml.safe_dump(text))
    return path


def module(name: str, **arguments) -> dict:
    """A task with the canary as its seed, that may fail."""
    return {
        f"crossover.lab.{name}": {
            "connections": CONNECTIONS,
            "seed": "{{ given }}",
            "generation": "canary",
            "guard": {"timeout": GUARD_S},
            **arguments,
        },
        "ignore_errors": True,
        "register": name,
    }


def run(lab, folder: Path, path: Path) -> None:
    """As talkative as Ansible gets, with a log and a cache of facts."""
    done = lab.playbook(
        path, "-vvvv", "--diff", limit_s=LIMIT_S, **environment(),
        ANSIBLE_LOG_PATH=str(folder / "ansible.log"),
        ANSIBLE_CACHE_PLUGIN="jsonfile",
        ANSIBLE_CACHE_PLUGIN_CONNECTION=str(folder / "facts"),
    )  # fmt: skip
    (folder / "output").write_text(done.stdout + done.stderr)
    assert done.returncode == 0, (folder / "output").read_text()[-3000:]


def hits(folder: Path, wanted: list[str]) -> list[str]:
    """Files of the controller that hold a canary."""
    found = []
    for path in folder.rglob("*"):
        if path.is_file() and path.name != "seed":
            content = path.read_bytes().lower()
            found += [path.name for text in wanted if text.lower().encode() in content]
    return found


def guest_hits(lab, node: str, wanted: list[str]) -> str:
    """Lines of a guest's files and journal that hold a canary; the patterns go by stdin."""
    argv = lab.ssh_argv(
        node,
        "umask 077; cat >/dev/shm/patterns; journalctl --no-pager >/dev/shm/journal; "
        f"grep -rIilF -f /dev/shm/patterns {GUEST_FOLDERS} /dev/shm/journal 2>/dev/null; "
        "rm -f /dev/shm/patterns /dev/shm/journal",
    )
    done = subprocess.run(
        argv, input="\n".join(wanted) + "\n", capture_output=True, text=True, timeout=LIMIT_S,
        check=False,
    )  # fmt: skip
    return done.stdout.strip()


@pytest.mark.parametrize("keying", ["ipsec", "ike"])
def test_keys_are_nowhere_but_in_memory(lab, tmp_path, keying):
    seed = os.urandom(32)
    wanted = secrets_of(seed)
    searched = tmp_path / "searched"
    searched.mkdir()
    more = {"wait": 240} if keying == "ike" else {}
    watcher = Watcher(lab)
    watcher.start()
    try:
        steps = [module(keying, **more), module(keying, rekey=True, **more)]
        if keying == "ipsec":
            # The kernel refuses this one half-way: what it says about it holds no key either.
            steps.append(module(keying, connections=[REFUSED]))
        run(lab, searched, play(tmp_path, seed, *steps))
    finally:
        watcher.done.set()
        watcher.join()
    (searched / "processes").write_bytes(b"\n".join(watcher.texts).replace(b"\0", b" "))
    if keying == "ipsec":
        # The canary is right: these are the keys that the kernel has.
        listed = lab.ssh("client", "ip xfrm state")
        assert any(text in listed for text in wanted)
    assert hits(searched, wanted) == []
    assert {node: guest_hits(lab, node, wanted) for node in ("client", "server")} == {
        "client": "",
        "server": "",
    }
    gone = [{f"crossover.lab.{keying}": {"state": "absent"}}]
    (tmp_path / "gone.yml").write_text(yaml.safe_dump([{"hosts": "measured", "tasks": gone}]))
    done = lab.playbook(tmp_path / "gone.yml", limit_s=LIMIT_S, **environment())
    assert done.returncode == 0, done.stdout + done.stderr
