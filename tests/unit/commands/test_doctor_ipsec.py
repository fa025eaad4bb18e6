"""What the doctor says of IPsec on a host: every cause in its user's terms, or that all is well."""

from __future__ import annotations

import pytest

from ansible_collections.crossover.lab.plugins.module_utils.kernel_state.xfrm import State
from ansible_collections.crossover.lab.plugins.module_utils.xfrm_explain import Evidence, explain
from collector.commands.doctor import explained, ipsec_checks

CONTEXT = "unconfined_u:unconfined_r:unconfined_t:s0:c5"
LABELLED = State("198.18.0.1", "198.18.0.2", "esp", 0x1000, 1, "transport", context=CONTEXT[:-3])
POLMATCH = (
    'type=AVC msg=audit(1.2:3): avc:  denied  { polmatch } for  pid=1 comm="ping" '
    "scontext=unconfined_u:unconfined_r:ping_t:s0 tcontext=system_u:object_r:ipsec_spd_t:s0 "
    "tclass=association permissive=0"
)
REFUSED_BY_PEER = '"crossover-t" #2: IKE_AUTH response rejected Child SA with TS_UNACCEPTABLE'
CAUSES = {
    "no_state_for_label": Evidence(
        grown={"XfrmOutNoStates": 3}, states=[LABELLED], context=CONTEXT
    ),
    "no_polmatch": Evidence(denials=[POLMATCH]),
    "template_mismatch": Evidence(grown={"XfrmInTmplMismatch": 2}),
    "wrong_spi": Evidence(grown={"XfrmInNoStates": 1}),
    "wrong_key": Evidence(grown={"XfrmInStateProtoError": 1}),
    "missing_algorithm": Evidence(error="Error: Requested AEAD algorithm not found."),
    "mtu": Evidence(payload_bytes=1472, fits_bytes=1438),
    "clock": Evidence(clock_step_s=7200.0, missing=["1 of 2 SAs of test"]),
    "ike_refused": Evidence(error=REFUSED_BY_PEER),
}


def in_force(**more):
    return {"last": {"keying": "manual", "at": 1.0, "since": {}}, "explain": [], **more}


@pytest.mark.parametrize("cause", CAUSES)
def test_each_cause_is_told_with_what_was_found_and_what_to_do(cause):
    reasons = [reason.as_dict() for reason in explain(CAUSES[cause])]
    (check, *_) = explained("server", in_force(explain=reasons))
    assert check.what == f"server: IPsec (manual): {cause}"
    assert not check.ok
    assert check.found == reasons[0]["text"]
    assert check.remedy == reasons[0]["hint"]


def test_connections_that_were_refused_are_told_with_the_reason():
    reasons = [reason.as_dict() for reason in explain(CAUSES["ike_refused"])]
    last = {"keying": "libreswan", "at": 1.0, "refused": "IKE: t: refused", "explain": reasons}
    first, second = explained("client", {"last": last, "explain": []})
    assert (first.what, first.found) == ("client: IPsec (libreswan)", "refused: IKE: t: refused")
    assert second.what == "client: IPsec (libreswan): ike_refused"
    assert "TS_UNACCEPTABLE" in second.found


def test_where_nothing_was_dropped_that_is_said_with_what_fits_one_packet():
    first, second = explained("client", in_force(fits={"198.18.0.2": 1438}))
    assert first.found == "with ESP, 1438 bytes fit one datagram to 198.18.0.2"
    assert second.found == "nothing was dropped so far"
    assert first.ok
    assert second.ok


def test_sas_that_are_gone_are_no_good_news_even_without_a_dropped_packet():
    (check,) = explained("client", in_force(missing=["1 of 2 SAs of test"]))
    assert not check.ok
    assert check.found == "SAs are gone: 1 of 2 SAs of test"


@pytest.mark.parametrize("answer", [{}, {"last": None}])
def test_a_host_that_never_had_connections_is_left_out(answer):
    assert list(explained("client", answer)) == []


def test_nobody_is_asked_while_no_lab_runs(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("CROSSOVER_INVENTORY", raising=False)
    monkeypatch.setattr("collector.run.runner.run_playbook", lambda *a, **k: pytest.fail("asked"))
    assert list(ipsec_checks(None)) == []
