"""Plans against the real kernel and the real ``ip``, in a network namespace of their own.

Needs no lab. What this machine's kernel lacks (ESP, an algorithm) is skipped with ip's own words.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator

import pytest

from ansible_collections.crossover.lab.plugins.module_utils.kernel_state.failures import (
    batch_failures,
)
from ansible_collections.crossover.lab.plugins.module_utils.kernel_state.xfrm import (
    Algorithm,
    Limits,
    Mark,
    Policy,
    Secret,
    Selector,
    State,
    Template,
    Vault,
    policy_id,
    state_id,
)
from ansible_collections.crossover.lab.plugins.module_utils.kernel_state.xfrm_policy import (
    parse_policies,
)
from ansible_collections.crossover.lab.plugins.module_utils.kernel_state.xfrm_stat import (
    growth,
    parse_xfrm_stat,
)
from ansible_collections.crossover.lab.plugins.module_utils.kernel_state.xfrm_state import (
    parse_states,
)
from ansible_collections.crossover.lab.plugins.module_utils.xfrm_plan import (
    IpsecState,
    Owned,
    XfrmPlan,
    plan,
    validate,
)

OURS = Owned(reqids=((100, 199),))


class Namespace:
    """A namespace held by a process that sleeps in it."""

    def __init__(self, unshare: list[str]) -> None:
        self._holder = subprocess.Popen(
            [*unshare, "sleep", "600"], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE
        )
        self._prefix = ["nsenter", "-t", str(self._holder.pid), "-n"]
        if os.geteuid() != 0:
            self._prefix[3:3] = ["-U", "--preserve-credentials"]

    def close(self) -> None:
        self._holder.kill()
        self._holder.communicate()

    def run(self, *argv: str, text: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*self._prefix, *argv],
            input=text,
            capture_output=True,
            text=True,
            timeout=60,
            env={**os.environ, "LC_ALL": "C"},
            check=False,
        )

    def apart(self) -> bool:
        """Whether the namespace is there and is not ours."""
        answer = self.run("readlink", "/proc/self/ns/net")
        return answer.returncode == 0 and answer.stdout.strip() != os.readlink("/proc/self/ns/net")

    def read(self) -> IpsecState:
        keys = Vault()
        states = parse_states(self.run("ip", "-s", "xfrm", "state").stdout, keys)
        return IpsecState(
            states, parse_policies(self.run("ip", "-s", "xfrm", "policy").stdout), keys
        )

    def apply(self, steps: XfrmPlan) -> None:
        done = self.run("ip", "-batch", "-", text=steps.batch())
        failures = batch_failures(done.stderr)
        if failures and failures[0][1].error_class in (
            "kernel_without_xfrm",
            "algorithm_not_allowed",
        ):
            pytest.skip(f"this kernel: {failures[0][1].text}")
        assert done.returncode == 0, done.stderr


@pytest.fixture
def namespace() -> Iterator[Namespace]:
    unshare = ["unshare", "-n"] if os.geteuid() == 0 else ["unshare", "-Urn"]
    held = Namespace(unshare)
    deadline = time.monotonic() + 10
    while not held.apart() and time.monotonic() < deadline:
        time.sleep(0.05)
    if not held.apart():
        held.close()
        pytest.skip("this machine lets nobody make a network namespace here")
    yield held
    held.close()


def template(mode: str = "transport", ends: tuple[str, str] = ("0.0.0.0", "0.0.0.0")) -> Template:
    return Template(*ends, "esp", 100, mode)


POLICIES = (
    Policy(
        Selector("192.0.2.1/32", "192.0.2.2/32", "tcp", None, 12865), "out", 10,
        templates=(template(),), limits=Limits(soft_bytes=10**9, hard_add_s=3600),
    ),
    Policy(Selector("192.0.2.2/32", "192.0.2.1/32", "udp"), "in", 10, templates=(template(),)),
    Policy(
        Selector("2001:db8:a::/64", "2001:db8:b::/64", "ipv6-icmp", 128, 0), "fwd", 5,
        templates=(template("tunnel", ("2001:db8::1", "2001:db8::2")),),
        mark=Mark(5, 0xFF), if_id=7,
    ),
    Policy(Selector("198.51.100.0/24", "203.0.113.0/24"), "out", 3, action="block"),
)  # fmt: skip


def owned_with_blocks() -> Owned:
    return Owned(OURS.reqids, policies=frozenset({policy_id(POLICIES[3])}))


def test_policies_are_added_found_changed_and_taken_back(namespace: Namespace) -> None:
    declared = IpsecState((), POLICIES)
    assert validate(declared) == []
    namespace.apply(plan(namespace.read(), declared, owned_with_blocks()))
    present = namespace.read()
    assert len(present.policies) == len(POLICIES)
    assert plan(present, declared, owned_with_blocks()).operations == ()
    steps = plan(present, IpsecState((), POLICIES[:1]), owned_with_blocks())
    assert [item.verb for item in steps.operations] == ["delete"] * 3
    namespace.apply(steps)
    undone = namespace.run("ip", "-batch", "-", text=steps.rollback())
    assert undone.returncode == 0, undone.stderr
    assert plan(namespace.read(), declared, owned_with_blocks()).operations == ()
    namespace.apply(plan(namespace.read(), IpsecState(), owned_with_blocks()))
    assert namespace.read().policies == ()


def test_policies_of_others_stay(namespace: Namespace) -> None:
    foreign = "xfrm policy add src 192.0.2.9/32 dst 192.0.2.8/32 dir out action block\n"
    assert namespace.run("ip", "-batch", "-", text=foreign).returncode == 0
    namespace.apply(plan(namespace.read(), IpsecState((), POLICIES), OURS))
    namespace.apply(plan(namespace.read(), IpsecState(), owned_with_blocks()))
    assert [item.selector.src for item in namespace.read().policies] == ["192.0.2.9/32"]


def test_a_line_that_the_kernel_refuses_is_named(namespace: Namespace) -> None:
    text = (
        "xfrm policy add src 192.0.2.1/32 dst 192.0.2.2/32 dir out action block\n"
        "xfrm policy add src 192.0.2.1/32 dst 192.0.2.2/32 dir out action block\n"
    )
    done = namespace.run("ip", "-batch", "-", text=text)
    assert [(line, found.error_class) for line, found in batch_failures(done.stderr)] == [
        (None, "sa_exists")
    ]
    gone = namespace.run(
        "ip", "-batch", "-", text="xfrm state delete dst 192.0.2.1 proto esp spi 9"
    )
    assert batch_failures(gone.stderr)[0][1].error_class == "sa_missing"


def test_the_counters_of_a_new_namespace_are_zero(namespace: Namespace) -> None:
    first = parse_xfrm_stat(namespace.run("cat", "/proc/net/xfrm_stat").stdout)
    assert growth(first, first) == ()


@pytest.mark.parametrize(
    "algorithms",
    [
        (Algorithm("aead", "rfc4106(gcm(aes))", None, 128),),
        (Algorithm("enc", "cbc(aes)"), Algorithm("auth-trunc", "hmac(sha256)", None, 128)),
        (Algorithm("enc", "ecb(cipher_null)", 0), Algorithm("auth-trunc", "digest_null", 0, 0)),
    ],
    ids=["gcm", "cbc", "null"],
)
@pytest.mark.parametrize("esn", [False, True], ids=["32-bit", "esn"])
def test_sas_are_added_found_changed_and_taken_back(
    namespace: Namespace, algorithms: tuple[Algorithm, ...], esn: bool
) -> None:
    lengths = {"rfc4106(gcm(aes))": 20, "cbc(aes)": 16, "hmac(sha256)": 32}
    states = tuple(
        State(
            *ends, "esp", spi, 100, mode, 128 if esn else 32, ("esn",) if esn else (),
            algorithms=algorithms, mark=Mark(spi), if_id=7,
        )
        for spi, mode, ends in (
            (0x1000, "transport", ("192.0.2.1", "192.0.2.2")),
            (0x1001, "tunnel", ("2001:db8::1", "2001:db8::2")),
        )
    )  # fmt: skip
    keys = Vault()
    for state in states:
        for item in algorithms:
            if item.name in lengths:
                key = Secret("0x" + "5a" * lengths[item.name])
                keys.put(state_id(state), item.kind, key)
    declared = IpsecState(states, (), keys)
    assert validate(declared) == []
    namespace.apply(plan(namespace.read(), declared, OURS))
    assert plan(namespace.read(), declared, OURS).operations == ()
    steps = plan(namespace.read(), IpsecState(), OURS)
    namespace.apply(steps)
    assert namespace.read().states == ()
    assert namespace.run("ip", "-batch", "-", text=steps.rollback()).returncode == 0
    assert plan(namespace.read(), declared, OURS).operations == ()
