"""The controller's side of the guard, against hosts that stay, go, and come back."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from ansible.errors import AnsibleConnectionFailure

from ansible_collections.crossover.lab.plugins.action.cipso import ActionModule
from ansible_collections.crossover.lab.plugins.plugin_utils.guarded import Confirmation
from ansible_collections.crossover.lab.plugins.plugin_utils.new_connection import Answer

TOKEN = "0123456789ab"
GONE = Answer(False, 255, "", "ssh: connect to host server port 22: Connection timed out")


class Host:
    """A host with an armed guard: cut off from ``cut`` until the rollback at ``fires``."""

    def __init__(self, cut=False, fires=20.0, failures=(), returns=True, known=True, loses=()):
        self.loses = list(loses)  # verbs whose first answer is lost on its way
        self.now, self.asked = 0.0, []
        self.cut, self.fires, self.failures = cut, fires, failures
        self.returns, self.known, self.claimed = returns, known, False

    def ask(self, command, limit_s):
        verb = command[-1]
        assert command == ["/bin/sh", f"/run/crossover/guard/{TOKEN}/script", verb]
        self.asked.append((self.now, verb))
        fired = self.now >= self.fires
        if self.cut and (not fired or not self.returns):
            self.now += limit_s
            return GONE
        self.now += 0.3
        answer = self.answer(verb, fired)
        if verb in self.loses:
            self.loses.remove(verb)
            return GONE
        return answer

    def answer(self, verb, fired):
        if not self.known:
            return Answer(True, 2, "", "sh: cannot open script")
        if verb == "rollback":
            self.fires = min(self.fires, self.now)
            return Answer(True, 0, "", "")
        if verb == "forget":
            self.known = not fired
            return Answer(True, 0, "", "")
        if fired:
            return Answer(True, 0, "\n".join(["rolled back", *self.failures, ""]), "")
        if verb == "disarm":
            self.known = False
            return Answer(True, 0, "disarmed\n", "")
        return Answer(True, 0, "armed\n", "")

    def sleep(self, seconds):
        self.now += seconds

    def confirmation(self):
        return Confirmation(
            "cipso", "server", TOKEN, 20, self.ask, clock=lambda: self.now, sleep=self.sleep
        )


def test_a_host_that_answers_is_confirmed():
    host = Host()
    assert host.confirmation().confirm() == {"guard_confirmed_after": 0.3}
    assert [verb for _, verb in host.asked] == ["disarm"]


def test_a_guard_that_is_gone_was_disarmed_by_an_attempt_whose_answer_did_not_come():
    host = Host()
    answers = iter([GONE, Answer(True, 2, "", "sh: 0: cannot open the script: No such file")])
    confirmation = Confirmation(
        "ipsec", "server", TOKEN, 20, lambda *_: next(answers),
        clock=lambda: host.now, sleep=host.sleep,
    )  # fmt: skip
    assert confirmation.confirm() == {"guard_confirmed_after": 0.5}


def test_a_confirmation_whose_answer_was_lost_is_one():
    host = Host(loses=["disarm"])
    assert set(host.confirmation().confirm()) == {"guard_confirmed_after"}


def test_a_guard_that_vanished_is_no_confirmation():
    result = Host(known=False).confirmation().confirm()
    assert (result["failed"], result["guard_rolled_back"]) == (True, False)


@pytest.mark.parametrize("verb", ["collect", "forget"])
def test_a_lost_answer_does_not_lose_the_rollback(verb):
    host = Host(cut=True, loses=[verb])
    assert host.confirmation().confirm()["guard_rolled_back"] is True


def test_a_told_rollback_is_cleared_away():
    host = Host(cut=True)
    host.confirmation().confirm()
    assert host.asked[-1][1] == "forget"
    assert not host.known


def test_a_host_that_is_cut_off_is_awaited_and_told():
    host = Host(cut=True)
    assert host.confirmation().confirm() == {
        "failed": True,
        "changed": False,
        "guard_rolled_back": True,
        "guard_failures": [],
        "msg": "cipso on server cut management access; rolled back after 20 s",
    }
    # Nobody disarms a guard whose time is over.
    assert all(at < 20 for at, verb in host.asked if verb == "disarm")


def test_what_the_rollback_could_not_undo_is_told():
    result = Host(cut=True, failures=("map del default: busy",)).confirmation().confirm()
    assert result["msg"] == (
        "cipso on server cut management access; rolled back after 20 s, except: map del default: "
        "busy"
    )
    assert (result["changed"], result["guard_failures"]) == (True, ["map del default: busy"])


def test_an_answer_that_came_too_late_is_a_rollback():
    result = Host(fires=0.0).confirmation().confirm()
    assert result["guard_rolled_back"]


def test_a_host_that_does_not_come_back_is_told_with_what_ssh_said():
    host = Host(cut=True, returns=False)
    result = host.confirmation().confirm()
    assert (result["failed"], result["guard_rolled_back"]) == (True, False)
    assert result["msg"] == (
        "cipso on server cut management access, and the host has not come back 60 s after its "
        "rollback was due: ssh: connect to host server port 22: Connection timed out"
    )
    assert host.now < 20 + 20 + 60 + 11


def test_a_lost_answer_is_undone_at_once():
    host = Host()
    result = host.confirmation().abandon("the connection was lost")
    assert result["msg"] == "cipso on server: the connection was lost; rolled back"
    assert result["guard_rolled_back"]
    assert host.now < 5


def test_a_lost_answer_of_a_host_without_a_guard_changed_nothing():
    assert Host(known=False).confirmation().abandon("the connection was lost") is None


def test_a_lost_answer_of_a_host_that_is_cut_off_is_awaited():
    result = Host(cut=True).confirmation().abandon("the connection was lost")
    assert result["guard_rolled_back"]


# --- the action plugin --------------------------------------------------------------------------


class Action(ActionModule):
    """The plugin with a module that answers as told, and a host in place of a connection."""

    def __init__(self, answer, host, arguments=None, check_mode=False):
        self._task = SimpleNamespace(
            args=arguments or {}, check_mode=check_mode, async_val=0, diff=False
        )
        self._connection = SimpleNamespace(transport="ssh")
        self._supports_check_mode = True
        self.answer, self.host, self.sent = answer, host, None

    def _way(self):
        return self.host.ask

    def _execute_module(self, name, module_args, task_vars):
        self.sent = (name, module_args)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@pytest.fixture
def act(monkeypatch):
    monkeypatch.setattr("ansible.plugins.action.ActionBase.run", lambda self, tmp, vars: {})
    monkeypatch.setattr(
        "ansible_collections.crossover.lab.plugins.plugin_utils.guarded.secrets.token_hex",
        lambda size: TOKEN,
    )

    def run(answer, host=None, **more):
        action = Action(answer, host or Host(), **more)
        result = action.run(task_vars={"inventory_hostname": "server"})
        return action, result

    return run


def test_the_module_gets_a_token_and_is_confirmed(act):
    action, result = act({"changed": True, "guard": {"token": TOKEN}}, arguments={"dois": []})
    assert action.sent == (
        "crossover.lab.cipso",
        {"dois": [], "guard": {"timeout": 30, "token": TOKEN}},
    )
    assert set(result) == {"changed", "guard", "guard_confirmed_after"}


def test_nothing_armed_means_no_new_connection(act):
    action, result = act({"changed": False, "guard": None})
    assert result == {"changed": False, "guard": None}
    assert action.host.asked == []


def test_check_mode_asks_nobody(act):
    action, result = act({"changed": True, "guard": None}, check_mode=True)
    assert result["changed"]
    assert action.host.asked == []


def test_a_module_that_died_without_a_result_is_rolled_back(act):
    _, result = act({"failed": True, "msg": "MODULE FAILURE"})
    assert result["msg"] == (
        "cipso on server: the module ended without a result (MODULE FAILURE); rolled back"
    )
    assert result["guard_rolled_back"]


def test_a_module_that_failed_before_a_guard_keeps_its_message(act):
    _, result = act({"failed": True, "msg": "missing arguments"}, host=Host(known=False))
    assert result == {"failed": True, "msg": "missing arguments"}


def test_a_lost_connection_is_rolled_back_or_stays_unreachable(act):
    lost = AnsibleConnectionFailure("broken pipe")
    _, result = act(lost)
    assert result["msg"] == (
        "cipso on server: the connection was lost during the change (broken pipe); rolled back"
    )
    with pytest.raises(AnsibleConnectionFailure):
        act(lost, host=Host(known=False))


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"timeout": "soon"}, "guard.timeout: 'soon', wanted seconds"),
        ({"timeout": 1}, "guard.timeout: 1, wanted 3 to 3600 seconds"),
        (20, "guard.timeout: 20, wanted a dictionary with timeout"),
    ],
)
def test_a_wrong_timeout_is_refused_before_the_module_runs(act, given, text):
    action, result = act({}, arguments={"guard": given})
    assert result == {"failed": True, "msg": text}
    assert action.sent is None


def test_a_connection_that_is_neither_ssh_nor_local_is_refused(act, monkeypatch):
    monkeypatch.setattr(Action, "_way", ActionModule._way)
    action = Action({}, Host())
    action._connection.transport = "docker"
    result = action.run(task_vars={})
    assert result["msg"] == (
        "guard: connection 'docker'; a change that can cut the connection wants ssh or local"
    )


def test_a_local_connection_is_asked_directly(act, monkeypatch):
    monkeypatch.setattr(Action, "_way", ActionModule._way)
    action = Action({"changed": True, "guard": {"token": TOKEN}}, Host())
    action._connection.transport = "local"
    ran = []

    def execute(command, sudoable):
        ran.append(command)
        return {"rc": 0, "stdout": "disarmed\n", "stderr": ""}

    action._low_level_execute_command = execute
    assert action.run(task_vars={})["guard_confirmed_after"] < 5
    assert ran == [f"/bin/sh /run/crossover/guard/{TOKEN}/script disarm"]
