"""A kernel as it is asked for, what is to be done about it, and the count of reboots."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.crossover.lab.plugins.module_utils.host import kernel_entry
from ansible_collections.crossover.lab.plugins.module_utils.host.errors import HostError

HASH, OTHER_HASH = "ab" * 32, "cd" * 32
ASKED = {"name": "new", "release": "6.1.0-x", "config_sha256": HASH, "content": "one"}
WANTED = kernel_entry.wanted_kernel(ASKED)
OWN = kernel_entry.Running("6.12.43", OTHER_HASH, "/boot/config-6.12.43", "boot-1", (), None)
NEW = kernel_entry.Running("6.1.0-x", HASH, "/boot/config-6.1.0-x", "boot-2", (), "t1")
ADDED = {"new": {"identity": WANTED.identity, "complete": True, "package": None}}
ATTEMPT = kernel_entry.Attempt("t1", "new", WANTED.identity, (), None, "boot-1", 1.0)
DONE = replace(ATTEMPT, outcome="confirmed", reboots=0)


def plan(state="booted", wanted=WANTED, running=OWN, attempts=(), added=None):
    return kernel_entry.plan(state, wanted, running, attempts, ADDED if added is None else added)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"name": "../x"}, "kernel name: found '../x'; wanted letters, digits, '.', '_', '-'"),
        ({"release": "a b"}, "kernel new: release: found 'a b'; wanted what uname -r prints"),
        (
            {"config_sha256": "12"},
            "kernel new: config_sha256: found '12'; wanted 64 hexadecimal digits",
        ),
        ({"package": "A;b"}, "kernel new: package: found 'A;b'; wanted a package's name"),
        (
            {"release": None},
            "kernel new: release: found nothing; wanted what uname -r prints under it",
        ),
        *(
            (
                {"append": [word]},
                f"kernel new: append: found {word!r}; wanted a word of the kernel's command line"
                " without blanks or quotes, and none of the boot loader's own",
            )
            for word in ("a b", "x='1'", "crossover.boot=1", "root=/dev/sda1", "a;reboot")
        ),
    ],
)
def test_a_kernel_that_cannot_be_is_refused_by_its_key(change, message):
    with pytest.raises(HostError) as caught:
        kernel_entry.wanted_kernel({**ASKED, **change})
    assert str(caught.value) == message


def test_other_content_is_another_kernel_of_the_same_name():
    assert kernel_entry.wanted_kernel({**ASKED, "content": "two"}).identity != WANTED.identity
    assert kernel_entry.wanted_kernel({**ASKED, "append": ["quiet"]}).identity == WANTED.identity


def test_a_kernel_that_is_not_there_is_installed_and_booted():
    assert plan(added={}) == ("install", "boot")
    assert plan("installed", added={}) == ("install",)


def test_a_kernel_that_is_there_is_booted():
    assert plan() == ("boot",)
    assert plan("installed") == ()


def test_a_host_that_runs_it_confirmed_is_left_alone():
    assert plan(running=NEW, attempts=[DONE]) == ()


def test_a_boot_that_nobody_confirmed_is_confirmed_by_the_next_controller():
    assert plan(running=NEW, attempts=[ATTEMPT]) == ("confirm",)


def test_a_host_that_boots_the_kernel_by_itself_needs_nothing():
    assert plan(running=replace(NEW, token=None), added={}) == ()


@pytest.mark.parametrize(
    "running",
    [
        replace(NEW, config_sha256=OTHER_HASH),
        replace(NEW, config_sha256=None),
        replace(NEW, release="6.1.0-y"),
    ],
    ids=["other configuration", "unknown configuration", "other release"],
)
def test_a_host_that_runs_another_kernel_of_that_name_is_booted(running):
    assert plan(running=running, attempts=[DONE]) == ("boot",)


@pytest.mark.parametrize(
    "change", [{"boot": 1}, {"append": ("quiet",)}], ids=["number of the boot", "command line"]
)
def test_another_boot_of_the_same_kernel_is_a_reboot(change):
    wanted = replace(WANTED, **change)
    assert plan(wanted=wanted, running=NEW, attempts=[DONE]) == ("boot",)
    same = replace(DONE, boot=wanted.boot, append=wanted.append)
    assert plan(wanted=wanted, running=NEW, attempts=[same]) == ()


def test_a_kernel_that_was_built_anew_takes_the_place_of_the_old_one():
    newer = replace(WANTED, identity="other")
    assert plan(wanted=newer) == ("remove", "install", "boot")
    assert plan(wanted=newer, running=NEW, attempts=[DONE]) == (
        "home", "remove", "install", "boot",
    )  # fmt: skip


def test_an_install_that_was_cut_off_is_made_anew():
    added = {"new": {**ADDED["new"], "complete": False}}
    assert plan(added=added) == ("remove", "install", "boot")


def test_home_reboots_a_host_only_if_a_kernel_of_ours_runs():
    assert plan("home", None) == ()
    assert plan("home", None, NEW, [DONE]) == ("home",)


def test_absent_goes_home_first_where_the_kernel_runs():
    assert plan("absent", None, NEW, [DONE]) == ("home", "remove")
    assert plan("absent", None) == ("remove",)
    assert plan("absent", None, added={}) == ()
    other = replace(WANTED, name="other")
    assert plan("absent", other, NEW, [DONE]) == ()


def test_a_boot_that_is_over_without_a_word_has_failed():
    (found,) = kernel_entry.settled([ATTEMPT], replace(OWN, boot_id="boot-3"))
    assert (found.outcome, found.reboots) == ("failed", 2)
    assert found.reason == "the host came back on 6.12.43"


def test_a_boot_that_was_not_yet_left_or_runs_now_is_still_open():
    assert kernel_entry.settled([ATTEMPT], OWN) == (ATTEMPT,)
    assert kernel_entry.settled([ATTEMPT], NEW) == (ATTEMPT,)
    assert kernel_entry.settled([DONE], OWN) == (DONE,)


def test_a_confirmed_boot_starts_the_count_anew_for_its_kernel_only():
    failed = kernel_entry.failed(replace(ATTEMPT, token="t0"), "panic")
    other = replace(failed, token="t2", name="other")
    after = kernel_entry.confirmed([failed, other, ATTEMPT], "t1")
    assert kernel_entry.spent(after, "new") == 0
    assert kernel_entry.spent(after, "other") == 2
    assert after[-1].outcome == "confirmed"


def test_the_refusal_says_how_often_and_why():
    failures = [kernel_entry.failed(replace(ATTEMPT, token=name), "no answer") for name in "ab"]
    kernel_entry.require_reboots(failures, "new", 6)
    with pytest.raises(HostError) as caught:
        kernel_entry.require_reboots(failures, "new", 4)
    assert str(caught.value) == (
        "kernel new: this host was rebooted 4 times for it and none was confirmed (last: no"
        " answer); another attempt may take 2, wanted at most 4 in all. Find out why, then take"
        " the kernel away (state absent) or set reboots_max higher"
    )


@given(most=st.integers(0, 9), lucky=st.lists(st.booleans(), max_size=20))
def test_no_controller_however_often_started_reboots_more_than_that_in_a_row(most, lucky):
    attempts, in_a_row = (), 0
    for number, comes_up in enumerate(lucky):
        try:
            kernel_entry.require_reboots(attempts, "new", most)
        except HostError:
            break
        attempts = (*attempts, replace(ATTEMPT, token=str(number), boot_id=str(number)))
        if comes_up:
            attempts = kernel_entry.confirmed(attempts, str(number))
            in_a_row = 0
        else:
            # The controller died; the next one finds the host back by itself.
            attempts = kernel_entry.settled(attempts, replace(OWN, boot_id=f"{number}-back"))
            in_a_row += 2
        assert in_a_row <= most


def test_attempts_come_back_from_a_record_as_they_went():
    attempts = (replace(ATTEMPT, append=("a=1",), boot=2), DONE)
    assert kernel_entry.attempts_from(kernel_entry.attempts_to(attempts)) == attempts
