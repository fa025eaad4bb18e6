"""What two hosts bring home from a group: packets, probe, netperf output."""

import base64
import ipaddress
import struct
from pathlib import Path
from typing import Any

from matrix_factory import CIPSO

from collector.matrix.labels import labelled_doi
from collector.matrix.placeholders import EXAMPLE, resolve
from collector.proof.cipso import expected_mss, expected_option

DATA = Path(__file__).resolve().parents[1] / "data" / "cell"
CLIENT, SERVER = "198.18.0.1", "198.18.0.2"
CONTEXT = "unconfined_u:unconfined_r:unconfined_t:"
LABELLED: dict[str, Any] = {
    "label": "s0:c0.c239",
    "family": "ipv4",
    "cipso": resolve(CIPSO, EXAMPLE, ""),
}
PLAIN: dict[str, Any] = {"label": "s0", "family": "ipv4", "cipso": {}}


def frame(source: str, target: str, protocol: int, options: bytes = b"") -> bytes:
    """An Ethernet frame of an IPv4 packet with ports 40000 and 12900."""
    padded = options + b"\0" * (-len(options) % 4)
    header = bytearray(20)
    header[0] = 0x40 | (5 + len(padded) // 4)
    header[9] = protocol
    header[12:16] = ipaddress.IPv4Address(source).packed
    header[16:20] = ipaddress.IPv4Address(target).packed
    ports = struct.pack("!HH", 40000, 12900)
    return b"\0" * 12 + b"\x08\x00" + bytes(header) + padded + ports + b"\0" * 16


def pcap(frames: list[bytes]) -> bytes:
    """A capture file of frames."""
    head = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 256, 1)
    return head + b"".join(struct.pack("<IIII", 1, 2, len(f), len(f)) + f for f in frames)


def frames(option: bytes | None) -> list[bytes]:
    """The probe's packets, each with the option."""
    words = option or b""
    return [
        frame(CLIENT, SERVER, 6, words),
        frame(SERVER, CLIENT, 6, words),
        frame(CLIENT, SERVER, 17, words),
    ]


def measured(
    subjects: dict[str, Any], results: list[dict[str, Any]] | None = None, **probe: Any
) -> dict[str, Any]:
    """What ``bench_measure`` returns when all is well; ``probe`` changes what the probe saw."""
    labelled = labelled_doi(subjects["cipso"]) is not None
    label = CONTEXT + subjects["label"]
    peer = f"system_u:object_r:netlabel_peer_t:{subjects['label']}" if labelled else None
    seen: dict[str, Any] = {
        "label": label,
        "peer_label": peer,
        "mss": expected_mss(subjects, 1500),
        "source_port": 40000,
        "server_label": label,
        "server_peer_label": peer,
        "datagram_bytes": 1472,
        "datagram_error": None,
        "warm_up_rates": [100.0, 101.0, 100.5],
        "steady": True,
    }
    return {
        "probe": {**seen, **probe},
        "pcap": base64.b64encode(pcap(frames(expected_option(subjects)))).decode(),
        "results": results or [],
        "denials": [],
        "identity": {"kernel": "6.12.0", "boot_id": "boot-c", "context": label},
    }


def peer(**changes: Any) -> dict[str, Any]:
    """What ``bench_peer`` returns when it stops."""
    return {
        "denials": [],
        "identity": {"kernel": "6.12.0", "boot_id": "boot-s", "context": CONTEXT + "s0"},
        **changes,
    }


def netperf_output(test: str = "tcp_rr", **changes: str | None) -> str:
    """netperf's own output of a cell's command (``tcp_rr`` or ``udp_stream``, in an emulated lab)
    with some values changed; None takes a key away."""
    lines = (DATA / f"{test}.txt").read_text(encoding="utf-8").splitlines()
    values: dict[str, str | None] = dict(line.split("=", 1) for line in lines)
    assert changes.keys() <= values.keys()
    values.update(changes)
    return "".join(f"{key}={value}\n" for key, value in values.items() if value is not None)


def result(cell_id: str, **changes: Any) -> dict[str, Any]:
    """One command's entry of ``bench_measure``'s results."""
    return {
        "cell_id": cell_id,
        "argv": ["netperf"],
        "rc": 0,
        "timed_out": False,
        "stdout": netperf_output(),
        "stderr": "",
        "started_at": "2026-11-30T10:00:00.000Z",
        "elapsed_s": 1.2,
        **changes,
    }
