# SPDX-License-Identifier: GPL-2.0-or-later
"""The commands that run an IKE daemon with declared connections: as the module runs them, and for
a shell, to do the same by hand. Pure.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Dict, List, Optional, Tuple

from . import ike_config
from .ike_config import FOLDERS
from .ipsec_build import SEED_BYTES
from .ipsec_declared import Connection
from .labelled import under
from .shell_step import (
    Expanded,
    Step,
    here_document,
    hexadecimal,
    key_line,
    placeholder,
    with_secret,
)

Argv = Tuple[str, ...]

# The unit is named so whichever daemon it runs.
UNIT = "crossover-ike.service"
STOP_LIMIT_S = 60
# Packets that make the kernel ask for labelled SAs go to the discard port.
TRIGGER_PORT = 9
# By hand, a daemon that does not come up is given up after so long, seconds.
_WAIT_S = 120
_WHACK = "/usr/libexec/ipsec/whack"
_PLUTO_FOLDER, _CHARON_FOLDER = FOLDERS["libreswan"], FOLDERS["strongswan"]
_VICI = f"unix://{_CHARON_FOLDER}/vici"

CHARON_SETTINGS = (
    "charon-systemd {\n"
    "  load_modular = yes\n"
    "  plugins {\n"
    "    include /etc/strongswan.d/charon/*.conf\n"
    f"    vici {{\n      socket = {_VICI}\n    }}\n"
    "  }\n"
    f"  filelog {{\n    crossover {{\n      path = {_CHARON_FOLDER}/log\n      default = 1\n"
    "      flush_line = yes\n    }\n  }\n"
    "}\n"
)


def _unit(argv: Sequence[str], more: str) -> Argv:
    return (
        *("systemd-run", "--quiet", "--collect", f"--unit={UNIT}"),
        *("--description=Crossover IKE daemon", "--property=Type=notify"),
        *("--property=NotifyAccess=all", f"--property=TimeoutStopSec={STOP_LIMIT_S}"),
        f"--property={more}",
        *argv,
    )


INITNSS: Argv = ("ipsec", "initnss", "--nssdir", f"{_PLUTO_FOLDER}/nss")
PLUTO = _unit(
    ("/usr/libexec/ipsec/pluto", "--config", f"{_PLUTO_FOLDER}/ipsec.conf", "--nofork"),
    f"ExecStop={_WHACK} --shutdown",
)
CHARON = _unit(
    ("/usr/sbin/charon-systemd",), f"Environment=STRONGSWAN_CONF={_CHARON_FOLDER}/strongswan.conf"
)
LOAD: Argv = (
    *("swanctl", "--load-all", "--file", f"{_CHARON_FOLDER}/swanctl.conf"),
    *("--uri", _VICI, "--noprompt"),
)


def initiate(keying: str, name: str) -> Argv:
    """Ask the peer for the SAs of one of the daemon's connections, without waiting for them."""
    if keying == "libreswan":
        return (_WHACK, "--initiate", "--asynchronous", "--name", name)
    return ("swanctl", "--initiate", "--child", name, "--timeout", "-1", "--uri", _VICI)


# --- by hand ------------------------------------------------------------------------------------


def by_hand(
    keying: str, connections: Sequence[Connection], ends: Sequence[int], level: Optional[str]
) -> List[str]:
    """The shell commands that do it by hand on a host where no IKE daemon runs, in order; the
    SAs exist once they have been typed on both hosts."""
    if not connections:
        return []
    folder = FOLDERS[keying]
    config = ike_config.configuration(keying, connections, ends)
    keys = _placeholders(connections)
    digits = hexadecimal(SEED_BYTES)
    lines = [key_line(name, ike_config.purpose(item), digits, "0x") for name, item in keys.values()]
    lines += [f"install -d -m 0700 {folder}"]
    maker = getattr(ike_config, f"{keying}_secrets")
    secrets = maker(connections, lambda item: keys[frozenset(item.ends)][0])
    lines += (
        _start_pluto(config, secrets) if keying == "libreswan" else _start_charon(config, secrets)
    )
    for name in ike_config.starters(connections, ends):
        lines.append(Step(initiate(keying, name)).shell())
    lines += _triggers(connections, ends, level)
    return with_secret(lines)


def _placeholders(
    connections: Sequence[Connection],
) -> Dict["frozenset[str]", Tuple[Expanded, Connection]]:
    """The variable of each pair of ends, named after the first connection between them."""
    found: Dict["frozenset[str]", Tuple[Expanded, Connection]] = {}
    for item in connections:
        found.setdefault(frozenset(item.ends), (placeholder(item.name, "psk"), item))
    return found


# The folder gets the type that SELinux's policy has for it.
_RELABEL = "if [ -e /sys/fs/selinux/enforce ]; then restorecon -R /run/pluto; fi"


def _start_pluto(config: str, secrets: str) -> List[str]:
    log, secret = f"{_PLUTO_FOLDER}/log", f"{_PLUTO_FOLDER}/secrets"
    # As many connections as there are in the file, and then the secrets: pluto reads them in turn.
    loaded = f'grep -c -e "oriented IKEv2 connection" -e "added IKEv2 connection" {log}'
    count = config.count("\nconn ")
    ready = f'[ "$({loaded})" -ge {count} ] && grep -q "loading secrets from" {log}'
    return [
        f"install -d -m 0700 {_PLUTO_FOLDER}/nss",
        here_document(f"{_PLUTO_FOLDER}/ipsec.conf", config),
        here_document(secret, secrets, expanded=True),
        _RELABEL,
        Step(INITNSS).shell(),
        Step(PLUTO).shell(),
        _await(ready),
        f"rm {secret}",
    ]


def _start_charon(config: str, secrets: str) -> List[str]:
    path = f"{_CHARON_FOLDER}/swanctl.conf"
    return [
        here_document(f"{_CHARON_FOLDER}/strongswan.conf", CHARON_SETTINGS),
        here_document(path, config + secrets, expanded=True),
        _RELABEL,
        Step(CHARON).shell(),
        Step(LOAD).shell(),
        f"rm {path}",
    ]


def _await(ready: str) -> str:
    return f"timeout {_WAIT_S} sh -c {shlex.quote(f'until {ready}; do sleep 1; done')}"


def _triggers(
    connections: Sequence[Connection], ends: Sequence[int], level: Optional[str]
) -> List[str]:
    """A packet for each labelled connection: the kernel then asks for its SAs. Only the first end
    sends one, as two that ask at the same time end up with SAs that the other has not."""
    lines = []
    for item, end in zip(connections, ends):  # noqa: B905 - Python 3.9
        if item.label is None or end != 0:
            continue
        for match in item.selectors:
            where = f"/dev/{match.protocol or 'udp'}/{item.ends[1]}/{match.port or TRIGGER_PORT}"
            send = under(level, ["timeout", "5", "bash", "-c", f"echo >{where}"])
            lines.append(f"{shlex.join(send)} || true")
    return lines
