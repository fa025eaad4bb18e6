"""What makes a node this node: name, addresses, host key, the key that may log in.

Two forms of the same: a tar archive that the lab's initramfs unpacks (baked images), and a NoCloud
ISO image for cloud-init (cloud images; format: cloud-init's documentation of the NoCloud source).
"""

from __future__ import annotations

import io
import json
import subprocess
import tarfile
import tempfile
from dataclasses import dataclass
from pathlib import Path

from .errors import LabError
from .qemu import MANAGEMENT_ADDRESS
from .topology import MANAGEMENT_DEVICE, Topology, mac_address


@dataclass(frozen=True)
class Identity:
    """What one node must know about itself."""

    lab: str
    node: str
    host_key: str
    host_key_public: str
    authorized_key: str


def _addresses(topology: Topology, node: str) -> list[tuple[str, str]]:
    found = [(MANAGEMENT_DEVICE, MANAGEMENT_ADDRESS)]
    for _link, end in topology.ends_of(node):
        found += [(end.device, end.ipv4), (end.device, end.ipv6)]
    return found


def hosts_file(topology: Topology) -> str:
    """/etc/hosts: every node under its name on each test link's address."""
    lines = ["127.0.0.1 localhost", "::1 localhost"]
    for link in topology.links:
        if link.purpose != "test":
            continue
        for end in link.ends:
            for address in (end.ipv4, end.ipv6):
                lines.append(f"{address.split('/')[0]} {end.node} {end.node}.{link.name}")
    return "\n".join(lines) + "\n"


def tar_seed(identity: Identity, topology: Topology) -> bytes:
    """The seed of a baked image, an uncompressed tar archive."""
    addresses = "".join(
        f"{device} {'-6' if ':' in address else '-4'} {address}\n"
        for device, address in _addresses(topology, identity.node)
    )
    files = {
        "etc/hostname": identity.node + "\n",
        "etc/hosts": hosts_file(topology),
        "etc/ssh/ssh_host_ed25519_key": identity.host_key,
        "etc/ssh/ssh_host_ed25519_key.pub": identity.host_key_public,
        "root/.ssh/authorized_keys": identity.authorized_key,
        "addresses": addresses,
    }
    sink = io.BytesIO()
    with tarfile.open(fileobj=sink, mode="w") as tar:
        for name, text in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(text.encode())
            member.mode = 0o600
            tar.addfile(member, io.BytesIO(text.encode()))
    return sink.getvalue()


def cloud_seed(identity: Identity, topology: Topology, packages: list[str], target: Path) -> None:
    """Write the seed of a cloud image to ``target``. LabError if no ISO tool works.

    YAML is a superset of JSON, so the documents are written as JSON.
    """
    user_data: dict[str, object] = {
        "disable_root": False,
        "ssh_pwauth": False,
        "ssh_deletekeys": True,
        "ssh_keys": {
            "ed25519_private": identity.host_key,
            "ed25519_public": identity.host_key_public,
        },
        "users": [{"name": "root", "ssh_authorized_keys": [identity.authorized_key.strip()]}],
        "hostname": identity.node,
    }
    if packages:  # cloud-init's schema has no empty list
        user_data.update(package_update=True, packages=packages)
    devices: dict[str, list[str]] = {}
    for device, address in _addresses(topology, identity.node):
        devices.setdefault(device, []).append(address)
    network: dict[str, object] = {
        "version": 2,
        "ethernets": {
            device: {
                "match": {"macaddress": mac_address(identity.lab, identity.node, device)},
                "set-name": device,
                "addresses": addresses,
                "dhcp4": False,
                "optional": True,
            }
            for device, addresses in devices.items()
        },
    }
    meta = {"instance-id": f"crossover-{identity.lab}-{identity.node}"}
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        (folder / "user-data").write_text("#cloud-config\n" + json.dumps(user_data) + "\n")
        (folder / "meta-data").write_text(json.dumps(meta) + "\n")
        (folder / "network-config").write_text(json.dumps(network) + "\n")
        argv = ["genisoimage", "-quiet", "-output", str(target), "-volid", "cidata"]
        argv += ["-joliet", "-rock", "-graft-points"]
        argv += [f"{name}={folder / name}" for name in ("user-data", "meta-data", "network-config")]
        try:
            done = subprocess.run(argv, capture_output=True, text=True, check=False)
        except FileNotFoundError:
            raise LabError("cloud image: genisoimage is not installed on the controller") from None
        if done.returncode:
            raise LabError(f"cloud image: genisoimage: {done.stderr.strip()}")
