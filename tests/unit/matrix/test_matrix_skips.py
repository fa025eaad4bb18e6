"""What a matrix loses where a lab or its hosts cannot have it."""

from pathlib import Path

import pytest

from collector.errors import UsageError
from collector.matrix.matrix import load_matrix
from collector.matrix.skips import daemons_of, skipping, without_daemons

LABELLED = Path(__file__).resolve().parents[3] / "playbooks" / "matrices" / "labelled_ipsec.yml"


def test_the_daemons_of_a_matrix_are_those_of_its_configurations():
    matrix = load_matrix(LABELLED)
    assert daemons_of(matrix) == ["libreswan"]
    nothing = skipping(matrix, lambda item: "no" if "ike" in item.name else None, "here")
    assert daemons_of(nothing) == []


def test_what_a_missing_daemon_keys_is_skipped_and_the_rest_runs():
    reason = "keying libreswan on client: pluto not on this host, which has strongSwan"
    found = without_daemons(load_matrix(LABELLED), {"libreswan": reason})
    skipped = {item.name for item in found.configurations if item.skip is not None}
    assert skipped == {item.name for item in found.configurations if item.name.startswith("ike_")}
    assert len(skipped) == 8
    (first, *_) = [item for item in found.configurations if item.skip is not None]
    assert first.skip == reason


def test_hosts_that_have_everything_change_nothing():
    matrix = load_matrix(LABELLED)
    assert without_daemons(matrix, {}) == matrix


def test_what_is_compared_with_a_skipped_configuration_is_skipped_with_its_reason():
    found = skipping(
        load_matrix(LABELLED),
        lambda item: "no cable" if item.name == "manual_tunnel_ipv6_off" else None,
        "here",
    )
    skipped = {item.name: item.skip for item in found.configurations if item.skip is not None}
    assert skipped == {
        "manual_tunnel_ipv6_off": "no cable",
        "manual_tunnel_ipv6_on": (
            "it is compared with manual_tunnel_ipv6_off, which is skipped: no cable"
        ),
    }


def test_a_matrix_without_its_baseline_is_refused():
    with pytest.raises(UsageError) as error:
        skipping(load_matrix(LABELLED), lambda item: "no cable", "here")
    assert str(error.value) == (
        "matrix labelled_ipsec: its baseline plain_ipv4 cannot be had here: no cable"
    )
