"""The verdict of a stress run: what is a failure, a leak, a drift, and what is none."""

from __future__ import annotations

import math
import random

import pytest
import stress_factory as factory
from hypothesis import given, settings
from hypothesis import strategies as st

from collector.stress.verdict import Outcome, StressVerdict, judge, trend

DENIAL = (
    'type=AVC msg=audit(1.0:5): avc:  denied  {{ {permission} }} for  pid=1 comm="x" '
    "scontext=system_u:system_r:{source}:s0 tcontext=system_u:object_r:{target}:s0 "
    "tclass={tclass} permissive=0"
)


def verdict(change=None, *, final=True, minutes=60, extra=(), end=True, **plan) -> StressVerdict:
    made = factory.plan(**plan)
    ipsec = made.keying != "none"
    found = factory.lines(minutes, change=change, ipsec=ipsec, end=end)
    return judge(made, factory.timeline([*found, *extra]), final=final)


def at(minute, host, **values):
    """A change of one host's sample at one minute."""

    def change(sample, when):
        if sample["host"] == host and when == minute:
            sample.update(values)

    return change


def test_a_quiet_hour_is_completed() -> None:
    found = verdict()
    assert (found.outcome, found.exit_code) == (Outcome.COMPLETED, 0)
    assert found.sentence == (
        "x of small completed 1 h 00 min of constant streams without a failure, without loss of "
        "throughput and without loss of memory."
    )
    assert (found.failures, found.findings, found.notes, found.chunks) == ((), (), (), 120)


def test_a_run_under_way_is_no_verdict() -> None:
    found = verdict(final=False, minutes=30, end=False)
    assert found.outcome is Outcome.RUNNING
    assert found.sentence == "x of small has run for 30 min 00 s of 1 h 00 min."


def test_a_run_too_short_for_trends_says_so() -> None:
    found = verdict(minutes=3, duration_s=180.0)
    assert found.outcome is Outcome.COMPLETED
    assert found.sentence == (
        "x of small completed 3 min 00 s of constant streams without a failure."
    )
    assert "Too short for a trend" in found.notes[0]


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (
            at(7, "client", chunks=[factory.chunk("udp", 7, rc=1, stdout="", stderr="no route\n")]),
            "client: udp stream: netperf ended with 1: no route",
        ),
        (
            at(7, "client", chunks=[factory.chunk("tcp", 7, rc=-9, timed_out=True)]),
            "client: tcp stream: netperf hung and was ended after 60 s",
        ),
        (
            at(7, "client", chunks=[factory.chunk("tcp", 7, stdout="PROTOCOL=TCP\n")]),
            "client: tcp stream: netperf: found only PROTOCOL",
        ),
        (
            at(7, "client", chunks=[factory.chunk("udp", 7, stdout=factory.output(0.0, 50.0))]),
            "client: udp stream: nothing arrived",
        ),
        (at(7, "server", netserver=False), "server: netserver ended"),
        (at(7, "server", boot_id="another"), "server: rebooted"),
        (
            at(7, "server", kernel_log=["4 12.5 WARNING: CPU: 0 PID: 1 at net/xfrm/x.c:1 f+0x1"]),
            "server: kernel log: 4 12.5 WARNING: CPU: 0",
        ),
        (
            at(7, "client", kernel_log=["3 12.5 watchdog: BUG: soft lockup - CPU#0 stuck"]),
            "client: kernel log: 3 12.5 watchdog: BUG: soft lockup",
        ),
        (
            at(
                7,
                "client",
                denials=[
                    DENIAL.format(
                        permission="polmatch", source="x_t", target="y_t", tclass="association"
                    )
                ],
            ),
            "client: AVC denial: x_t y_t:association { polmatch }",
        ),
        (
            at(
                7,
                "client",
                denials=[
                    DENIAL.format(
                        permission="read", source="unconfined_t", target="y_t", tclass="file"
                    )
                ],
            ),
            "client: AVC denial: unconfined_t y_t:file { read }",
        ),
    ],
)
def test_what_must_not_happen_fails_the_run_in_its_minute(change, text) -> None:
    found = verdict(change)
    assert (found.outcome, found.exit_code) == (Outcome.FAILED, 40)
    assert found.failures[0].minute == 8
    assert str(found.failures[0]).startswith(text)
    assert found.sentence.startswith(f"x of small failed in minute 8 because of {text}")
    # It has failed at once, not only at the end.
    assert verdict(change, final=False, end=False).outcome is Outcome.FAILED


def test_the_earliest_failure_leads() -> None:
    def change(sample, minute):
        if sample["host"] == "server" and minute >= 5:
            sample["netserver"] = False
        if sample["host"] == "client" and minute == 9:
            sample["kernel_log"] = ["4 1.0 Oops: 0000"]

    found = verdict(change)
    assert [str(failure) for failure in found.failures] == [
        "server: netserver ended",
        "client: kernel log: 4 1.0 Oops: 0000",
    ]


def test_counters_of_ipsec_must_not_grow() -> None:
    def change(sample, minute):
        if sample["host"] == "server" and minute >= 7:
            sample["xfrm"]["XfrmInStateSeqError"] = 3

    (failure,) = verdict(change).failures
    assert str(failure) == (
        "server: XfrmInStateSeqError grew by 3: inbound packet outside the replay window"
    )
    # What was counted before the run began is not the run's.
    assert verdict(lambda s, _m: s["xfrm"].update(XfrmInStateSeqError=3)).failures == ()


@pytest.mark.parametrize(("failed", "outcome"), [(0, Outcome.COMPLETED), (5, Outcome.FAILED)])
def test_a_cipher_that_is_too_slow_is_a_note_and_a_forged_packet_is_a_failure(
    failed, outcome
) -> None:
    def change(sample, minute):
        if sample["host"] == "server" and minute >= 7:
            sample["xfrm"]["XfrmInStateProtoError"] = 5
            sample["sas"] = factory.sas(1000 * minute, failed=failed)

    found = verdict(change, keying="manual")
    assert found.outcome is outcome
    if failed:
        (failure,) = found.failures
        assert str(failure) == "server: 5 packets failed the integrity check of their SA"
    note = (
        "server: 5 packets dropped before decryption (XfrmInStateProtoError without a failed "
        "integrity check): more came than the cipher's queue takes"
    )
    assert (note in found.notes) == (outcome is Outcome.COMPLETED)


def test_a_cipher_that_is_too_slow_for_what_is_sent_is_a_note() -> None:
    def change(sample, minute):
        if sample["host"] == "client" and minute >= 7:
            sample["xfrm"]["XfrmOutStateProtoError"] = 5

    found = verdict(change, keying="manual")
    assert found.outcome is Outcome.COMPLETED
    assert found.notes[0].startswith("client: 5 packets dropped before encryption (XfrmOut")


def test_without_the_sas_own_counts_a_slow_cipher_cannot_be_told_from_forgery() -> None:
    def change(sample, minute):
        sample["sas"] = {"text": None, "bytes": 9, "error": None}
        if minute >= 7:
            sample["xfrm"]["XfrmInStateProtoError"] = 5

    assert verdict(change, keying="manual").outcome is Outcome.FAILED


def rekeying(minute_of_growth):
    """IKE replaces the SA in minute 20; a packet finds none in the given minute."""

    def change(sample, minute):
        sample["sas"] = factory.sas(1000 * minute, 0x1000 if minute < 20 else 0x2000)
        if sample["host"] == "client" and minute >= minute_of_growth:
            sample["xfrm"]["XfrmOutNoStates"] = 1

    return change


def test_a_packet_without_an_sa_is_no_failure_while_ike_replaces_them() -> None:
    found = verdict(rekeying(20), keying="ike")
    assert found.outcome is Outcome.COMPLETED
    assert found.new_spis == {"client": 1, "server": 1}
    (failure,) = verdict(rekeying(30), keying="ike").failures
    assert "XfrmOutNoStates grew by 1: a policy wants an SA and there is none" in str(failure)


def test_a_manual_sa_that_is_gone_and_one_that_nothing_uses_are_failures() -> None:
    gone = verdict(rekeying(999), keying="manual").failures
    assert {str(f) for f in gone} == {
        "client: the SA with SPI 0x00001000 is gone",
        "server: the SA with SPI 0x00001000 is gone",
    }
    bypassed = verdict(
        lambda s, minute: s.update(sas=factory.sas(1000 * min(minute, 30))), keying="manual"
    ).failures
    assert str(bypassed[0]) == "client: the SAs carried nothing for an interval"
    assert bypassed[0].minute == 32
    never = verdict(lambda s, _m: s.update(sas=factory.sas(0)), keying="manual").failures
    assert {str(f) for f in never} == {
        "client: the SAs never carried anything",
        "server: the SAs never carried anything",
    }


def test_a_clock_that_is_stepped_and_samples_that_stay_out_are_failures() -> None:
    def step(sample, minute):
        if sample["host"] == "server" and minute >= 7:
            sample["time"] -= 2

    assert str(verdict(step).failures[0]) == "server: the clock was stepped by -2.0 s"

    found = [
        item
        for item in factory.lines()
        if not (item["host"] == "client" and 600 < item["elapsed_s"] < 1200)
    ]
    (failure,) = judge(factory.plan(), factory.timeline(found), final=True).failures
    assert str(failure) == "client: no sample for 600 s after this one"


def test_a_host_that_answers_without_samples_has_failed_and_a_silent_one_only_at_the_end() -> None:
    live = {"final": False, "minutes": 10, "end": False}
    hung = verdict(extra=[factory.poll("client", 20)], **live)
    assert str(hung.failures[0]) == "client: no sample for 600 s after this one"

    away = [factory.poll("client", 10), factory.poll("client", 20, error="unreachable")]
    away[1].update(active=None, boot_id=None, host_time=None, offset=0)
    assert verdict(extra=away, **live).outcome is Outcome.RUNNING
    found = verdict(extra=away, final=True, minutes=10, end=False)
    assert [str(failure) for failure in found.failures] == [
        "client: no sample came home after this one",
        "server: no sample came home after this one",
    ]
    assert "client: 1 poll without an answer" in found.notes


def test_a_program_that_died_and_a_run_that_was_ended_early() -> None:
    dead = factory.poll("server", 10, active=False, words="Traceback\nOSError: No space left")
    found = verdict(extra=[dead], final=False, minutes=10, end=False)
    assert str(found.failures[0]) == ("server: the stress program died: OSError: No space left")
    rebooted = factory.poll("server", 10, active=False, boot_id="another")
    found = verdict(extra=[rebooted], final=False, minutes=10, end=False)
    assert [str(f) for f in found.failures] == ["server: rebooted (its boot id is another)"]
    short = verdict(minutes=10)
    assert str(short.failures[0]) == "client: ended before its time (time is over)"


def test_stalls_count_on_hardware_and_are_notes_on_a_busy_machines_guests() -> None:
    change = at(7, "client", kernel_log=["3 12.5 watchdog: BUG: soft lockup - CPU#0 stuck"])
    guests = {"kind": "guests", "accelerator": "tcg", "name": "default"}
    found = verdict(change, lab=guests)
    assert found.outcome is Outcome.COMPLETED
    assert found.notes == (
        "client: 1 kernel log line of level warning or worse, first: "
        "3 12.5 watchdog: BUG: soft lockup - CPU#0 stuck",
    )


def test_denials_of_other_programs_are_a_note() -> None:
    denial = DENIAL.format(permission="read", source="cron_t", target="shadow_t", tclass="file")
    found = verdict(at(7, "client", denials=[denial]))
    assert found.outcome is Outcome.COMPLETED
    assert found.notes == ("client: 1 AVC denial of other programs, first: x { read } file",)


def test_soft_limits_lost_lines_waiting_sas_and_clocks_apart_are_notes() -> None:
    def change(sample, minute):
        if sample["host"] == "client":
            sample["kernel_log_lost"] = minute == 3
            sample["sas"]["text"] = sample["sas"]["text"].replace(
                "soft (INF)(bytes)", "soft 30000(bytes)"
            )

    apart = factory.poll("server", 10, clock_offset_s=-3.0, clock_uncertainty_s=0.1)
    found = verdict(change, keying="manual", extra=[apart])
    assert found.outcome is Outcome.COMPLETED
    assert found.notes == (
        "client: kernel log lines were lost: too many within an interval",
        "client: an SA reached its soft limit in minute 31",
        "server: its clock stood 2.9 s from the controller's, so times of the hosts cannot be put "
        "together",
    )


def falling(loss_pct, seed=1):
    """Throughput of tcp with 2 % of noise, falling by so much over the hour."""
    noise = random.Random(seed)

    def change(sample, minute):
        for chunk in sample["chunks"]:
            if chunk["stream"] == "tcp":
                rate = 100 * (1 - loss_pct / 100 * minute / 60) * noise.gauss(1, 0.02)
                chunk["stdout"] = factory.output(rate)

    return change


def test_throughput_that_falls_is_degraded_beyond_the_limit_only() -> None:
    found = verdict(falling(12))
    assert (found.outcome, found.exit_code) == (Outcome.DEGRADED, 10)
    assert found.sentence.startswith("x of small degraded: tcp throughput fell by 1")
    assert "; allowed 5 %)" in found.sentence
    for seed in range(20):
        assert verdict(falling(0, seed)).outcome is Outcome.COMPLETED
        assert verdict(falling(-12, seed)).outcome is Outcome.COMPLETED


def losing(field, kib_an_hour, seed=1):
    noise = random.Random(seed)

    def change(sample, minute):
        if sample["host"] == "server":
            sample["memory_kib"][field] += int(kib_an_hour * minute / 60 + noise.gauss(0, 200))

    return change


def test_memory_that_is_lost_is_a_leak_beyond_the_limit_only() -> None:
    found = verdict(losing("SUnreclaim", 12 * 1024))
    assert (found.outcome, found.exit_code) == (Outcome.LEAKED, 10)
    assert found.findings[0].startswith("server: SUnreclaim grew by 1")
    assert "; allowed 4)" in found.findings[0]
    assert verdict(losing("MemAvailable", -12 * 1024)).outcome is Outcome.LEAKED
    assert verdict(losing("MemAvailable", 12 * 1024)).outcome is Outcome.COMPLETED
    assert verdict(losing("SUnreclaim", 2 * 1024)).outcome is Outcome.COMPLETED
    assert verdict(losing("SUnreclaim", 0)).outcome is Outcome.COMPLETED


def test_what_fills_up_in_the_beginning_is_no_leak() -> None:
    def change(sample, minute):
        sample["memory_kib"]["SUnreclaim"] += 10_240 * min(minute, 5)

    assert verdict(change).outcome is Outcome.COMPLETED


def test_a_leak_in_a_failed_run_is_told_too() -> None:
    leak = losing("SUnreclaim", 12 * 1024)

    def change(sample, minute):
        leak(sample, minute)
        at(7, "server", netserver=False)(sample, minute)

    found = verdict(change)
    assert found.outcome is Outcome.FAILED
    assert len(found.findings) == 1


@settings(deadline=None)
@given(
    slope=st.floats(-1e3, 1e3),
    start=st.floats(0, 1e6),
    count=st.integers(8, 60),
    outlier=st.floats(-1e6, 1e6),
)
def test_a_slope_is_found_whatever_one_outlier_says(slope, start, count, outlier) -> None:
    points = [(60.0 * i, start + slope * i / 60) for i in range(count)]
    points[count // 2] = (60.0 * (count // 2), outlier)
    found = trend("client", "q", "u", points)
    assert found is not None
    assert found.slope is not None
    assert found.low is not None
    assert found.high is not None
    assert found.low - 1e-6 <= found.slope <= found.high + 1e-6
    assert math.isclose(found.slope, slope, rel_tol=1e-3, abs_tol=1e-4)


def test_too_few_points_have_a_median_and_no_slope() -> None:
    found = trend("client", "q", "u", [(60.0 * i, float(i)) for i in range(7)])
    assert found is not None
    assert (found.median, found.slope, found.percent(found.slope)) == (3.0, None, None)
    assert trend("client", "q", "u", []) is None
    # Nor have many points of a minute.
    dense = trend("client", "q", "u", [(float(i), float(i)) for i in range(60)])
    assert dense is not None
    assert dense.slope is None
