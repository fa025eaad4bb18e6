"""IPsec: what is refused, and plans that arrive, rest, go back and show no key."""

import contextlib
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.crossover.lab.plugins.module_utils.kernel_state.xfrm import (
    Algorithm,
    Limits,
    Mark,
    Offload,
    Policy,
    Secret,
    Selector,
    State,
    Template,
    Vault,
    state_id,
)
from ansible_collections.crossover.lab.plugins.module_utils.kernel_state.xfrm_check import (
    spi_conflicts,
)
from ansible_collections.crossover.lab.plugins.module_utils.kernel_state.xfrm_policy import (
    parse_policies,
)
from ansible_collections.crossover.lab.plugins.module_utils.kernel_state.xfrm_state import (
    parse_states,
)
from ansible_collections.crossover.lab.plugins.module_utils.xfrm_plan import (
    IpsecState,
    Management,
    MissingKeyError,
    Owned,
    diff,
    plan,
    restore,
    validate,
)

from .xfrm_kernel import Kernel, RefusedError

GCM = Algorithm("aead", "rfc4106(gcm(aes))", None, 128)
CBC = Algorithm("enc", "cbc(aes)")
SHA256 = Algorithm("auth-trunc", "hmac(sha256)", None, 128)
NULL = (Algorithm("enc", "ecb(cipher_null)", 0), Algorithm("auth-trunc", "digest_null", 0, 0))
CONTEXT = "unconfined_u:unconfined_r:unconfined_t:s0-s0:c0.c1023"
OURS = Owned(reqids=((100, 199),))
KEY_BYTES = {
    "rfc4106(gcm(aes))": 20,
    "rfc7539esp(chacha20,poly1305)": 36,
    "cbc(aes)": 16,
    "hmac(sha1)": 20,
    "hmac(sha256)": 32,
}


def key(length, fill=0xA5):
    return Secret("0x" + f"{fill:02x}" * length)


def sa(spi=0x1000, algorithms=(GCM,), **changes):
    state = State("192.0.2.1", "192.0.2.2", "esp", spi, 100, "transport", 32, algorithms=algorithms)
    return replace(state, **changes)


def policy(**changes):
    template = Template("0.0.0.0", "0.0.0.0", "esp", 100, "transport")
    base = Policy(Selector("192.0.2.1/32", "192.0.2.2/32", "tcp"), "out", 10, templates=(template,))
    return replace(base, **changes)


def ipsec(*states, policies=(), fill=0xA5):
    keys = Vault()
    for state in states:
        for item in state.algorithms:
            if item.name in KEY_BYTES:
                keys.put(state_id(state), item.kind, key(KEY_BYTES[item.name], fill))
    return IpsecState(states, tuple(policies), keys)


def read(kernel):
    keys = Vault()
    states = parse_states(kernel.list_states(), keys)
    return IpsecState(states, parse_policies(kernel.list_policies()), keys)


def test_a_transport_pair_becomes_a_batch():
    declared = ipsec(sa(context=CONTEXT), policies=[policy(context=CONTEXT)])
    assert validate(declared, (Management("198.51.100.1"),)) == []
    assert plan(IpsecState(), declared, OURS).batch() == (
        "xfrm state add src 192.0.2.1 dst 192.0.2.2 proto esp spi 0x1000 reqid 100 mode transport "
        f"replay-window 32 aead rfc4106(gcm(aes)) 0x{'a5' * 20} 128 ctx {CONTEXT}\n"
        f"xfrm policy add src 192.0.2.1/32 dst 192.0.2.2/32 proto 6 dir out ctx {CONTEXT} "
        "action allow priority 10 tmpl src 0.0.0.0 dst 0.0.0.0 proto esp reqid 100 mode "
        "transport level required\n"
    )


def test_sas_come_before_their_policies_and_go_after_them():
    declared = ipsec(sa(), policies=[policy()])
    kernel = Kernel()
    kernel.run(plan(IpsecState(), declared, OURS).batch())
    steps = plan(read(kernel), IpsecState(), OURS)
    assert [(item.verb, item.what) for item in steps.operations] == [
        ("delete", "policy"),
        ("delete", "sa"),
    ]
    assert steps.irreversible == ()


def test_foreign_sas_and_policies_are_left_alone():
    foreign = ipsec(sa(0x2000, reqid=7), policies=[policy(templates=(), action="block")])
    assert plan(foreign, IpsecState(), OURS).operations == ()
    taken = Owned(spis=frozenset({0x2000}))
    assert [item.name for item in plan(foreign, IpsecState(), taken).operations] == [
        "esp spi 0x2000 to 192.0.2.2"
    ]


def test_a_changed_key_replaces_the_sa_and_shows_nothing_of_it():
    kernel = Kernel()
    kernel.run(plan(IpsecState(), ipsec(sa()), OURS).batch())
    declared = ipsec(sa(), fill=0x5A)
    steps = plan(read(kernel), declared, OURS)
    assert [(item.verb, item.why) for item in steps.operations] == [("update", ("key",))]
    shown = repr(steps.operations) + repr(steps) + repr(declared)
    shown += repr(diff(read(kernel), declared, OURS))
    assert "5a5a" not in shown
    assert "a5a5" not in shown
    assert diff(read(kernel), declared, OURS)["after"]["sas"]["esp spi 0x1000 to 192.0.2.2"][
        "key"
    ] == ("changed")
    kernel.run(steps.batch())
    assert plan(read(kernel), declared, OURS).operations == ()


def test_without_the_old_key_a_rollback_says_what_it_cannot_restore():
    kernel = Kernel()
    kernel.run(plan(IpsecState(), ipsec(sa()), OURS).batch())
    blind = replace(read(kernel), keys=Vault())
    assert plan(blind, ipsec(sa(mode="tunnel")), OURS).irreversible == (
        "esp spi 0x1000 to 192.0.2.2",
    )
    assert plan(blind, ipsec(sa()), OURS).operations == ()


def test_what_was_done_before_a_refused_line_is_undone():
    kernel = Kernel()
    declared = ipsec(sa(), sa(0x1001), policies=[policy()])
    with pytest.raises(RefusedError):
        kernel.run(plan(IpsecState(), declared, OURS).batch(), stop_at=3)
    refused = plan(read(kernel), declared, OURS).operations[0]
    assert (refused.verb, refused.what) == ("add", "policy")
    kernel.run(restore(read(kernel), IpsecState(), declared).batch())
    assert (kernel.sas, kernel.policies) == ({}, {})


def test_a_declared_sa_without_a_key_is_never_half_written():
    with pytest.raises(MissingKeyError, match="no key for aead of esp spi 0x1000"):
        plan(IpsecState(), IpsecState((sa(),)), OURS)


def test_an_sa_that_makes_room_goes_first():
    kernel = Kernel()
    kernel.run(plan(IpsecState(), ipsec(sa()), OURS).batch())
    declared = ipsec(sa(mark=Mark(5)))
    kernel.run(plan(read(kernel), declared, OURS).batch())
    assert plan(read(kernel), declared, OURS).operations == ()


def test_words_that_could_end_a_line_never_get_into_one():
    with pytest.raises(ValueError, match="cannot stand in a line"):
        plan(IpsecState(), ipsec(sa(context="a:b:c\nxfrm state flush")), OURS)


@pytest.mark.parametrize(
    ("states", "error"),
    [
        ((sa(3, mark=Mark(0x155F3E00)), sa(3, mark=Mark(0x155F3E00), src="192.0.2.100")),
         "SPI 0x3 used twice for 192.0.2.2 esp"),
        ((sa(3), sa(3, mark=Mark(5))), "SPI 0x3 used twice"),
        ((sa(3, mark=Mark(5)), sa(3)), "SPI 0x3 used twice"),
        ((sa(3, mark=Mark(0x15, 0xFF)), sa(3, mark=Mark(5, 0xF))), "SPI 0x3 used twice"),
        ((sa(0),), "sas[0] (esp spi 0x0 to 192.0.2.2).spi: 0, wanted 1"),
        ((sa(dst="2001:db8::1"),), "wanted one address family"),
        ((sa(dst="host"),), "dst: 'host', wanted an address"),
        ((sa(proto="comp"),), "proto: 'comp', wanted esp or ah"),
        ((sa(mode="ro"),), "mode: 'ro', wanted transport, tunnel or beet"),
        ((sa(flags=("esn",), replay_window=0),), "replay_window: 0 with esn, wanted 1 to 4096"),
        ((sa(replay_window=5000),), "replay_window: 5000, wanted 0 to 4096"),
        ((sa(selector=Selector("2001:db8::/64", "2001:db8::/64")),), "wanted one address family"),
        ((sa(algorithms=()),), "algorithms: none, wanted aead, or enc"),
        ((sa(algorithms=(GCM, CBC)),), "algorithms: aead, enc, wanted aead, or enc"),
        ((sa(algorithms=(CBC,), proto="ah"),), "algorithms: enc, wanted auth-trunc for ah"),
        ((sa(algorithms=(Algorithm("enc", "rot13"),)),), "enc: 'rot13', wanted one of cbc(aes)"),
        ((sa(algorithms=(replace(GCM, bits=100),)),), "integrity value of 100 bits"),
        ((sa(context="s0:c1"),), "ctx: context 's0:c1'"),
        ((sa(offload=Offload("eth0;x", "up")),), "offload.dev: 'eth0;x'"),
        ((sa(offload=Offload("eth0", "up")),), "offload.dir: 'up', wanted in or out"),
        ((sa(mark=Mark(1 << 40)),), "wanted 32-bit numbers"),
    ],
)  # fmt: skip
def test_errors_of_sas_name_item_and_key(states, error):
    assert any(error in text for text in validate(ipsec(*states))), validate(ipsec(*states))


@pytest.mark.parametrize(
    ("algorithm", "length", "error"),
    [
        (GCM, 16, "aead: key of 16 bytes for rfc4106(gcm(aes)), wanted 20 or 28 or 36"),
        (GCM, 36, None),
        (Algorithm("aead", "rfc7539esp(chacha20,poly1305)", None, 128), 36, None),
        (Algorithm("aead", "rfc7539esp(chacha20,poly1305)", None, 128), 32, "wanted 36"),
        (CBC, 0, "enc: key of 0 bytes for cbc(aes), wanted 16 or 24 or 32"),
    ],
)
def test_keys_have_the_length_of_their_algorithm(algorithm, length, error):
    keys = Vault()
    state = sa(algorithms=(algorithm,))
    if length:
        keys.put(state_id(state), algorithm.kind, key(length))
    found = validate(IpsecState((state,), (), keys))
    assert found == [] if error is None else error in found[0]
    assert "a5a5" not in " ".join(found)


def test_keys_given_as_text_are_refused_without_repeating_them():
    keys = Vault()
    state = sa(algorithms=(replace(SHA256, name="hmac(sha1)", bits=96), CBC))
    keys.put(state_id(state), "auth-trunc", Secret("0123456789012345"))
    keys.put(state_id(state), "enc", key(16))
    found = validate(IpsecState((state,), (), keys))
    assert found == [
        "sas[0] (esp spi 0x1000 to 192.0.2.2).auth-trunc: the key is not 0x and pairs of "
        "hexadecimal digits"
    ]


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"selector": Selector("198.51.100.0/24", "192.0.2.2/32")}, "covers the management"),
        ({"selector": Selector("0.0.0.0/0", "0.0.0.0/0"), "direction": "in"}, "covers the manage"),
        ({"selector": Selector("0.0.0.0/0", "192.0.2.0/24", "udp")}, None),
        ({"selector": Selector("0.0.0.0/0", "192.0.2.0/24", "tcp", None, 12865)}, None),
        ({"selector": Selector("0.0.0.0/0", "0.0.0.0/0", "tcp", 22)}, "address 198.51.100.1 port"),
        ({"selector": Selector("0.0.0.0/0", "0.0.0.0/0"), "templates": ()}, None),
        ({"selector": Selector("0.0.0.0/0", "0.0.0.0/0"), "templates": (), "action": "block"},
         "covers the management address 198.51.100.1"),
        ({"selector": Selector("192.0.2.1/32", "2001:db8::/64")}, "wanted one address family"),
        ({"selector": Selector("192.0.2.1/32", "192.0.2.2/32", None, 5)}, "ports need one"),
        ({"selector": Selector("192.0.2.1/32", "192.0.2.2/32", dev="a b")}, "selector.dev"),
        ({"direction": "up"}, "dir: 'up', wanted in, out or fwd"),
        ({"action": "drop"}, "action: 'drop', wanted allow or block"),
        ({"context": "x"}, "ctx: context 'x'"),
        ({"templates": (Template("0.0.0.0", "0.0.0.0", "esp", 1, "tunnel"),)},
         "tmpl[0].dst: 0.0.0.0, a tunnel needs its end's address"),
        ({"templates": (Template("2001:db8::1", "2001:db8::2", "esp", 1, "tunnel"),)}, None),
        ({"templates": (Template("::", "::", "esp", 1, "transport"),)}, "wanted one address fam"),
        ({"templates": (Template("0.0.0.0", "0.0.0.0", "esp", 1, "ro"),)}, "tmpl[0].mode: 'ro'"),
        ({"templates": (Template("0.0.0.0", "0.0.0.0", "esp", 1, "transport", None, "must"),)},
         "tmpl[0].level: 'must'"),
    ],
)  # fmt: skip
def test_errors_of_policies_name_item_and_key(changes, error):
    declared = IpsecState((), (policy(**changes),))
    found = validate(declared, (Management("198.51.100.1"),))
    assert found == [] if error is None else any(error in text for text in found), found


def test_a_policy_twice_is_refused():
    assert "the same as policies[0]" in validate(IpsecState((), (policy(), policy())))[0]


# --- plans on a model of the kernel -------------------------------------------------------------

ALGORITHMS = st.sampled_from(
    [
        (GCM,),
        (Algorithm("aead", "rfc7539esp(chacha20,poly1305)", None, 128),),
        (CBC, SHA256),
        (CBC, Algorithm("auth-trunc", "hmac(sha1)", None, 96)),
        NULL,
    ]
)
CONTEXTS = st.sampled_from([None, CONTEXT, "system_u:object_r:ipsec_spd_t:s0"])
LIMITS = st.sampled_from([None, Limits(), Limits(soft_bytes=10**9, hard_add_s=3600)])


@st.composite
def sets(draw):
    """Sets that validate() accepts, in IPv4 and IPv6, transport and tunnel."""
    states, policies = [], []
    for spi in sorted(draw(st.sets(st.integers(0x1000, 0x1005)))):
        six = draw(st.booleans())
        ends = ("2001:db8::1", "2001:db8::2") if six else ("192.0.2.1", "192.0.2.2")
        esn = draw(st.booleans())
        states.append(
            State(
                *draw(st.permutations(ends)), "esp", spi, draw(st.sampled_from([100, 101])),
                draw(st.sampled_from(["transport", "tunnel"])),
                draw(st.sampled_from([1, 32, 128, 300])) if esn else draw(st.sampled_from([0, 32])),
                flags=("esn",) if esn else (), algorithms=draw(ALGORITHMS),
                mark=draw(st.sampled_from([None, Mark(5), Mark(1, 0xF)])),
                if_id=draw(st.sampled_from([None, 7])), limits=draw(LIMITS),
                selector=draw(st.sampled_from(
                    [None, Selector(f"{ends[0]}/{128 if six else 32}", "::/0" if six else
                                    "0.0.0.0/0", "tcp")])),
                context=draw(CONTEXTS),
            )
        )  # fmt: skip
    for direction in draw(st.sets(st.sampled_from(["in", "out", "fwd"]))):
        for context in draw(st.sets(CONTEXTS, min_size=1)):
            policies.append(
                policy(
                    direction=direction,
                    context=context,
                    priority=draw(st.integers(0, 3)),
                    limits=draw(LIMITS),
                    if_id=draw(st.sampled_from([None, 9])),
                )
            )
    return ipsec(*states, policies=policies, fill=draw(st.sampled_from([0xA5, 0x5A])))


@settings(deadline=None)
@given(sets(), sets())
def test_a_plan_arrives_rests_and_goes_back(first, second):
    assert validate(second) == []
    kernel = Kernel()
    kernel.run(plan(IpsecState(), first, OURS).batch())
    assert plan(read(kernel), first, OURS).operations == ()
    before = (kernel.list_states(), kernel.list_policies())
    steps = plan(read(kernel), second, OURS)
    kernel.run(steps.batch())
    assert plan(read(kernel), second, OURS).operations == ()
    assert len(kernel.sas) == len(second.states)
    assert len(kernel.policies) == len(second.policies)
    assert steps.irreversible == ()
    kernel.run(steps.rollback())
    assert sorted(kernel.list_states()) == sorted(before[0])
    assert sorted(kernel.list_policies()) == sorted(before[1])


@settings(deadline=None)
@given(sets(), sets(), st.data())
def test_a_plan_that_stops_anywhere_goes_back(first, second, data):
    kernel = Kernel()
    kernel.run(plan(IpsecState(), first, OURS).batch())
    before, seen = read(kernel), (sorted(kernel.list_states()), sorted(kernel.list_policies()))
    batch = plan(before, second, OURS).batch()
    stop = data.draw(st.integers(1, len(batch.splitlines()) + 1))
    with contextlib.suppress(RefusedError):
        kernel.run(batch, stop_at=stop)
    kernel.run(restore(read(kernel), before, second, OURS).batch())
    assert (sorted(kernel.list_states()), sorted(kernel.list_policies())) == seen


@settings(deadline=None)
@given(sets(), sets())
def test_no_key_shows_in_what_people_see(first, second):
    seen = repr(first) + repr(second) + repr(plan(first, second, OURS))
    seen += repr(diff(first, second, OURS))
    assert "a5a5" not in seen
    assert "5a5a" not in seen


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3), st.sampled_from([0, 1, 3])), max_size=6))
def test_conflicts_are_those_the_kernel_refuses_in_some_order(marks):
    states = [sa(9, mark=Mark(value, mask)) for value, mask in marks]
    refused = False
    for one in range(len(states)):
        for other in range(len(states)):
            if one != other:
                kernel = Kernel()
                kernel.run(plan(IpsecState(), ipsec(states[one]), OURS).batch())
                try:
                    kernel.run(plan(IpsecState(), ipsec(states[other]), OURS).batch())
                except RefusedError:
                    refused = True
    assert bool(spi_conflicts(states)) is refused


def test_thousands_of_sas_are_compared_one_by_one():
    states = [
        sa(0x1000 + at, src=f"10.0.{at >> 8}.{at & 255}", algorithms=NULL) for at in range(2_000)
    ]
    declared = IpsecState(tuple(states))
    kernel = Kernel()
    # The model's own search would be quadratic.
    kernel._found = lambda key: key if key in kernel.sas else None
    kernel.run(plan(IpsecState(), declared, OURS).batch())
    assert plan(read(kernel), declared, OURS).operations == ()
    changed = replace(declared, states=(*states[:-1], replace(states[-1], mode="tunnel")))
    assert len(plan(read(kernel), changed, OURS).operations) == 1
    assert validate(declared) == []
