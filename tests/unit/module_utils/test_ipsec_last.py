"""What became of the last connections; and which datagrams are asked about."""

from __future__ import annotations

import pytest

from ansible_collections.crossover.lab.plugins.module_utils import (
    audit,
    ipsec_fits,
    ipsec_host,
    ipsec_last,
)
from ansible_collections.crossover.lab.plugins.module_utils.ipsec_host import IpsecError
from ansible_collections.crossover.lab.plugins.module_utils.kernel_state.xfrm import (
    Policy,
    Selector,
    Template,
)
from ansible_collections.crossover.lab.plugins.module_utils.xfrm_explain import Reason

ESP = (Template("0.0.0.0", "0.0.0.0", "esp", 1, "transport"),)


@pytest.fixture(autouse=True)
def note(tmp_path, monkeypatch):
    monkeypatch.setattr(ipsec_last, "FILE", tmp_path / "last.json")
    monkeypatch.setattr(ipsec_host, "read_stat", lambda: {"XfrmInError": 1})
    monkeypatch.setattr(audit, "position", lambda: {"source": "x", "inode": 0, "offset": 5})
    return tmp_path / "last.json"


def test_connections_in_force_are_noted_with_counters_log_and_level():
    ipsec_last.changed(True, "manual", "s0:c5")
    last = ipsec_last.read()
    assert last["since"] == {
        "stat": {"XfrmInError": 1},
        "audit": {"source": "x", "inode": 0, "offset": 5},
    }
    assert (last["keying"], last["level"]) == ("manual", "s0:c5")


def test_connections_that_were_taken_away_are_forgotten(note):
    ipsec_last.changed(True, "manual", None)
    ipsec_last.changed(False, "manual", None)
    assert ipsec_last.read() is None
    assert not note.exists()


def test_a_refusal_outlives_taking_away_and_ends_with_a_success():
    ipsec_last.refused("libreswan", "IKE: t: refused", [Reason("ike_refused", "text", "hint")])
    ipsec_last.changed(False, "libreswan", None)
    last = ipsec_last.read()
    assert last["refused"] == "IKE: t: refused"
    assert last["explain"] == [{"cause": "ike_refused", "text": "text", "hint": "hint"}]
    ipsec_last.changed(True, "libreswan", None)
    assert "refused" not in ipsec_last.read()


def test_a_damaged_note_is_told(note):
    note.write_text("{")
    with pytest.raises(IpsecError, match="cannot be read"):
        ipsec_last.read()


def policy(source, target, direction="out", templates=ESP, **more):
    return Policy(Selector(source, target, **more), direction, 10, templates=templates)


def test_a_datagram_is_asked_about_once_a_destination_of_policies_between_hosts():
    asked = ipsec_fits.paths(
        [
            policy("198.18.0.1/32", "198.18.0.2/32"),
            policy("198.18.0.1/32", "198.18.0.2/32", proto="udp", dport=7),
            policy("2001:db8::1/128", "2001:db8::2/128", proto="udp", dport=7),
            policy("198.18.0.1/32", "198.18.0.3/32", proto="tcp"),
            policy("198.18.0.0/24", "198.19.0.0/24"),
            policy("198.18.0.2/32", "198.18.0.1/32", direction="in"),
            policy("198.18.0.1/32", "198.18.0.4/32", templates=()),
        ]
    )
    assert asked == (
        ("198.18.0.1", "198.18.0.2", 9),
        ("2001:db8::1", "2001:db8::2", 7),
    )


def test_the_kernel_tells_what_fits_the_path():
    found = ipsec_fits.largest([policy("127.0.0.1/32", "127.0.0.1/32")], None)
    assert found["127.0.0.1"] >= 1472


def test_what_cannot_be_found_out_is_left_out():
    # This host has no such address.
    assert ipsec_fits.largest([policy("198.18.255.1/32", "198.18.255.2/32")], None) == {}
