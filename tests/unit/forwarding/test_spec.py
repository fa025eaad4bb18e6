"""Forwarding tests of a matrix: read strictly, planned whole."""

import pytest
from forwarding_matrix import DOCUMENT, document, with_test

from collector.errors import InputError
from collector.forwarding.spec import drain_s
from collector.matrix.matrix import read_matrix
from collector.run.plan import estimate_block_s, make_plan
from collector.runfolder.runfolder import parse_plan


def planned(form="short", tops=None, **changes):
    matrix = read_matrix({**document(), **(tops or {})}, "m.yml")
    wanted = {
        "run_id": "r",
        "created_at": "2026-11-30T15:00:00Z",
        "lab": {"kind": "guests", "accelerator": "tcg", "name": "x"},
        "seed": 1,
        **changes,
    }
    return parse_plan(make_plan(matrix, matrix.forms[form], **wanted), "plan.json")


def test_a_plan_has_the_settings_and_factors_of_a_forwarding_test():
    plan = planned()
    test = plan.tests[0]
    assert (test.name, test.kind, test.unit) == ("size_64", "forwarding", "%")
    assert test.settings["forwarding"] == "max_load"
    assert (test.settings["trial_s"], test.settings["drain_s"]) == (1, 0.25)
    cell = next(cell for cell in plan.cells if cell.configuration == "new")
    assert cell.factors == {
        "kernel": "new",
        "irq": "default",
        "measure": "max_load",
        "frame_bytes": "64",
        "direction": "bidirectional",
    }


def test_a_form_may_leave_cells_out_and_they_say_so():
    skips = {cell.configuration: cell.skip for cell in planned().cells}
    assert skips == {
        "old": None,
        "new": None,
        "pinned": "irq pinned is left out of the short form",
    }
    assert {cell.skip for cell in planned("full").cells} == {None}
    assert len(planned().order) == 2 * 3 * 2  # blocks, old twice and new, sizes


def test_a_block_lasts_as_long_as_its_trials():
    matrix = read_matrix(document(), "m.yml")
    short, full = (estimate_block_s(matrix, matrix.forms[form]) for form in ("short", "full"))
    assert 15 < short < 40  # three groups of two trials
    assert 4 * 2 * 60 < full < 1000


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"forwarding": "fastest"}, r"forwarding: found 'fastest'; wanted one of max_load, thro"),
        ({"frame_bytes": 60}, r"frame_bytes: found 60; wanted 64 to 9018"),
        ({"frame_bytes": ...}, r"frame_bytes: found nothing; wanted a whole number"),
        ({"direction": "both"}, r"direction: found 'both'; wanted one of unidirectional, bi"),
        ({"goal": "ndr"}, r"goal: found 'ndr'; wanted nothing: it belongs to ndr_pdr"),
        ({"repeats": 3}, r"repeats: found 3; wanted nothing: it belongs to back_to_back"),
        ({"forwarding": "back_to_back", "repeats": 0}, r"repeats: found 0; wanted at least 1"),
        ({"forwarding": "ndr_pdr", "goal": "x"}, r"goal: found 'x'; wanted one of ndr, pdr"),
        (
            {"forwarding": "ndr_pdr", "goal": "pdr", "search": "rfc2544"},
            r"goal: found 'pdr'; wanted ndr: RFC 2544 allows no loss",
        ),
        ({"width_pct": 0}, r"width_pct: found 0.0; wanted per cent, between 0 and 100"),
        ({"trial_s": -1}, r"trial_s: found -1.0; wanted seconds, above 0"),
        ({"flows": 0}, r"flows: found 0; wanted 1 to 60000"),
        ({"queues": 0}, r"queues: found 0; wanted 1 to 1024"),
        ({"flows": 3, "queues": 4}, r"flows: found 3; wanted 4, one a queue, or more"),
        ({"netperf": "TCP_RR"}, r"netperf: found an unknown field"),
    ],
)
def test_what_a_test_may_not_be(changes, text):
    with pytest.raises(InputError, match=rf"^m.yml: tests\[0\]\.{text}"):
        read_matrix(with_test(**changes), "m.yml")


def test_searches_of_rfc_9971_take_short_trials_whatever_the_form():
    tops = with_test(forwarding="ndr_pdr")
    settings = planned("full", tops).tests[0].settings
    assert (settings["trial_s"], settings["goal"], settings["search"]) == (1.0, "ndr", "rfc9971")
    tops = with_test(forwarding="ndr_pdr", search="rfc2544")
    assert planned("full", tops).tests[0].settings["trial_s"] == 60


def test_flows_and_queues_of_the_generator_are_the_tests():
    settings = planned(tops=with_test(flows=8, queues=4)).tests[0].settings
    assert (settings["flows"], settings["queues"]) == (8, 4)
    settings = planned().tests[0].settings
    assert (settings["flows"], settings["queues"]) == (1, 1)


def test_bursts_are_as_long_as_rfc_2544_wants_them_whatever_the_form():
    burst = with_test(forwarding="back_to_back", repeats=2)
    matrix = read_matrix(burst, "m.yml")
    (test,) = matrix.tests
    assert test.estimate_s(60) == test.estimate_s(1) == 8 * 2 * 2.5


def test_a_burst_is_counted_in_frames():
    test = planned("full", with_test(forwarding="back_to_back")).tests[0]
    assert (test.unit, test.settings["repeats"]) == ("frames", 50)


NETPERF = {"name": "tcp_rr", "netperf": "TCP_RR"}


@pytest.mark.parametrize(
    ("tops", "text"),
    [
        ({"topology": "pair"}, "topology: found 'pair'; wanted dut or chain, for tests with f"),
        ({"tests": [NETPERF]}, "topology: found 'dut'; wanted pair, for tests with netperf"),
        (
            {"tests": [DOCUMENT["tests"][0], NETPERF]},
            r"tests\[1\]: found netperf and forwarding in one matrix; wanted tests of one kind",
        ),
        (
            {"short": {**DOCUMENT["short"], "only": {"colour": ["red"]}}},
            "short.only.colour: found no factor of that name; wanted one of kernel, irq, mea",
        ),
        (
            {"short": {**DOCUMENT["short"], "only": {"kernel": ["new"]}}},
            "short.only: found no cell of the baseline; wanted some test of old",
        ),
    ],
)
def test_what_a_matrix_with_forwarding_tests_may_not_be(tops, text):
    with pytest.raises(InputError, match=f"^m.yml: {text}"):
        read_matrix(document(**tops), "m.yml")


def declaring(**keys):
    made = document()
    made["configurations"][1]["forwarding"] = keys
    return made


def test_what_a_configuration_may_declare_of_the_device():
    keys = {
        "irq": "pinned",
        "irq_cpus": [0, 2],
        "rules": "empty",
        "rules_by": ["nft", "iptables"],
        "offloads": {"gro": False},
        "channels": {"combined": 2},
    }
    matrix = read_matrix(declaring(**keys), "m.yml")
    assert matrix.configurations[1].subjects["forwarding"] == keys


@pytest.mark.parametrize(
    ("keys", "text"),
    [
        ({"iqr": "pinned"}, "forwarding.iqr: found an unknown field"),
        ({"irq": "spread"}, "forwarding.irq: found 'spread'; wanted one of default, pinned"),
        ({"irq_cpus": ["0"]}, "forwarding.irq_cpus: found ['0']; wanted a list of CPUs by number"),
        ({"rules": "full"}, "forwarding.rules: found 'full'; wanted one of none, empty"),
        ({"rules_by": []}, "forwarding.rules_by: found []; wanted one or both of nft, iptables"),
        ({"offloads": {"gro": "off"}}, "forwarding.offloads.gro: found 'off'; wanted true or fal"),
        ({"channels": {"rx": True}}, "forwarding.channels.rx: found True; wanted a number"),
    ],
)
def test_what_a_configuration_may_not_declare_of_the_device(keys, text):
    with pytest.raises(InputError) as caught:
        read_matrix(declaring(**keys), "m.yml")
    assert str(caught.value).startswith(f"m.yml: new: {text}")


@pytest.mark.parametrize(("trial", "drain"), [(60, 2.0), (8, 2.0), (1, 0.25), (0.1, 0.2)])
def test_late_frames_are_waited_for_as_rfc_2544_has_it_or_in_proportion(trial, drain):
    assert drain_s(trial) == drain
