"""The proof of a kernel: both hosts run exactly the one that was to be measured."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from collector.proof.findings import Finding, equal

# What a host says, by the name that the entry has for it.
WORDS = {
    "release": "kernel release",
    "version": "kernel build",
    "config_sha256": "kernel configuration (SHA-256)",
}


def of_identity(identity: Mapping[str, Any]) -> dict[str, Any]:
    """What a measuring module said of its host (``host_identity.booted``), in the entry's words."""
    return {
        "release": identity["kernel"],
        "version": identity.get("version"),
        "config_sha256": identity.get("config_sha256"),
    }


def of_provenance(document: Mapping[str, Any]) -> dict[str, Any]:
    """The same of a host's provenance."""
    kernel = document["kernel"]
    return {
        "release": kernel["release"],
        "version": kernel.get("build"),
        "config_sha256": kernel.get("config_sha256"),
    }


def prove(boot: Mapping[str, Any] | None, said: Mapping[str, Mapping[str, Any]]) -> list[Finding]:
    """Hold what each host said of its kernel while it was measured against the entry.

    ``boot`` is the group's (``campaign_kernels.describe``); without a kernel in it there is
    nothing to prove. ``said`` is by host.
    """
    if boot is None or boot["kernel"] is None:
        return []
    findings = []
    for host, found in said.items():
        for key, what in WORDS.items():
            findings.append(equal(f"{what} of the {host}", boot[key], found[key]))
    return findings
