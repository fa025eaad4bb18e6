"""Kernels of a run: decided when it is planned, booted where they change, proven on both hosts."""

from __future__ import annotations

import pytest
from matrix_factory import document

from collector.errors import InputError, UsageError
from collector.kernels import artifact
from collector.kernels.artifact import Artifact
from collector.matrix.matrix import read_matrix
from collector.proof import kernel as proof_kernel
from collector.run import campaign_kernels
from collector.run.campaign_kernels import Home, decide, describe, over, with_boots
from collector.run.kernel_ready import not_built
from collector.run.plan import groups_of, make_plan
from collector.runfolder.runfolder import Run, parse_plan


def kernel(name, **changes):
    values = {
        "name": name,
        "about": "a kernel",
        "identity": f"{name:0>16}",
        "kind": "package",
        "release": f"6.12.1-{name}",
        "version": "#1 SMP",
        "config_sha256": "c" * 64,
        "vmlinuz_sha256": "0" * 64,
        "modules": 3,
        "initrd": False,
        "compiler": None,
        "made_of": {},
        "built_at": "2026-11-30T10:00:00Z",
        "build_s": None,
    }
    return Artifact(**{**values, **changes})


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


def keep(*kernels):
    for item in kernels:
        with artifact.being_made(item.identity) as folder:
            artifact.write(folder, item)


def run_over(kernels, blocks=2, provenance=None):
    """A run of the small matrix over kernels that are all there."""
    keep(*kernels)
    wish = ",".join(item.name for item in kernels)
    matrix = over(read_matrix(document(), "m.yml"), wish)
    plan = make_plan(
        matrix,
        matrix.forms["short"],
        run_id="r",
        created_at="2026-11-30T10:00:00Z",
        lab={"kind": "guests", "accelerator": "tcg", "name": "x"},
        seed=1,
        blocks=blocks,
        kernels=campaign_kernels.document({item.name: item for item in kernels}),
    )
    return Run(None, parse_plan(plan, "plan.json"), (), False, provenance or {})


def booted(run, home=None):
    return with_boots(
        run, groups_of(run.plan), home or Home(), lambda group: {"name": group.configuration}
    )


def test_the_hosts_boot_only_where_the_kernel_or_its_boot_changes():
    groups, away = booted(run_over([kernel("a"), kernel("b")], blocks=4))
    seen = None
    for group in groups:
        now = (group["boot"]["kernel"], group["boot"]["index"])
        assert group["boots"] == (now != seen)
        seen = now
    assert away
    assert {group["boot"]["index"] for group in groups} == {0, 1}
    assert sum(group["boots"] for group in groups) == 8  # two kernels in each of four blocks


def test_the_first_kernel_needs_no_boot_where_it_runs_already():
    run = run_over([kernel("a"), kernel("b")])
    first = groups_of(run.plan)[0]
    groups, _away = booted(run, Home(first.kernel, "/k", first.boot))
    assert groups[0]["boots"] is False


def test_the_provenance_of_each_kernel_is_taken_once():
    groups, _away = booted(run_over([kernel("a"), kernel("b")], blocks=4))
    fresh = [group["boot"]["kernel"] for group in groups if not group["boot"]["known"]]
    assert sorted(fresh) == ["a", "b"]
    groups, _away = booted(run_over([kernel("a"), kernel("b")], provenance={"client@a": {}}))
    fresh = [group["boot"]["kernel"] for group in groups if not group["boot"]["known"]]
    assert fresh == ["b"]


def test_a_boot_says_where_the_kernel_is_and_what_it_must_say():
    run = run_over([kernel("a"), kernel("b")])
    found = describe(run.plan, "a", 1, Home())
    assert found == {
        "kernel": "a",
        "index": 1,
        "folder": str(kernel("a").folder),
        "by": "role",
        "release": "6.12.1-a",
        "version": "#1 SMP",
        "config_sha256": "c" * 64,
    }
    assert describe(run.plan, None, 1, Home("x", "/x", 0, "lab")) == {
        "kernel": None, "index": 1, "folder": "/x", "by": "lab", "known": True,
    }  # fmt: skip


def test_a_kernel_that_is_gone_meanwhile_is_told():
    run = run_over([kernel("a"), kernel("b")])
    (kernel("a").folder / "entry.json").unlink()
    with pytest.raises(InputError, match="r: kernel a: found no built kernel"):
        describe(run.plan, "a", 0, Home())


def test_a_run_without_kernels_boots_nothing():
    plan = make_plan(
        read_matrix(document(), "m.yml"),
        read_matrix(document(), "m.yml").forms["short"],
        run_id="r",
        created_at="2026-11-30T10:00:00Z",
        lab={"kind": "guests", "accelerator": "tcg", "name": "x"},
        seed=1,
        blocks=2,
    )
    assert "kernels" not in plan
    groups, away = booted(Run(None, parse_plan(plan, "plan.json"), (), False, {}))
    assert not away
    assert all(group["boot"] is None and not group["boots"] for group in groups)


def said(**changes):
    return {"release": "6.12.1-a", "version": "#1 SMP", "config_sha256": "c" * 64, **changes}


def test_what_modules_and_provenance_say_is_the_same():
    identity = {"kernel": "6", "version": "#1", "config_sha256": "c", "boot_id": "b"}
    provenance = {"kernel": {"release": "6", "build": "#1", "config_sha256": "c", "lsm": "x"}}
    assert proof_kernel.of_identity(identity) == proof_kernel.of_provenance(provenance)


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"release": "6.12.2-a"}, "kernel release of the server: wanted 6.12.1-a, found 6.12.2-a"),
        ({"version": "#2 SMP"}, "kernel build of the server: wanted #1 SMP, found #2 SMP"),
        ({"config_sha256": None}, "kernel configuration (SHA-256) of the server: wanted"
                                  f" {'c' * 64}, found None"),
    ],
)  # fmt: skip
def test_another_kernel_on_one_host_is_no_proof(changes, text):
    boot = describe(run_over([kernel("a"), kernel("b")]).plan, "a", 0, Home())
    found = proof_kernel.prove(boot, {"client": said(), "server": said(**changes)})
    assert [str(finding) for finding in found if not finding.ok] == [text]
    assert len(found) == 6


def test_what_ran_before_needs_no_proof():
    assert proof_kernel.prove(None, {"client": said()}) == []
    plan = run_over([kernel("a"), kernel("b")]).plan
    assert proof_kernel.prove(describe(plan, None, 0, Home()), {"client": said()}) == []


def disable_matrix():
    made = document()
    made["kernel"] = "lab-6.12"
    made["configurations"].append(
        {"name": "Disable", "about": "no NetLabel", "label": "s0", "kernel": "lab-6.12-disable",
         "cipso": {"netlabel": "absent"}}
    )  # fmt: skip
    return read_matrix(made, "m.yml")


def skips(matrix):
    return {item.name: item.skip for item in matrix.configurations if item.skip}


def test_sources_that_are_not_compiled_are_a_reason_to_skip_and_nothing_is_made():
    def make(entry):
        raise AssertionError(entry.name)

    matrix, kernels = decide(disable_matrix(), None, "guests", False, make=make)
    assert kernels == {}
    assert skips(matrix)["Disable"].startswith(
        "kernel lab-6.12 and lab-6.12-disable: never built; about "
    )
    assert skips(matrix)["Disable"].endswith(": crossover kernel build lab-6.12 lab-6.12-disable")


def test_sources_are_compiled_and_packages_fetched_where_that_is_wanted():
    asked = []

    def make(entry):
        asked.append(entry.name)
        return kernel(entry.name)

    matrix, kernels = decide(disable_matrix(), None, "guests", True, make=make)
    assert sorted(kernels) == sorted(asked) == ["lab-6.12", "lab-6.12-disable"]
    assert set(skips(matrix)) == {"NoPatch"}
    asked.clear()
    plain = read_matrix(document(), "m.yml")
    matrix, kernels = decide(plain, "debian-6.1,debian-6.12", "guests", False, make=make)
    assert asked == ["debian-6.1", "debian-6.12"]
    assert matrix.baseline == "Unlabel/debian-6.1"


@pytest.mark.parametrize("kind", ["netns", "exact"])
def test_labs_that_share_this_machines_kernel_skip_what_needs_another(kind):
    matrix, kernels = decide(disable_matrix(), None, kind, True)
    assert kernels == {}
    assert skips(matrix)["Disable"] == (
        f"kernel lab-6.12 and lab-6.12-disable: a lab of kind {kind} boots no kernel of its own"
    )


def test_real_machines_are_not_booted_into_a_kernel_for_guests_that_nobody_named():
    matrix, kernels = decide(disable_matrix(), None, "hardware", True)
    assert kernels == {}
    assert skips(matrix)["Disable"] == (
        "kernel lab-6.12 and lab-6.12-disable: it has drivers for virtual machines only; on hosts"
        " of your own --kernels names what they boot (none: nothing)"
    )
    over_kernels = read_matrix({**document(), "kernels": ["debian-6.1", "debian-6.12"]}, "m.yml")
    with pytest.raises(InputError, match=r"found kernel debian-6\.1: it has drivers for virtual"):
        decide(over_kernels, None, "hardware", True)
    # Hosts of somebody's own may be virtual machines, which only he knows.
    asked = []

    def make(entry):
        asked.append(entry.name)
        return kernel(entry.name)

    decide(over_kernels, "debian-6.1,debian-6.12", "hardware", True, make=make)
    assert asked == ["debian-6.1", "debian-6.12"]


def test_kernels_can_be_left_out():
    matrix, kernels = decide(disable_matrix(), "none", "guests", True)
    assert kernels == {}
    assert skips(matrix)["Disable"] == (
        "kernel lab-6.12 and lab-6.12-disable: left out (--kernels none, as in the demo)"
    )


def test_a_comparison_whose_base_is_not_to_be_had_is_refused():
    with pytest.raises(InputError, match=r"baseline Unlabel/lab-6\.12: found kernel lab-6\.12"):
        decide(read_matrix(document(), "m.yml"), "lab-6.12,lab-6.12-disable", "guests", False)


def test_a_kernel_of_no_entry_is_told():
    with pytest.raises(UsageError, match="kernel 'nosuch': no such entry; wanted one of debian-6"):
        decide(read_matrix(document(), "m.yml"), "nosuch,debian-6.1", "guests", False)


def test_experience_tells_how_long_compiling_takes():
    from collector.kernels.records import Effort, note_effort
    from collector.run.kernel_entries import find_entry

    entry = find_entry("lab-6.12")
    usual = not_built(entry, "never built").build_s
    assert usual is not None
    note_effort("lab-6.1", Effort(1800, 700.0))
    assert not_built(entry, "never built").build_s == 700.0
    note_effort("lab-6.12", Effort(1800, 650.0))
    assert not_built(entry, "never built").build_s == 650.0


def test_a_matrix_has_kernels_of_its_own_where_none_are_given():
    made = read_matrix({**document(), "kernels": ["a", "b"]}, "m.yml")

    def kernels_in(text):
        return list(dict.fromkeys(item.kernel for item in over(made, text).configurations))

    assert kernels_in(None) == kernels_in("") == ["a", "b"]
    assert kernels_in("x=c,y=d") == ["c", "d"]
    assert kernels_in("none") == [None]


@pytest.mark.parametrize("kernels", [["a"], ["a", "b", "a"]])
def test_kernels_to_compare_are_at_least_two_and_each_once(kernels):
    with pytest.raises(InputError, match=r"kernels: found a.*; wanted at least two, each once"):
        read_matrix({**document(), "kernels": kernels}, "m.yml")
