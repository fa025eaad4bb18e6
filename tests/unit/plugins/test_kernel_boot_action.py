"""The action kernel_boot: which steps it takes, and what it says of a boot that did not work."""

import json
from types import SimpleNamespace

import pytest
from ansible.errors import AnsibleConnectionFailure

from ansible_collections.crossover.lab.plugins.action import kernel_boot
from ansible_collections.crossover.lab.plugins.plugin_utils import rebooting
from ansible_collections.crossover.lab.plugins.plugin_utils.new_connection import Answer

OWN = {"release": "6.12", "boot_id": "b1", "token": None}
NEW = {"release": "6.1", "boot_id": "b2", "token": "t"}


class Action(kernel_boot.ActionModule):
    """The plugin with a module that answers as told, and a host that reboots when told."""

    def __init__(self, answers, arguments, check_mode=False, returns=True):
        self._task = SimpleNamespace(args=arguments, check_mode=check_mode, async_val=0)
        self._connection = SimpleNamespace(
            transport="ssh",
            reset=lambda: self.steps.append("reset"),
            _shell=SimpleNamespace(join_path=lambda *parts: "/".join(parts)),
        )
        self.answers = {step: list(given) for step, given in answers.items()}
        self.steps, self.sent, self.returns, self.boots = [], [], returns, 1

    def _execute_module(self, _name, module_args, task_vars):
        step = module_args["step"]
        self.steps.append(step)
        given = self.answers[step]
        answer = given.pop(0) if len(given) > 1 else given[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    def _make_tmp_path(self):
        return "/remote/tmp"

    def _transfer_file(self, source, target):
        self.sent.append(target)

    def _fixup_perms2(self, paths):
        pass

    def _remove_tmp_path(self, path):
        self.steps.append(f"remove {path}")

    def _way(self):
        def ask(command, _limit_s):
            if command[0] == "/bin/sh":
                self.steps.append(" ".join(command[4:]))
                self.boots += 1
                return Answer(True, 0, "", "")
            if not self.returns:
                return Answer(False, 255, "", "No route to host")
            return Answer(True, 0, f"b{self.boots}", "")

        return ask


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """Time that passes only when somebody waits."""
    now = [0.0]
    monkeypatch.setattr("ansible.plugins.action.ActionBase.run", lambda self, tmp, vars: {})

    def sleep(seconds):
        now[0] += seconds

    monkeypatch.setattr(
        rebooting.Rebooting.__init__, "__kwdefaults__", {"clock": lambda: now[0], "sleep": sleep}
    )
    return now


@pytest.fixture
def built(tmp_path):
    for name in kernel_boot.FILES:
        (tmp_path / name).write_bytes(b"x")
    entry = {"schema": 1, "identity": "i", "release": "6.1", "config_sha256": "ab" * 32}
    (tmp_path / "entry.json").write_text(json.dumps({**entry, "vmlinuz_sha256": "cd" * 32}))
    return tmp_path


def read(*actions, running=OWN, **more):
    return {"actions": list(actions), "running": running, "diff": {}, "reboots": {}, **more}


def look(running, **more):
    """What the host says after a step; whether another is allowed, it does not ask."""
    return {"actions": [], "running": running, "reboots": {}, **more}


def run(action):
    return action.run(task_vars={"inventory_hostname": "server"})


def test_check_mode_reads_and_nothing_else(built):
    arguments = {"name": "new", "folder": str(built)}
    action = Action({"read": [read("install", "boot")]}, arguments, check_mode=True)
    assert run(action)["actions"] == ["install", "boot"]
    assert action.steps == ["read"]


def test_a_kernel_is_sent_armed_booted_and_confirmed(built):
    answers = {
        "read": [read("install", "boot")],
        "look": [look(NEW)],
        "install": [{}],
        "arm": [{"order": ["systemctl", "reboot"]}],
        "confirm": [{"wrong": [], "running": NEW}],
    }
    action = Action(answers, {"name": "new", "folder": str(built)})
    result = run(action)
    assert (result["changed"], len(result["booted_after"])) == (True, 1)
    assert result["running"] == NEW
    assert action.sent == [f"/remote/tmp/{name}" for name in kernel_boot.FILES]
    assert action.steps == [
        "read", "install", "remove /remote/tmp", "arm", "systemctl reboot", "reset", "look",
        "confirm", "look",
    ]  # fmt: skip


def test_a_host_that_is_as_wanted_is_left_alone(built):
    action = Action({"read": [read(changed=False)]}, {"name": "new", "folder": str(built)})
    assert run(action)["changed"] is False
    assert action.steps == ["read"]


def test_a_kernel_that_did_not_stay_up_is_told(built):
    answers = {
        "read": [read("boot")],
        "look": [look(OWN, reboots={"new": 2})],
        "arm": [{"order": ["systemctl", "reboot"]}],
        "confirm": [{"wrong": ["the host is back on 6.12"], "running": OWN}],
    }
    result = run(Action(answers, {"name": "new", "folder": str(built)}))
    assert result["failed"]
    assert result["msg"] == (
        "kernel new did not stay up on server, which is back on 6.12: it panicked or could not be"
        " reached in time (2 of at most 4 reboots for it)"
    )


def test_a_kernel_that_is_another_is_left_at_once_and_told(built):
    answers = {
        "read": [read("boot")],
        "look": [look(NEW), look(OWN, reboots={"new": 2})],
        "arm": [{"order": ["systemctl", "reboot"]}],
        "confirm": [{"wrong": ["uname -r prints 6.0, wanted 6.1"], "running": NEW}],
        "leave": [{"order": ["systemctl", "reboot"]}],
    }
    action = Action(answers, {"name": "new", "folder": str(built), "reboots_max": 2})
    assert run(action)["msg"] == (
        "kernel new on server is not what was wanted: uname -r prints 6.0, wanted 6.1; the host was"
        " rebooted and is back on 6.12 (2 of at most 2 reboots for it)"
    )
    assert action.steps.count("systemctl reboot") == 2


def test_a_host_that_hangs_is_told_with_what_to_do(built, quick):
    answers = {"read": [read("boot")], "arm": [{"order": ["systemctl", "reboot"]}]}
    arguments = {"name": "new", "folder": str(built), "timeout_s": 100}
    result = run(Action(answers, arguments, returns=False))
    assert quick[0] == pytest.approx(260, abs=2)
    assert result["msg"].startswith(
        "server has not come back 260 s after it was told to boot kernel new (No route to host)."
    )
    assert "switch its power off and on" in result["msg"]


def test_a_host_that_is_lost_before_it_is_confirmed_goes_back_by_itself(built):
    answers = {
        "read": [read("boot")],
        "look": [look(NEW)],
        "arm": [{"order": ["systemctl", "reboot"]}],
        "confirm": [AnsibleConnectionFailure("broken pipe")],
    }
    result = run(Action(answers, {"name": "new", "folder": str(built)}))
    assert result["msg"].startswith(
        "server came up and was lost again before it was confirmed (broken pipe); it goes back to"
    )


def test_a_host_that_cannot_be_reached_at_all_is_unreachable_as_ever(built):
    answers = {"read": [AnsibleConnectionFailure("no route")]}
    with pytest.raises(AnsibleConnectionFailure):
        run(Action(answers, {"name": "new", "folder": str(built)}))


@pytest.mark.parametrize("step", ["boot", "confirm", "home"])
def test_a_host_that_cannot_be_asked_anew_is_refused_before_anything_is_prepared(built, step):
    action = Action({"read": [read(step)]}, {"name": "new", "folder": str(built)})
    action._connection.transport = "local"
    assert run(action)["msg"] == (
        "kernel_boot: connection 'local'; a host that is rebooted wants ssh"
    )

    def no_way():
        raise kernel_boot.RouteError("guard: the connection uses a password")

    action._connection.transport, action._way = "ssh", no_way
    assert run(action)["msg"] == "kernel_boot: guard: the connection uses a password"
    assert action.steps == ["read", "read"]


def test_a_default_that_boots_the_same_kernel_again_is_no_way_home():
    answers = {
        "read": [read("home", running=NEW)],
        "look": [look(NEW, kernel="new")],
        "leave": [{"order": ["systemctl", "reboot"]}],
    }
    action = Action(answers, {"state": "home"})
    action.boots = 2
    result = run(action)
    assert result["failed"]
    assert (
        "server was rebooted and runs new again; wanted the boot loader's default"
        in (result["msg"])
    )


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda path: (path / "config").unlink(), "has no config; wanted a built kernel"),
        (
            lambda path: (path / "entry.json").write_text('{"schema": 2}'),
            "entry.json: schema 2, wanted 1",
        ),
        (lambda path: (path / "entry.json").write_text("{"), "wanted the description of a built"),
        (
            lambda path: (path / "entry.json").write_text('{"schema": 1}'),
            "KeyError('release'); wanted the description of a built kernel",
        ),
    ],
)
def test_a_folder_that_is_no_built_kernel_is_refused(built, spoil, message):
    spoil(built)
    action = Action({}, {"name": "new", "folder": str(built)})
    assert message in run(action)["msg"]
    assert action.steps == []


def test_a_package_and_a_folder_are_one_too_many(built):
    action = Action({}, {"name": "new", "folder": str(built), "package": "linux-image-6.1"})
    assert run(action)["msg"] == "kernel_boot: folder and package: found both; wanted one of them"


def test_package_files_are_sent_and_counted_as_content(tmp_path):
    file = tmp_path / "linux-image.deb"
    file.write_bytes(b"deb")
    answers = {"read": [read("install")], "install": [{}], "look": [look(OWN)]}
    arguments = {"name": "new", "state": "installed", "package": "linux-image-6.1"}
    action = Action(answers, {**arguments, "package_files": [str(file)]})
    run(action)
    assert action.sent == ["/remote/tmp/linux-image.deb"]
    assert len(action._arguments["content"]) == 64
    gone = Action({}, {**arguments, "package_files": [str(tmp_path / "gone.deb")]})
    assert "wanted .deb files of the controller" in run(gone)["msg"]
