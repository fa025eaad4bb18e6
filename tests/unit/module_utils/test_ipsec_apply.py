"""The module ipsec against a model of the kernel: apply, keep, refuse, undo, take back."""

from __future__ import annotations

import base64
import json

import pytest

from ansible_collections.crossover.lab.plugins.module_utils import (
    guard,
    ipsec_apply,
    ipsec_host,
    ipsec_prepare,
)
from ansible_collections.crossover.lab.plugins.module_utils.ipsec_host import Finished, IpsecError
from ansible_collections.crossover.lab.plugins.module_utils.kernel_state.declared import (
    DeclarationError,
)

from .xfrm_kernel import Kernel, RefusedError

ENDS = ["198.18.0.1", "198.18.0.2"]
SEEDS = [base64.b64encode(bytes([number]) * 32).decode() for number in (1, 2)]
CONTEXT = "unconfined_u:unconfined_r:unconfined_t:s0"
REFUSAL = {
    "EEXIST": "RTNETLINK answers: File exists",
    "EINVAL": "Error: Requested AEAD algorithm not found.",
}


class Host:
    """A host with the model kernel and guards that are only remembered."""

    def __init__(self, monkeypatch, folder):
        self.kernel, self.armed, self.stood_down, self.stop_at = Kernel(), [], [], None
        self.steps: list[str] = []
        self.argvs: list[tuple[str, ...]] = []
        monkeypatch.setattr(ipsec_host, "RECORD", folder / "ipsec.json")
        monkeypatch.setattr(ipsec_host, "ip", self.ip)
        monkeypatch.setattr(ipsec_host, "is_local", {ENDS[0]}.__contains__)
        monkeypatch.setattr(ipsec_host, "process_context", lambda level: CONTEXT)
        monkeypatch.setattr(ipsec_host, "canonical_context", lambda context: context)
        monkeypatch.setattr(ipsec_host, "clock_base", lambda: 1000.0)
        monkeypatch.setattr(ipsec_host, "disarm", self.disarm)
        for name in ("begin", "check", "finish"):
            monkeypatch.setattr(guard, name, lambda armed, name=name: self.steps.append(name))
        monkeypatch.setattr(guard, "settle", lambda: ())
        monkeypatch.setattr(guard, "arm", self.arm)

    def arm(self, token, timeout, operations):
        self.armed.append(operations)
        return guard.Armed(token, timeout, f"unit-{token}", f"/run/{token}/script")

    def disarm(self, armed):
        self.stood_down.append(armed)
        return True

    def ip(self, *words, stdin=None):
        self.argvs.append(words)
        if words[0] == "-batch":
            try:
                self.kernel.run(stdin, self.stop_at)
            except RefusedError as error:
                self.stop_at = None
                return Finished(1, "", REFUSAL[error.args[0]] + "\n")
            return Finished(0, "", "")
        if "policy" in words:
            return Finished(0, self.kernel.list_policies(), "")
        text = self.kernel.list_states()
        if "nokeys" in words:
            text = "\n".join(hide(line) for line in text.splitlines())
        return Finished(0, text, "")

    def run(self, *connections, seed=0, **more):
        parameters = {
            "state": "present", "connections": list(connections), "seed": SEEDS[seed],
            "generation": f"generation-{seed}", "management": [], **more,
        }  # fmt: skip
        return ipsec_apply.carry_out(ipsec_prepare.prepare(parameters), {})

    def keys(self):
        return {key: options["aead"][1] for key, options in self.kernel.sas.items()}


def hide(line):
    """As ``nokeys`` does."""
    words = line.split(" ")
    if line.strip().startswith(("aead", "enc", "auth-trunc")) and "0x" in line:
        return f"{words[0]} {words[1]} <<Keys hidden>>" + (
            f" {words[-1]}" if len(words) > 5 else ""
        )
    return line


@pytest.fixture
def host(monkeypatch, tmp_path):
    return Host(monkeypatch, tmp_path)


ONE = {"name": "one", "ends": ENDS, "label": "process"}
TWO = {"name": "two", "ends": ENDS, "selectors": [{"protocol": "udp"}]}


def test_a_declared_connection_is_made_and_read_back(host):
    result = host.run(ONE)
    assert result["changed"]
    assert len(host.kernel.sas) == len(host.kernel.policies) == 2
    assert result["state"]["sas_total"] == result["state"]["policies_total"] == 2
    assert result["connections"][0]["label"] == CONTEXT
    assert result["guard"]["unit"].startswith("unit-")
    assert host.steps == ["begin", "check", "finish"]
    assert result["applied"]["operations"] == 4
    assert result["applied"]["seconds"] >= 0


def test_the_same_again_changes_nothing_and_keeps_the_keys_of_the_first_seed(host):
    host.run(ONE)
    keys = host.keys()
    result = host.run(ONE, seed=1)
    assert not result["changed"]
    assert result["guard"] is None
    assert "applied" not in result
    assert host.keys() == keys
    assert result["connections"][0]["generation"] == "generation-0"
    assert ("-s", "xfrm", "state", "list") not in host.argvs


def test_new_keys_on_request_are_shown_as_changed_and_nothing_more(host):
    host.run(ONE)
    keys = host.keys()
    result = host.run(ONE, seed=1, rekey=True)
    assert host.keys().keys() == keys.keys()
    assert not set(host.keys().values()) & set(keys.values())
    assert {sa["key"] for sa in result["diff"]["after"]["sas"].values()} == {"changed"}
    assert result["rekeyed"] == ["one"]


def test_a_connection_that_lost_an_sa_gets_new_keys_and_the_other_keeps_its(host):
    host.run(ONE, TWO)
    keys = host.keys()
    lost = next(iter(host.kernel.sas))
    del host.kernel.sas[lost]
    result = host.run(ONE, TWO, seed=1)
    assert result["rekeyed"] == ["one"]
    kept = {key for key in keys if host.keys()[key] == keys[key]}
    assert len(kept) == 2
    assert lost not in kept


def test_an_sa_that_somebody_put_in_place_of_ours_is_noticed(host, monkeypatch):
    host.run(ONE)
    text = Kernel.list_states

    def later(self):
        return text(self).replace("00:00:00 use", "00:00:09 use")

    monkeypatch.setattr(Kernel, "list_states", later)
    assert host.run(ONE, seed=1)["rekeyed"] == ["one"]


def test_what_is_declared_no_more_goes_and_what_others_added_stays(host):
    host.kernel.run("xfrm policy add src 192.0.2.0/24 dst 192.0.2.9/32 dir out action block"
                    " priority 0\n")  # fmt: skip
    host.run(TWO, ONE)
    result = host.run(TWO)
    assert result["changed"]
    assert result["guard"] is None
    assert len(host.kernel.sas) == 2
    host.run(state="absent")
    assert (len(host.kernel.sas), len(host.kernel.policies)) == (0, 1)
    assert not ipsec_host.read_record().connections
    assert not host.run(state="absent")["changed"]


def test_what_others_added_is_never_taken_over(host):
    host.run(ONE)
    ipsec_host.RECORD.unlink()
    with pytest.raises(IpsecError, match="which this collection did not add"):
        host.run(ONE)


@pytest.mark.parametrize("stop_at", [1, 2, 3, 4])
def test_a_batch_that_stops_half_way_is_undone_and_explained(host, stop_at):
    host.run(TWO)
    before = (host.keys(), dict(host.kernel.policies))
    host.stop_at = stop_at
    with pytest.raises(ipsec_apply.RefusedError) as caught:
        host.run(ONE, TWO)
    assert (host.keys(), host.kernel.policies) == before
    assert caught.value.left == ()
    assert "; undone" in str(caught.value)
    assert [reason.cause for reason in caught.value.reasons] == ["missing_algorithm"]
    assert list(ipsec_host.read_record().connections) == ["two"]
    assert len(host.stood_down) == 1


def test_a_change_of_keys_that_stops_half_way_brings_the_old_keys_back(host):
    host.run(ONE)
    before = host.keys()
    host.stop_at = 2
    with pytest.raises(ipsec_apply.RefusedError):
        host.run(ONE, seed=1, rekey=True)
    assert host.keys() == before


def test_the_rollback_undoes_the_change_on_the_host_itself(host):
    host.run(TWO)
    before = (host.keys(), dict(host.kernel.policies))
    host.run(ONE, TWO)
    command, record = host.armed[-1]
    host.kernel.run(command.stdin)
    assert (host.keys(), host.kernel.policies) == before
    assert json.loads(record.content)["connections"].keys() == {"two"}
    assert command.argv[:2] == ("/bin/sh", "-c")


@pytest.mark.parametrize("step", ["check", "finish"])
def test_a_change_slower_than_its_guard_leaves_the_undoing_to_the_guard(host, monkeypatch, step):
    def late(armed):
        raise guard.FiredError(armed)

    undone = []
    monkeypatch.setattr(guard, step, late)
    monkeypatch.setattr(guard, "roll_back", lambda armed: undone.append(armed) or ())
    monkeypatch.setattr(ipsec_host, "disarm", lambda armed: False)
    with pytest.raises(
        ipsec_apply.RefusedError, match="were over before the change was complete"
    ) as caught:
        host.run(ONE)
    assert caught.value.fired
    assert len(undone) == 1
    assert not host.kernel.sas


def test_no_key_is_in_an_argv_or_a_result(host):
    results = [host.run(ONE, TWO), host.run(ONE, TWO, seed=1, rekey=True)]
    host.stop_at = 3
    with pytest.raises(ipsec_apply.RefusedError) as caught:
        host.run(ONE, TWO, rekey=True)
    shown = json.dumps([results, host.argvs, str(caught.value)]) + ipsec_host.RECORD.read_text()
    for key in host.keys().values():
        assert key[2:34] not in shown
    for seed in SEEDS:
        assert seed not in shown


def test_a_table_of_thousands_is_not_printed_as_a_whole(host):
    result = host.run({**TWO, "pairs": 200, "vary": "selector"})
    assert result["commands_total"] == 800
    assert len(result["commands"]) == len(result["state"]["sas"]) == 64
    assert result["state"]["sas_total"] == 400
    assert "736 changes not shown" in result["diff"]["after"]["more"]


def test_check_mode_needs_no_write(host):
    parameters = {"state": "present", "connections": [ONE], "seed": SEEDS[0], "management": []}
    result = ipsec_prepare.prepare(parameters).result()
    assert result["changed"]
    assert not host.kernel.sas
    assert all(words[0] != "-batch" for words in host.argvs)


@pytest.mark.parametrize("seed", [None, "", "c2hvcnQ=", "not base64"])
def test_a_seed_that_is_none_is_refused_without_quoting_it(host, seed):
    parameters = {"state": "present", "connections": [ONE], "seed": seed, "management": []}
    with pytest.raises(DeclarationError) as caught:
        ipsec_prepare.prepare(parameters)
    assert str(caught.value) == (
        "seed: wanted 32 bytes in base64, as the action ipsec_keys makes them"
    )
