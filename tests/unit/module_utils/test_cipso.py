"""What the cipso module promises, against a model of the kernel and without root."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.crossover.lab.plugins.module_utils import cipso_apply, guard
from ansible_collections.crossover.lab.plugins.module_utils.cipso_apply import (
    UndoneError,
    carry_out,
    prepare,
)
from ansible_collections.crossover.lab.plugins.module_utils.cipso_declared import (
    parse_pairs,
    read_declaration,
    show_pairs,
)
from ansible_collections.crossover.lab.plugins.module_utils.cipso_host import (
    CipsoError,
    Finished,
    Host,
    apply_commands,
    refusal,
)
from ansible_collections.crossover.lab.plugins.module_utils.cipso_items import (
    canonical,
    dump_record,
    items_of,
    load_record,
    rollback_operations,
)
from ansible_collections.crossover.lab.plugins.module_utils.kernel_state.declared import (
    DeclarationError,
)
from ansible_collections.crossover.lab.plugins.module_utils.management import Ancestry
from ansible_collections.crossover.lab.plugins.module_utils.netlabel_plan import (
    Doi,
    MapEntry,
    NetlabelState,
    StaticLabel,
    Unlabelled,
    plan,
)

from .netlabel_kernel import Kernel, RefusedError
from .netlabelctl_stand_in import Netlabelctl

LABEL = "system_u:object_r:netlabel_peer_t:s0"
FRESH = NetlabelState((), (MapEntry(None, None, None, "unlbl"),), Unlabelled(True))
FOREIGN = Doi(99, "pass", (2,))
DOI = {"number": 16, "type": "trans", "tags": [1], "levels": "0-16", "categories": "0-256"}
MAPS = [
    {"address": "0.0.0.0/0", "protocol": "unlbl"},
    {"address": "::/0", "protocol": "unlbl"},
    {"address": "198.18.0.0/24", "protocol": "cipso", "doi": 16},
]


def items(state):
    """A state without an order."""
    return items_of(canonical(state), {})


def nothing():
    """No guard fires."""


class Machine:
    """A host: the kernel's model, its parameters, a guard whose timer never fires by itself."""

    def __init__(self, folder, monkeypatch, state=FRESH):
        self.kernel = Kernel(state)
        self.tool = Netlabelctl(self.kernel)
        self.sysctls = folder / "ipv4"
        self.sysctls.mkdir()
        for name, value in (
            ("cipso_cache_enable", 1),
            ("cipso_cache_bucket_size", 10),
            ("cipso_rbm_optfmt", 0),
            ("cipso_rbm_strictvalid", 1),
        ):
            (self.sysctls / name).write_text(f"{value}\n")
        self.armed = []
        self.host = Host(
            self.tool, folder / "run" / "cipso.json", self.sysctls, folder / "run" / "guard"
        )

        def arm(token, timeout, operations, folder, systemd):
            self.armed.append((timeout, operations))
            return guard.prepare(token, timeout, operations, folder)

        def undo(armed):
            for operation in self.operations:
                self.perform(operation)
            guard.forget(armed)
            return ()

        monkeypatch.setattr(guard, "arm", arm)
        monkeypatch.setattr(guard, "roll_back", undo)
        monkeypatch.setattr(cipso_apply, "find_ancestry", lambda: Ancestry("203.0.113.7", ()))

    @property
    def operations(self):
        return self.armed[-1][1]

    def perform(self, operation):
        if isinstance(operation, guard.Command):
            try:
                self.kernel.run([operation.argv])
            except RefusedError as error:
                if not operation.tolerate or error.args[0] != "ENOENT":
                    raise
        elif isinstance(operation, guard.WriteFile):
            path = self.host.record.parent
            path.mkdir(parents=True, exist_ok=True)
            with open(operation.path, "w") as handle:
                handle.write(operation.content)
        else:
            self.host.record.unlink(missing_ok=True)

    def task(self, check=False, **parameters):
        given_ = {"state": "present", "exclusive": False, **parameters}
        change = prepare(given_, self.host)
        self.tool.calls.clear()
        if check:
            return change.result()
        result = carry_out(change, {"token": None, "timeout": 20}, self.host)
        assert self.tool.calls == [tuple(argv) for argv in result["commands"]]
        # The controller confirms.
        for own in self.host.guards.glob("*"):
            guard.forget(guard.Armed("", 0, "", str(own / "script")))
        return result

    def sysctl(self, name):
        return int((self.sysctls / name).read_text())


@pytest.fixture
def machine(tmp_path, monkeypatch):
    return Machine(tmp_path, monkeypatch)


def test_the_declared_state_is_put_on_the_host_and_rests(machine):
    first = machine.task(dois=[DOI], maps=MAPS, sysctls={"cipso_cache_enable": 0})
    assert first["changed"]
    assert first["commands"][0][:6] == [
        "netlabelctl", "cipso", "add", "trans", "doi:16", "tags:1",
    ]  # fmt: skip
    assert first["sysctls_written"] == {"cipso_cache_enable": 0}
    assert first["guard"]["timeout"] == 20
    assert first["state"] == {
        "dois": [
            {
                "number": 16,
                "protocol": "cipso",
                "type": "trans",
                "tags": [1],
                "levels": "0-16",
                "categories": "0-256",
            }
        ],
        "maps": ["default 0.0.0.0/0 unlbl", "default 198.18.0.0/24 cipso,16", "default ::/0 unlbl"],
        "sysctls": {
            "cipso_cache_bucket_size": 10,
            "cipso_cache_enable": 0,
            "cipso_rbm_optfmt": 0,
            "cipso_rbm_strictvalid": 1,
        },
    }
    again = machine.task(dois=[DOI], maps=MAPS, sysctls={"cipso_cache_enable": 0})
    assert (again["changed"], again["commands"], again["guard"]) == (False, [], None)
    assert again["diff"]["before"] == again["diff"]["after"] == first["diff"]["after"]


def test_check_mode_foretells_the_change_and_makes_none(machine):
    foretold = machine.task(check=True, dois=[DOI], maps=MAPS)
    assert machine.kernel.state() == FRESH
    assert not machine.armed
    assert not machine.host.record.exists()
    done = machine.task(dois=[DOI], maps=MAPS)
    for key in ("changed", "commands", "diff", "state", "foreign", "sysctls_written"):
        assert foretold[key] == done[key]


def test_removal_leaves_the_host_as_it_was(machine):
    machine.task(dois=[DOI], maps=MAPS, sysctls={"cipso_rbm_strictvalid": 0})
    gone = machine.task(state="absent")
    assert gone["changed"]
    assert machine.kernel.state() == FRESH
    assert machine.sysctl("cipso_rbm_strictvalid") == 1
    assert not machine.host.record.exists()
    assert not machine.task(state="absent")["changed"]


def test_removal_finds_things_removed_by_others(machine):
    machine.task(dois=[DOI], maps=MAPS)
    machine.kernel.run(
        [
            ("netlabelctl", "map", "del", "default"),
            ("netlabelctl", "map", "add", "default", "protocol:unlbl"),
            ("netlabelctl", "cipso", "del", "doi:16"),
        ]
    )
    assert not machine.task(state="absent")["changed"]
    assert not machine.host.record.exists()


def test_what_is_declared_no_more_goes_back(machine):
    machine.task(dois=[DOI], maps=MAPS, sysctls={"cipso_cache_enable": 0})
    second = machine.task(dois=[DOI], maps=MAPS)
    assert second["sysctls_written"] == {"cipso_cache_enable": 1}
    third = machine.task()
    assert third["changed"]
    assert machine.kernel.state() == FRESH


def test_parameters_alone_are_set_without_a_guard(machine):
    result = machine.task(sysctls={"cipso_cache_enable": 0})
    assert result["changed"]
    assert result["guard"] is None
    assert not machine.armed
    assert list(machine.host.guards.iterdir()) == []


def test_what_others_added_is_left_alone_and_told(tmp_path, monkeypatch):
    state = NetlabelState(
        (FOREIGN,),
        (*FRESH.maps, MapEntry("other_t", None, 4, "cipso", 99)),
        Unlabelled(True, (StaticLabel("eth9", "192.0.2.0/24", LABEL),)),
    )
    machine = Machine(tmp_path, monkeypatch, state)
    result = machine.task(dois=[DOI], maps=MAPS, unlabelled={"accept": True})
    assert result["foreign"] == ["cipso DOI 99"]
    assert FOREIGN in machine.kernel.state().dois
    machine.task(state="absent")
    assert items(machine.kernel.state()) == items(state)


def test_exclusive_removes_what_others_added_and_removal_brings_it_back(tmp_path, monkeypatch):
    state = NetlabelState(
        (FOREIGN,), (*FRESH.maps, MapEntry("other_t", None, 4, "cipso", 99)), Unlabelled(True)
    )
    machine = Machine(tmp_path, monkeypatch, state)
    result = machine.task(dois=[DOI], maps=MAPS, exclusive=True)
    assert result["foreign"] == []
    assert [doi.number for doi in machine.kernel.state().dois] == [16]
    machine.task(state="absent")
    assert items(machine.kernel.state()) == items(state)


def test_exclusive_removal_leaves_the_defaults_of_the_kernel(tmp_path, monkeypatch):
    labelled = NetlabelState(
        (FOREIGN,),
        (MapEntry(None, "0.0.0.0/0", 4, "cipso", 99), MapEntry(None, "::/0", 6, "unlbl")),
        Unlabelled(False, (StaticLabel("eth9", "192.0.2.0/24", LABEL),)),
    )
    machine = Machine(tmp_path, monkeypatch, labelled)
    (machine.sysctls / "cipso_cache_enable").write_text("0\n")
    machine.task(state="absent", exclusive=True)
    assert machine.kernel.state() == FRESH
    assert machine.sysctl("cipso_cache_enable") == 1


def test_a_changed_doi_of_others_comes_back_on_removal(tmp_path, monkeypatch):
    theirs = NetlabelState((Doi(16, "pass", (1,)),), FRESH.maps, Unlabelled(True))
    machine = Machine(tmp_path, monkeypatch, theirs)
    machine.task(dois=[DOI], maps=MAPS)
    assert machine.kernel.state().dois[0].kind == "trans"
    machine.task(state="absent")
    assert machine.kernel.state() == theirs


def test_a_map_may_use_a_doi_of_others(tmp_path, monkeypatch):
    theirs = NetlabelState((FOREIGN,), FRESH.maps, Unlabelled(True))
    machine = Machine(tmp_path, monkeypatch, theirs)
    machine.task(maps=[*MAPS[:2], {"address": "198.18.0.0/24", "protocol": "cipso", "doi": 99}])
    assert machine.kernel.state().maps[-1].doi == 99


@pytest.mark.parametrize("fail_at", range(5))
def test_a_step_that_fails_half_way_is_undone(machine, fail_at):
    machine.task(sysctls={"cipso_rbm_optfmt": 1})
    before = (machine.kernel.state(), machine.host.record.read_text())
    machine.tool.fail_at = fail_at
    with pytest.raises(UndoneError) as error:
        machine.task(dois=[DOI], maps=MAPS, sysctls={"cipso_cache_enable": 0})
    assert "invalid argument or parameter" in str(error.value)
    assert str(error.value).endswith("; undone")
    assert (machine.kernel.state(), machine.host.record.read_text()) == before
    assert (machine.sysctl("cipso_cache_enable"), machine.sysctl("cipso_rbm_optfmt")) == (1, 1)


def test_a_parameter_that_does_not_take_is_an_error(machine, monkeypatch):
    monkeypatch.setattr(cipso_apply, "write_sysctls", lambda wanted, folder: None)
    monkeypatch.setattr(guard, "roll_back", lambda armed: ())
    with pytest.raises(UndoneError) as error:
        machine.task(sysctls={"cipso_cache_enable": 0})
    assert str(error.value) == "net.ipv4.cipso_cache_enable wanted 0, is 1; undone"


def test_a_change_that_is_slower_than_its_guard_stops(machine, monkeypatch):
    def fire(argv):
        if len(machine.tool.calls) == 2:
            (next(machine.host.guards.iterdir()) / "claimed").mkdir(exist_ok=True)
        return machine.tool(argv)

    machine.host = replace(machine.host, runner=fire)
    with pytest.raises(UndoneError) as error:
        machine.task(dois=[DOI], maps=MAPS)
    assert str(error.value) == (
        "the guard's 20 s were over before the change was complete; wanted a longer "
        "guard.timeout or a host with less to do; undone"
    )
    assert error.value.fired
    assert len(machine.tool.calls) < 5
    assert machine.kernel.state() == FRESH


def test_what_could_not_be_undone_is_said(machine, monkeypatch):
    machine.tool.fail_at = 0
    monkeypatch.setattr(guard, "roll_back", lambda armed: ("map del default: busy",))
    with pytest.raises(UndoneError) as error:
        machine.task(dois=[DOI], maps=MAPS)
    assert str(error.value).endswith("; undoing it failed in part: map del default: busy")
    assert error.value.left == ("map del default: busy",)


def test_a_parameter_that_the_kernel_lacks_is_named(machine):
    (machine.sysctls / "cipso_cache_enable").unlink()
    monkey = [guard.WriteFile(str(machine.sysctls / "x"), "1")]
    machine.armed.append((0, monkey))
    with pytest.raises(UndoneError, match=r"net\.ipv4\.cipso_cache_enable: this kernel has no"):
        machine.task(sysctls={"cipso_cache_enable": 0})


@pytest.mark.parametrize(
    ("parameters", "text"),
    [
        ({"dois": [{**DOI, "levels": "0-"}]}, "dois[0] (DOI 16).levels: '0-', wanted N, N-M"),
        ({"dois": [{**DOI, "levels": "5-2"}]}, "'5-2', wanted the lower number first"),
        ({"dois": [{**DOI, "categories": "1,0-3"}]}, "'0-3' gives 1 a second time"),
        ({"dois": [{**DOI, "type": "pass"}]}, "(DOI 16).levels: pass takes no translation"),
        ({"dois": [{**DOI, "tags": [1, 5]}]}, "tag 5, trans takes tag 1 only (2 and 5 need"),
        ({"dois": [{**DOI, "number": 0}]}, "number: 0, wanted 1 to 4294967295"),
        ({"dois": [{**DOI, "levels": ""}]}, "levels: empty, trans needs at least one level"),
        ({"dois": [DOI, DOI]}, "dois[1] (DOI 16).number: declared a second time"),
        ({"dois": [{"number": 7, "type": "local", "protocol": "calipso"}]},
         "dois[0] (DOI 7).type: local, CALIPSO knows pass only"),
        ({"maps": MAPS}, "refers to cipso DOI 16, which is not declared"),
        ({"dois": [DOI], "maps": MAPS[1:]}, "maps: default has no 0.0.0.0/0 mapping"),
        ({"dois": [DOI], "maps": [*MAPS, {"address": "2001:db8::/32", "protocol": "cipso",
          "doi": 16}]}, "maps[3].address: 2001:db8::/32 for cipso, wanted an IPv4 network"),
        ({"dois": [DOI], "maps": [*MAPS, {"address": "203.0.113.0/24", "protocol": "cipso",
          "doi": 16}]}, "covers the management address 203.0.113.7; map it to unlbl"),
        ({"unlabelled": {"accept": False}}, "unlabelled.accept: off drops every unlabelled packet"),
        ({"unlabelled": {"static": [{"address": "192.0.2.0/24", "label": "s0"}]}},
         "unlabelled.static[0].label: "),
        ({"sysctls": {"cipso_cache_enable": 2}}, "sysctls.cipso_cache_enable: 2, wanted 0 or 1"),
        ({"sysctls": {"cipso_cache_bucket_size": -1}}, "wanted 0 or more"),
    ],
)  # fmt: skip
def test_a_wrong_declaration_is_refused_before_anything_changes(machine, parameters, text):
    with pytest.raises(DeclarationError) as error:
        machine.task(**parameters)
    assert text in str(error.value)
    assert machine.kernel.state() == FRESH
    assert not machine.armed


def test_protection_of_the_management_address_can_be_given_or_switched_off(machine):
    wide = [*MAPS, {"address": "192.0.2.0/24", "protocol": "cipso", "doi": 16}]
    with pytest.raises(DeclarationError, match=r"management address 192\.0\.2\.9"):
        machine.task(dois=[DOI], maps=wide, management=["::ffff:192.0.2.9"])
    assert machine.task(dois=[DOI], maps=wide, management=[])["changed"]


def test_a_policy_that_would_cut_ssh_is_refused(machine, monkeypatch):
    context = "system_u:system_r:sshd_t:s0"
    monkeypatch.setattr(cipso_apply, "find_ancestry", lambda: Ancestry("203.0.113.7", (context,)))
    monkeypatch.setattr(cipso_apply, "refused_contexts", lambda contexts: contexts)
    with pytest.raises(CipsoError, match=f"enforcing and lets {context} receive nothing from"):
        machine.task(dois=[DOI], maps=MAPS)
    assert machine.task(sysctls={"cipso_cache_enable": 0})["changed"]


def test_an_earlier_rollback_is_told_as_a_warning(machine):
    own = machine.host.guards / "0123456789ab"
    own.mkdir(parents=True)
    (own / "fired").touch()
    change = prepare({"state": "present", "exclusive": False}, machine.host)
    assert "never confirmed and has been rolled back" in change.warnings[0]


# --- the way back, from wherever the change stopped ---------------------------------------------

NETWORKS = ("192.0.2.0/24", "198.51.100.0/24")


@st.composite
def states(draw):
    dois = draw(
        st.lists(
            st.builds(
                Doi,
                st.integers(1, 3),
                st.just("pass"),
                st.sampled_from([(1,), (2,), (1, 5)]),
            ),
            max_size=3,
            unique_by=lambda doi: doi.number,
        )
    )
    maps = []
    for domain in (None, "one_t", "two_t"):
        networks = draw(st.sets(st.sampled_from(NETWORKS))) if dois else set()
        if networks:
            maps += [
                MapEntry(domain, "0.0.0.0/0", 4, "unlbl"),
                MapEntry(domain, "::/0", 6, "unlbl"),
            ]
            maps += [
                MapEntry(domain, network, 4, "cipso", draw(st.sampled_from(dois)).number)
                for network in sorted(networks)
            ]
        elif domain is None:
            maps.append(MapEntry(None, None, None, "unlbl"))
    static = draw(st.lists(st.sampled_from(NETWORKS), unique=True))
    return NetlabelState(
        tuple(dois),
        tuple(maps),
        Unlabelled(draw(st.booleans()), tuple(StaticLabel("eth1", net, LABEL) for net in static)),
    )


@given(states(), states(), st.data())
def test_the_rollback_leads_back_from_every_point(before, wanted, data):

    steps = plan(before, wanted).commands
    done = data.draw(st.integers(0, len(steps)))
    kernel = Kernel(before)
    kernel.run(steps[:done])
    present, target = (items(state) for state in (before, wanted))
    for operation in rollback_operations(present, target, "/run/record", "", "/sys"):
        if not isinstance(operation, guard.Command):
            continue
        try:
            kernel.run([operation.argv])
        except RefusedError as error:
            if not operation.tolerate or error.args[0] != "ENOENT":
                raise
    assert items(kernel.state()) == present


@given(states())
def test_a_record_survives_its_file(state):
    record = {**items_of(canonical(state), {"cipso_cache_enable": 1}), ("doi", "cipso", 9): None}
    assert load_record(dump_record(record)) == record


@pytest.mark.parametrize("text", ["[]", "{}", "no", json.dumps({"version": 2, "items": []})])
def test_a_record_of_another_kind_is_an_error(machine, text):
    machine.host.record.parent.mkdir(parents=True)
    machine.host.record.write_text(text)
    with pytest.raises(CipsoError, match=r"cipso\.json: "):
        machine.task()


# --- small things -------------------------------------------------------------------------------


@given(st.dictionaries(st.integers(0, 300), st.integers(0, 300)))
def test_pairs_survive_their_short_form(table):
    assert parse_pairs(show_pairs(table), "x") == table


def test_short_forms_are_short():
    assert show_pairs({number: number for number in range(257)}) == "0-256"
    assert show_pairs({0: 0, 1: 3, 2: 2}) == "0,1=3,2"
    assert parse_pairs(" 0=0, 1=1 ", "x") == {0: 0, 1: 1}


def test_undeclared_stays_undeclared():
    state, sysctls = read_declaration({"dois": [{"number": 100, "type": "local"}]})
    assert state.unlabelled is None
    assert sysctls == {}
    assert state.dois[0].tags == (128,)


def test_a_doi_in_use_is_tried_again_and_then_names_its_mappings():
    busy = Finished(1, "", "netlabelctl: error, Device or resource busy\n")
    answers, pauses = [busy] * 4, []

    def runner(argv):
        if argv[2] == "list":
            return Finished(0, 'domain:"one_t",CIPSOv4,16 domain:DEFAULT,UNLABELED\n', "")
        return answers.pop()

    with pytest.raises(CipsoError) as error:
        apply_commands([("netlabelctl", "cipso", "del", "doi:16")], runner, nothing, pauses.append)
    assert str(error.value).endswith("; used by domains one_t")
    assert pauses == [1.0, 1.0, 1.0]

    answers[:] = [Finished(0, "", ""), busy]
    apply_commands([("netlabelctl", "cipso", "del", "doi:16")], runner, nothing, pauses.append)
    assert answers == []


def test_deleting_what_is_gone_is_no_error():
    missing = Finished(1, "", "netlabelctl: error, entry does not exist\n")
    apply_commands([("netlabelctl", "cipso", "del", "doi:16")], lambda argv: missing, nothing)
    with pytest.raises(CipsoError, match="entry does not exist"):
        apply_commands(
            [("netlabelctl", "map", "add", "default", "protocol:cipso,16")],
            lambda argv: missing,
            nothing,
        )


def test_a_network_namespace_is_told_what_is_wanted():
    done = Finished(1, "", "netlabelctl: error, failed to initialize the NetLabel library\n")
    assert str(refusal(("netlabelctl", "cipso", "list"), done)) == (
        "CIPSO needs the initial network namespace of a kernel with NetLabel: real hosts or VMs "
        "(netlabelctl: failed to initialize the NetLabel library)"
    )


def test_a_host_without_netlabelctl_is_told_what_is_wanted(monkeypatch):
    from ansible_collections.crossover.lab.plugins.module_utils import cipso_host

    monkeypatch.setattr(cipso_host, "SEARCH", "/nonexistent")
    with pytest.raises(CipsoError) as error:
        cipso_host.run(("netlabelctl", "cipso", "list"))
    assert str(error.value) == "netlabelctl: not installed; wanted the package netlabel-tools"
