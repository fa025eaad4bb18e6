"""Every kind of connection carries traffic on two enforcing guests, and nothing is dropped."""

from __future__ import annotations

import pytest
from ipsec_lab import ENDS4, ENDS6, LEVEL, SERVER4, SERVER6, command, observed, role, run_tasks

pytestmark = [pytest.mark.lab, pytest.mark.slow]


@pytest.fixture(scope="module", autouse=True)
def clean(lab, tmp_path_factory):
    """Whatever a test did, the hosts are as before afterwards."""
    yield
    run_tasks(lab, tmp_path_factory.mktemp("clean"), [role(ipsec_state="absent")])


def ping(address):
    argv = ["runcon", "-l", LEVEL, "env", "ping", "-c3", "-W5", address]
    return command("client", *argv, register=f"sent{6 if ':' in address else 4}")


@pytest.mark.parametrize("modes", [("transport", "tunnel"), ("tunnel", "transport")], ids="-".join)
@pytest.mark.parametrize("label", [None, "process"], ids=["plain", "labelled"])
@pytest.mark.parametrize("keying", ["manual", "libreswan"])
def test_traffic_passes_as_esp_and_nothing_else(lab, tmp_path, keying, label, modes):
    connections = [
        {"name": "test4", "ends": ENDS4, "mode": modes[0], "label": label},
        {"name": "test6", "ends": ENDS6, "mode": modes[1], "label": label},
    ]
    apply = role(ipsec_connections=connections, ipsec_keying=keying)
    found = run_tasks(lab, tmp_path, [apply, *observed([ping(SERVER4), ping(SERVER6)])])
    client = found["client"]
    assert (client["sent4"]["rc"], client["sent6"]["rc"]) == (0, 0), client
    for host in ("client", "server"):
        seen = found[host]["seen"]
        assert seen["explain"] == []
        assert seen["missing"] == []
        assert {sa["mode"] for sa in seen["state"]["sas"].values()} == set(modes)
        labels = {sa.get("ctx") for sa in seen["state"]["sas"].values()}
        assert labels == ({seen["context"]} if label else {None})
