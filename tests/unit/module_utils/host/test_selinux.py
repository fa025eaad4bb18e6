"""SELinux: what is declared, what needs a boot, what semodule and the configuration say."""

import hashlib

import pytest

from ansible_collections.crossover.lab.plugins.module_utils.host import selinux, selinux_state
from ansible_collections.crossover.lab.plugins.module_utils.host.errors import HostError
from ansible_collections.crossover.lab.plugins.module_utils.host.settings import Change

CONFIG = """\
# This file controls the state of SELinux on the system.
# SELINUX= can take one of these three values:
SELINUX=permissive
SELINUXTYPE=default

# SETLOCALDEFS= Check local definition changes
SETLOCALDEFS=0
"""
MODULES = """\
400 crossover_netlabel cil          sha256:6e1b990831a2e1b8c68b26a0eef9a2a6327492b9e2eec85053e6cfc3
100 abrt               pp  disabled sha256:53288b4e97b5478c7855a753a895d9759e92398ff0297514790ab74a
100 zebra              pp
"""
NO_MODULE = {"content": None, "path": None, "priority": 400, "state": "present"}


def params(**given):
    empty = {"mode": None, "persistent": True, "type": None, "booleans": {}, "modules": []}
    return {**empty, **given}


def test_the_configuration_keeps_everything_else():
    assert selinux.parse_config(CONFIG) == {"SELINUX": "permissive", "SELINUXTYPE": "default"}
    edited = selinux.edit_config(CONFIG, {"SELINUX": "enforcing"})
    assert edited == CONFIG.replace("SELINUX=permissive", "SELINUX=enforcing")
    assert selinux.edit_config("", {"SELINUXTYPE": "mls"}) == "SELINUXTYPE=mls\n"


def test_modules_with_and_without_sums():
    first, second, third = selinux.parse_modules(MODULES)
    assert (first.name, first.priority, first.language) == ("crossover_netlabel", 400, "cil")
    assert first.checksum.startswith("sha256:6e1b")
    assert second.checksum.startswith("sha256:5328")
    assert third.checksum is None
    with pytest.raises(HostError, match="found 'nonsense'; wanted PRIORITY NAME LANGUAGE"):
        selinux.parse_modules("nonsense\n")


def test_older_semodule_is_asked_for_the_source_itself():
    calls = []

    def semodule(argv):
        calls.append(list(argv))
        if "--checksum" in argv:
            return 1, "", "semodule: unrecognized option '--checksum'\n"
        if argv[0] == "env":
            folder = argv[1].partition("=")[2]
            with open(f"{folder}/zebra.pp", "wb") as stream:
                stream.write(b"binary")
            return 0, "", ""
        return 0, "100 abrt pp\n100 zebra pp\n", ""

    found = selinux.modules(semodule, {("zebra", 100): ""})
    assert found[("zebra", 100)].checksum == "sha256:" + hashlib.sha256(b"binary").hexdigest()
    assert found[("abrt", 100)].checksum is None
    assert calls[-1][2:] == ["semodule", "--priority=100", "--hll", "--extract=zebra"]


def test_all_policy_modules_are_one_transaction(tmp_path):
    argv = selinux.transaction(
        [(400, tmp_path / "a.cil"), (400, tmp_path / "b.cil")], [(300, "old")], reload=True
    )
    assert argv == [
        "semodule",
        "--priority=400",
        f"--install={tmp_path}/a.cil",
        f"--install={tmp_path}/b.cil",
        "--priority=300",
        "--remove=old",
    ]
    assert "--noreload" in selinux.transaction([], [(400, "x")], reload=False)


@pytest.mark.parametrize(
    ("before", "after", "reboot"),
    [
        ("permissive", "enforcing", None),
        ("enforcing", "permissive", None),
        ("disabled", "enforcing", "SELinux is disabled and becomes enforcing"),
        ("enforcing", "disabled", "SELinux is enforcing and becomes disabled"),
    ],
)
def test_only_a_boot_starts_and_ends_selinux(before, after, reboot):
    changes = [Change("mode", before, after)]
    assert selinux_state.needs_reboot(changes, before) == reboot
    assert selinux_state.needs_relabel(changes) is (before == "disabled")
    assert selinux_state.cuts_access(changes) is (after == "enforcing")


def test_another_policy_type_needs_a_boot_and_new_labels():
    changes = [Change("config SELINUXTYPE", "default", "mls")]
    assert selinux_state.needs_reboot(changes, "enforcing") == "policy type default becomes mls"
    assert selinux_state.needs_relabel(changes)


@pytest.mark.parametrize(
    ("cmdline", "lsm", "starts"),
    [
        ("quiet", "lockdown,capability,selinux", True),
        ("quiet", "lockdown,capability,apparmor", False),
        ("security=selinux selinux=1", "capability,apparmor", True),
        ("security=apparmor", "capability", False),
        ("lsm=lockdown,selinux", "capability,apparmor", True),
        ("lsm=lockdown,apparmor", "capability,selinux", False),
        ("security=selinux selinux=0", "capability", False),
    ],
)
def test_whether_a_boot_would_start_selinux(cmdline, lsm, starts):
    assert selinux.boot_selects_selinux(cmdline, lsm) is starts
    problem = selinux_state.boot_problem(cmdline, lsm, "enforcing")
    assert (problem is None) is starts
    assert starts or "wanted security=selinux selinux=1" in problem


@pytest.mark.parametrize(
    ("cmdline", "comes_back"),
    [
        ("security=selinux selinux=1 enforcing=1", False),
        ("security=selinux selinux=1", True),
        ("security=selinux selinux=1 enforcing=0", True),
        ("selinux=0 enforcing=1", True),
    ],
)
def test_a_boot_that_would_freeze_is_refused(cmdline, comes_back):
    problem = selinux_state.boot_problem(cmdline, "capability,selinux", "disabled")
    assert (problem is None) is comes_back
    assert comes_back or "wanted selinux=0 on it instead, or permissive" in problem


def test_a_declaration_has_the_mode_now_and_at_the_next_boot():
    assert selinux_state.declare(params(mode="enforcing")).values == {
        "config SELINUX": "enforcing",
        "mode": "enforcing",
    }
    assert selinux_state.declare(params(mode="enforcing", persistent=False)).values == {
        "mode": "enforcing"
    }


def test_a_module_is_declared_by_the_sum_of_its_source(tmp_path):
    path = tmp_path / "x.pp"
    path.write_bytes(b"binary")
    wanted = [
        {**NO_MODULE, "name": "a", "content": "(block a)"},
        {**NO_MODULE, "name": "x", "path": str(path), "priority": 300},
        {**NO_MODULE, "name": "old", "state": "absent"},
    ]
    declared = selinux_state.declare(params(modules=wanted))
    assert declared.values == {
        "module a at 400": "sha256:" + hashlib.sha256(b"(block a)").hexdigest(),
        "module x at 300": "sha256:" + hashlib.sha256(b"binary").hexdigest(),
        "module old at 400": "absent",
    }
    assert declared.sources["module x at 300"] == ("pp", b"binary")


@pytest.mark.parametrize(
    ("module", "said"),
    [
        ({"name": "../x"}, "wanted letters, digits"),
        ({"name": "x", "priority": 1000}, "found priority 1000; wanted 1 to 999"),
        ({"name": "x"}, r"wanted either content \(CIL\) or path"),
        ({"name": "x", "content": "", "path": "/x.cil"}, "wanted either content"),
        ({"name": "x", "path": "/x.te"}, r"wanted a \.cil or \.pp file"),
        ({"name": "x", "path": "/no/such/x.cil"}, "No such file"),
    ],
)
def test_a_module_that_cannot_be_is_named(module, said):
    with pytest.raises(HostError, match=rf"SELinux module .*{said}"):
        selinux_state.declare(params(modules=[{**NO_MODULE, **module}]))


def test_other_declarations_that_cannot_be():
    with pytest.raises(HostError, match="SELinux boolean x: found 'on'; wanted true or false"):
        selinux_state.declare(params(booleans={"x": "on"}))
    with pytest.raises(HostError, match="wanted the policy nonsense to be installed"):
        selinux_state.declare(params(type="nonsense"))
    twice = [{**NO_MODULE, "name": "x", "content": "(a)"}] * 2
    with pytest.raises(HostError, match="module x at 400: declared twice"):
        selinux_state.declare(params(modules=twice))


def test_what_is_replaced_is_kept_and_comes_back(tmp_path, monkeypatch):
    monkeypatch.setattr(selinux, "mode", lambda: "enforcing")
    old, new = b"(old)", b"(new)"
    key = "module x at 400"
    installed = []

    def semodule(argv):
        if "-lfull" in argv:
            return 0, f"400 x cil {selinux.checksum(old)}\n", ""
        if argv[0] == "env":
            with open(argv[1].partition("=")[2] + "/x.cil", "wb") as stream:
                stream.write(old)
        else:
            for word in argv:
                if word.startswith("--install="):
                    with open(word.partition("=")[2], "rb") as stream:
                        installed.append(stream.read())
        return 0, "", ""

    forth = Change(key, selinux.checksum(old), selinux.checksum(new))
    selinux_state.make_modules([forth], {key: ("cil", new)}, semodule, tmp_path)
    back = Change(key, "absent", selinux.checksum(old), back=True)
    selinux_state.make_modules([back], {}, semodule, tmp_path)
    assert installed == [new, old]


def test_the_kernels_files(tmp_path):
    assert selinux.mode(tmp_path) == "disabled"
    (tmp_path / "enforce").write_text("1")
    assert selinux.mode(tmp_path) == "enforcing"
    selinux.set_mode("permissive", tmp_path)
    assert selinux.mode(tmp_path) == "permissive"
    (tmp_path / "policy").write_bytes(b"policy")
    assert selinux.policy_digest(tmp_path) == hashlib.sha256(b"policy").hexdigest()
    assert selinux.policy_version(tmp_path) is None
    (tmp_path / "booleans").mkdir()
    assert selinux.boolean_value("x", tmp_path) is None
    (tmp_path / "booleans" / "x").write_text("1 1")
    assert selinux.boolean_value("x", tmp_path) is True
    selinux.set_booleans({"x": False}, tmp_path)
    assert (tmp_path / "commit_pending_bools").read_text() == "1"
    with pytest.raises(HostError, match="wanted letters, digits or '_'"):
        selinux.boolean_value("../enforce", tmp_path)
