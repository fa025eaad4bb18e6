"""Reasons in the user's terms, from what a host can know."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.crossover.lab.plugins.module_utils.kernel_state.xfrm import State
from ansible_collections.crossover.lab.plugins.module_utils.kernel_state.xfrm_stat import MEANING
from ansible_collections.crossover.lab.plugins.module_utils.xfrm_explain import Evidence, explain

OWN = "unconfined_u:unconfined_r:unconfined_t:s0:c0.c239"
OTHER = "system_u:object_r:unlabeled_t:s0"
POLMATCH = (
    'type=AVC msg=audit(1628614007.816:154): avc:  denied  { polmatch } for  pid=756 comm="ping" '
    "scontext=unconfined_u:unconfined_r:ping_t:s0 tcontext=system_u:object_r:ipsec_spd_t:s0 "
    "tclass=association permissive=0"
)
SETCONTEXT = POLMATCH.replace("polmatch", "setcontext")


def state(label=None):
    return State("198.18.0.1", "198.18.0.2", "esp", 0x1000, 7, "transport", context=label)


CASES = {
    "no_state_for_label": Evidence(
        grown={"XfrmOutNoStates": 21}, states=[state(OTHER)], context=OWN
    ),
    "no_state": Evidence(grown={"XfrmOutNoStates": 3}, states=[state(OWN)], context=OWN),
    "no_polmatch": Evidence(denials=[POLMATCH]),
    "denied": Evidence(denials=[SETCONTEXT]),
    "template_mismatch": Evidence(grown={"XfrmInTmplMismatch": 2}),
    "wrong_spi": Evidence(grown={"XfrmInNoStates": 2}),
    "wrong_key": Evidence(grown={"XfrmInStateProtoError": 2}),
    "expired": Evidence(grown={"XfrmOutStateExpired": 1}),
    "replay": Evidence(grown={"XfrmInStateSeqError": 9}),
    "blocked": Evidence(grown={"XfrmOutPolBlock": 9}),
    "missing_algorithm": Evidence(error="Error: Requested AEAD algorithm not found."),
    "sa_exists": Evidence(error="RTNETLINK answers: File exists"),
    "iproute_without_ctx": Evidence(error='Error: argument "ctx" is wrong: unknown'),
    "mtu": Evidence(error="sendto: Message too long"),
    "clock": Evidence(grown={"XfrmOutNoStates": 1}, clock_step_s=7200.0, states=[state()]),
    "ike_refused": Evidence(
        error='"labeled" #2: IKE_AUTH response rejected Child SA with TS_UNACCEPTABLE'
    ),
    "in_clear": Evidence(clear_packets=4),
    "dropped": Evidence(grown={"XfrmInBufferError": 1}),
}


@pytest.mark.parametrize(("cause", "evidence"), CASES.items(), ids=CASES)
def test_each_cause_is_found_alone(cause, evidence):
    (reason,) = explain(evidence)
    assert reason.cause == cause
    assert reason.text
    assert reason.hint


def test_nothing_wrong_needs_no_explanation():
    assert explain(Evidence(states=[state(OWN)], context=OWN, grown={"XfrmOutNoStates": 0})) == []


def test_both_labels_are_named():
    (reason,) = explain(CASES["no_state_for_label"])
    assert reason.text == (
        f"no SA has the label of the sending process: it runs as {OWN}, the SAs are for {OTHER} "
        "(21 packets dropped, XfrmOutNoStates)"
    )


def test_a_bypassed_policy_is_told_with_the_rule_that_is_missing():
    (reason,) = explain(CASES["no_polmatch"])
    assert "in clear" in reason.text
    assert reason.hint == (
        "the policy lacks, for review: allow ping_t ipsec_spd_t:association polmatch;"
    )


def test_sizes_are_said_where_they_are_known():
    (reason,) = explain(Evidence(payload_bytes=1472, fits_bytes=1438))
    assert "1472 bytes is too long: with ESP, 1438 bytes fit" in reason.text


def test_what_a_set_clock_let_expire_is_named():
    (reason,) = explain(Evidence(missing=["1 of 2 SAs of test4"], clock_step_s=-60.0))
    assert "set by -60 s" in reason.text
    assert "1 of 2 SAs of test4" in reason.text
    # A clock that nobody set explains nothing.
    assert explain(Evidence(missing=["1 of 2 SAs of test4"], clock_step_s=0.5)) == []


def test_a_refusal_of_ike_comes_before_the_packets_that_waited_for_it():
    evidence = Evidence(error=CASES["ike_refused"].error, grown={"XfrmOutNoStates": 5})
    assert [item.cause for item in explain(evidence)][:1] == ["ike_refused"]


def test_a_key_in_a_tool_s_words_is_not_repeated():
    key = "0x" + "5a" * 20
    (reason,) = explain(Evidence(error=f'Error: argument "{key}" is wrong: ALGO-KEY'))
    assert "5a5a" not in reason.text + reason.hint


@given(st.dictionaries(st.sampled_from(sorted(MEANING)), st.integers(1, 9), min_size=1))
def test_no_counter_that_grew_goes_unexplained(grown):
    texts = " ".join(item.text for item in explain(Evidence(grown=grown, states=[state()])))
    quiet = {"XfrmAcquireError"} if "XfrmOutNoStates" in grown else set()
    for name in set(grown) - quiet:
        assert name in texts
