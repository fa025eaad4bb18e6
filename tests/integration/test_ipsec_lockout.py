"""A labelled tunnel that swallows SSH: the guest takes it away again by itself."""

from __future__ import annotations

import pytest
from ipsec_lab import ENDS4, LEVEL, run_tasks

pytestmark = [pytest.mark.lab, pytest.mark.slow]

# The guests' management address and the gateway that SSH comes from (QEMU's user network).
MANAGEMENT = ["10.0.2.15/32", "10.0.2.2/32"]
TIMEOUT_S = 20


def arguments(protected):
    connection = {
        "name": "swallow", "ends": ENDS4, "mode": "tunnel", "networks": MANAGEMENT,
        "label": "process",
    }  # fmt: skip
    return {
        "connections": [connection],
        "level": LEVEL,
        "seed": "{{ keys_of_test.seed }}",
        "guard": {"timeout": TIMEOUT_S},
        **({} if protected else {"management": []}),
    }


def outcome(lab, folder, protected):
    """What the module returned on the client, which alone is changed."""
    tasks = [
        {"crossover.lab.ipsec_keys": {}, "register": "keys_of_test", "no_log": True},
        {
            "crossover.lab.ipsec": arguments(protected),
            "register": "applied",
            "when": "inventory_hostname == 'client'",
            "ignore_errors": True,
        },
    ]
    return run_tasks(lab, folder, tasks)["client"]["applied"]


def test_a_connection_that_covers_the_management_address_is_refused(lab, tmp_path):
    applied = outcome(lab, tmp_path, protected=True)
    assert "covers the management address 10.0.2.2 port 22" in applied["msg"]


def test_a_connection_that_cuts_ssh_is_rolled_back_as_a_whole(lab, tmp_path):
    applied = outcome(lab, tmp_path, protected=False)
    assert applied["guard_rolled_back"], applied
    assert applied["guard_failures"] == []
    assert "cut management access; rolled back" in applied["msg"]
    left = lab.ssh("client", "ip xfrm state count; ip xfrm policy count; ls /run/crossover")
    assert "SAD count 0" in left
    assert "ipsec.json" not in left
