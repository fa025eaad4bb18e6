"""The matrix of tunnels: what the thread printed and what its readers asked for is in it."""

import pytest

from collector.matrix.choice import read_choice
from collector.matrix.matrix import load_matrix
from collector.run.campaign import find_matrix
from collector.run.plan import estimate_block_s, make_plan
from collector.runfolder.runfolder import parse_plan

MATRIX = load_matrix(find_matrix("tunnels"))
TYPES = {
    "plain", "vxlan", "stt", "geneve", "gre", "gretap", "ipip", "fou", "gue", "wireguard",
}  # fmt: skip


def run_cells(form, tests=None, configurations=None):
    document = make_plan(
        MATRIX,
        MATRIX.forms[form],
        run_id="r",
        created_at="2026-11-30T10:00:00Z",
        lab={"kind": "guests", "accelerator": "tcg", "name": "default"},
        seed=1,
        choice=read_choice(configurations, tests),
    )
    return [cell for cell in parse_plan(document, "p").cells if cell.skip is None]


def test_every_device_meets_every_test_with_and_without_offloads():
    cells = run_cells("full")
    found = {(c.factors["tunnel"], c.factors["offloads"], c.test) for c in cells}
    assert {tunnel for tunnel, _, _ in found} == TYPES
    assert {offloads for _, offloads, _ in found} == {"as found", "off"}
    assert len(found) == len(TYPES) * 2 * len(MATRIX.tests)
    assert {c.factors["sessions"] for c in cells} == {"1", "5", "200"}
    sizes = {c.factors["bytes"] for c in cells if c.factors["netperf"] == "UDP_STREAM"}
    assert sizes == {"64", "fit"}


def test_a_device_without_offloads_is_held_against_a_link_without_them():
    baselines = {item.name: item.baseline for item in MATRIX.configurations}
    assert baselines["stt_no_offloads"] == "plain_no_offloads"
    assert baselines["stt"] is None


def test_the_short_form_has_the_threads_devices_and_sessions_in_minutes():
    cells = run_cells("short")
    assert {c.factors["tunnel"] for c in cells} == {"plain", "vxlan", "stt"}
    assert {"tcp_stream_1", "tcp_stream_5", "udp_stream_64_5", "udp_stream_fit_5"} <= {
        c.test for c in cells
    }
    assert estimate_block_s(MATRIX, MATRIX.forms["short"]) < 300


def test_the_line_of_two_hundred_sessions_runs_by_itself():
    cells = run_cells("short", "tcp_rr_200")
    assert {c.test for c in cells} == {"tcp_rr_200"}
    assert {c.factors["bytes"] for c in cells} == {"1,1"}
    # Over the form's own devices: the choice says nothing of those.
    assert {c.factors["tunnel"] for c in cells} == {"plain", "vxlan", "stt"}


def test_chosen_devices_run_the_tests_of_the_form():
    cells = run_cells("short", configurations="geneve")
    assert {c.factors["tunnel"] for c in cells} == {"plain", "geneve"}
    assert {c.test for c in cells} == {c.test for c in run_cells("short")}


@pytest.mark.parametrize("test", MATRIX.tests, ids=lambda test: test.name)
def test_a_test_is_named_after_its_sessions(test):
    assert test.name.endswith(f"_{test.sessions}")
