"""The hosts of a forwarding test: declaration, refusal, change, idempotence and restore."""

from pathlib import Path

import pytest

from ansible_collections.crossover.lab.plugins.module_utils import forwarding_apply as apply
from ansible_collections.crossover.lab.plugins.module_utils import forwarding_declared as declared
from ansible_collections.crossover.lab.plugins.module_utils import forwarding_host as host
from ansible_collections.crossover.lab.plugins.module_utils import forwarding_rules as rules
from ansible_collections.crossover.lab.plugins.module_utils.forwarding_commands import by_hand
from ansible_collections.crossover.lab.plugins.module_utils.host import irq, quiet, record, sysctl
from ansible_collections.crossover.lab.plugins.module_utils.host.errors import HostError
from ansible_collections.crossover.lab.plugins.module_utils.host.settings import Change, Plan
from ansible_collections.crossover.lab.plugins.module_utils.management import Ancestry

from .forwarding_kernel import PORTS, Kernel

TESTER = {"eth1": "02:00:00:00:01:01", "eth2": "02:00:00:00:02:01"}


def device(name, **more):
    return {
        "name": name,
        "mac": PORTS.get(name),
        "mtu": None,
        "addresses": None,
        "forwards": None,
        "ipv6": None,
        "offloads": None,
        "channels": None,
        **more,
    }


def params(**more):
    return {
        "state": "present",
        "devices": [],
        "ipv6_forwarding": None,
        "neighbours": [],
        "routes": [],
        "irq": "default",
        "irq_cpus": [],
        "rules": None,
        "rules_by": ["nft"],
        "modules": [],
        **more,
    }


DUT = params(
    devices=[
        device("eth1", forwards=True, addresses=["198.18.0.2/24"]),
        device("eth2", forwards=True, addresses=["198.19.0.2/24"]),
    ],
    neighbours=[
        {"device": "eth1", "address": "198.18.0.1", "mac": TESTER["eth1"].upper()},
        {"device": "eth2", "address": "198.19.0.1", "mac": TESTER["eth2"]},
    ],
    rules="empty",
)
ABSENT = params(state="absent")


@pytest.fixture
def kernel(tmp_path, monkeypatch):
    """A host with two ports, a management device and kernel parameters in a folder."""
    made = Kernel()
    root = tmp_path / "sys"
    values = {
        "net/ipv4/conf/eth1/forwarding": "0",
        "net/ipv4/conf/eth2/forwarding": "0",
        "net/ipv6/conf/all/forwarding": "0",
        "net/ipv6/conf/eth1/disable_ipv6": "0",
        "net/ipv6/conf/eth2/disable_ipv6": "0",
    }
    for name, value in values.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(value + "\n")
    net, cpus = tmp_path / "net", tmp_path / "online"
    for name in ("eth0", *PORTS):
        (net / name).mkdir(parents=True)
    cpus.write_text("0-1\n")
    boot = tmp_path / "boot_id"
    boot.write_text("boot\n")
    monkeypatch.setattr(record, "BOOT_ID", boot)
    monkeypatch.setattr(irq, "NET", net)
    monkeypatch.setattr(host, "ONLINE", cpus)
    monkeypatch.setattr(host, "find_ancestry", lambda: Ancestry("192.0.2.9", ()))
    monkeypatch.setattr(sysctl, "ROOT", root)
    monkeypatch.setattr(sysctl.read, "__defaults__", (root,))
    monkeypatch.setattr(sysctl.write, "__defaults__", (root,))
    monkeypatch.setattr(rules, "legacy_tables", lambda: None)
    made.root, made.path = root, tmp_path / "run" / "forwarding.json"
    return made


def do(kernel, wanted):
    """Prepare and carry out; the changes that were made."""
    prepared = apply.prepare(wanted, kernel.path, kernel)
    apply.carry_out(prepared, kernel.path, kernel)
    return prepared.plan.changes


def value(kernel, name):
    return (kernel.root / name).read_text().strip()


def test_a_device_under_test_is_made_once_and_put_back(kernel):
    assert do(kernel, DUT)
    assert kernel.addresses == {"eth1": ["198.18.0.2/24"], "eth2": ["198.19.0.2/24"]}
    assert kernel.neighbours["eth1"] == {"198.18.0.1": TESTER["eth1"]}
    assert value(kernel, "net/ipv4/conf/eth2/forwarding") == "1"
    assert len(kernel.chains) == 5
    assert do(kernel, DUT) == ()
    assert do(kernel, ABSENT)
    # The address that was there before stays; that which was not goes.
    assert kernel.addresses == {"eth1": ["198.18.0.2/24"], "eth2": []}
    assert kernel.neighbours == {"eth1": {}, "eth2": {}}
    assert value(kernel, "net/ipv4/conf/eth1/forwarding") == "0"
    assert kernel.chains == []
    assert not kernel.path.exists()


def test_the_commands_by_hand_are_those_that_were_needed(kernel):
    before = apply.prepare(DUT, kernel.path, kernel).by_hand()
    apply.carry_out(apply.prepare(DUT, kernel.path, kernel), kernel.path, kernel)
    again = apply.prepare(DUT, kernel.path, kernel)
    assert again.plan.changes == ()
    assert again.by_hand() == before
    told = f"lladdr {TESTER['eth1']} nud permanent"
    assert f"ip neighbour replace 198.18.0.1 dev eth1 {told}" in before
    assert "sysctl -w net.ipv4.conf.eth2.forwarding=1" in before
    assert "ip address replace 198.19.0.2/24 dev eth2" in before
    # The address is there already.
    assert not any("198.18.0.2/24" in line for line in before)
    assert sum(line.startswith("nft -j ") for line in before) == 1


@pytest.mark.parametrize(
    ("key", "wanted", "line"),
    [
        ("module pktgen", "loaded", "modprobe pktgen"),
        ("offload eth1 generic-receive-offload", "off",
         "ethtool -K eth1 generic-receive-offload off"),
        ("channels eth1 combined", "2", "ethtool -L eth1 combined 2"),
        ("irq 24 eth1", "1", "printf '%s\\n' \"1\" | tee /proc/irq/24/smp_affinity_list"),
        ("mtu eth1", "1500", "ip link set dev eth1 mtu 1500"),
        ("up eth1", "up", "ip link set dev eth1 up"),
        ("address eth1 2001:db8::1/64", "absent", "ip address delete 2001:db8::1/64 dev eth1"),
        ("route 10.0.0.0/8", "via 198.18.0.2 dev eth1",
         "ip route replace 10.0.0.0/8 via 198.18.0.2 dev eth1"),
        ("rules iptables", "empty", "iptables-legacy --table filter --list-rules"),
    ],
)  # fmt: skip
def test_every_setting_has_its_command(key, wanted, line):
    assert by_hand({key: wanted}, {key}) == [line]
    assert by_hand({key: wanted}, set()) == []


def test_nothing_is_changed_by_preparing(kernel):
    prepared = apply.prepare(DUT, kernel.path, kernel)
    assert prepared.plan.changed
    assert kernel.chains == []
    assert not kernel.path.exists()


def test_another_configuration_keeps_what_both_declare(kernel):
    do(kernel, DUT)
    changes = do(kernel, {**DUT, "rules": "none"})
    assert [(change.key, change.after) for change in changes] == [("rules nft", "none")]
    do(kernel, ABSENT)
    assert kernel.neighbours == {"eth1": {}, "eth2": {}}


def test_a_silent_port_gets_its_ipv6_addresses_back(kernel):
    kernel.addresses["eth1"].append("2001:db8:18::2/64")
    silent = params(devices=[device("eth1", ipv6=False, forwards=False)])
    do(kernel, silent)
    assert kernel.addresses["eth1"] == ["198.18.0.2/24"]
    assert value(kernel, "net/ipv6/conf/eth1/disable_ipv6") == "1"
    assert do(kernel, silent) == ()
    keys = [change.key for change in do(kernel, ABSENT)]
    # An address can only come back once the device does IPv6 again.
    assert keys == ["net.ipv6.conf.eth1.disable_ipv6", "address eth1 2001:db8:18::2/64"]
    assert kernel.addresses["eth1"] == ["198.18.0.2/24", "2001:db8:18::2/64"]


@pytest.mark.parametrize("before", [set(), {"2001:db8:18::2/64"}])
def test_an_address_comes_back_as_it_was_checked_for_duplicates_or_not(kernel, before):
    kernel.addresses["eth1"].append("2001:db8:18::2/64")
    kernel.unchecked |= before
    do(kernel, params(devices=[device("eth1", ipv6=False, forwards=False)]))
    do(kernel, ABSENT)
    assert kernel.unchecked == before
    # One that is there is left as it is.
    wanted = params(devices=[device("eth1", ipv6=True, addresses=["2001:db8:18::2/64"])])
    assert not [change for change in do(kernel, wanted) if change.key.startswith("address")]


def test_an_address_of_our_own_is_not_checked_and_made_once(kernel):
    wanted = params(devices=[device("eth1", ipv6=True, addresses=["2001:db8:18::2/64"])])
    do(kernel, wanted)
    assert kernel.unchecked == {"2001:db8:18::2/64"}
    assert do(kernel, wanted) == ()


def test_lro_that_the_kernel_takes_from_a_router_comes_back(kernel):
    kernel.features["eth1"]["large-receive-offload"] = "on"
    router = params(devices=[device("eth1", forwards=True)])
    do(kernel, router)
    assert kernel.features["eth1"]["large-receive-offload"] == "off"
    assert do(kernel, router) == ()
    do(kernel, ABSENT)
    assert kernel.features["eth1"]["large-receive-offload"] == "on"


def test_an_mtu_a_link_and_a_route_are_set_and_put_back(kernel):
    kernel.up["eth2"] = False
    wanted = params(
        devices=[device("eth2", mtu=9000)],
        routes=[{"destination": "198.19.128.0/24", "gateway": "198.19.0.1", "device": "eth2"}],
    )
    do(kernel, wanted)
    assert (kernel.mtu["eth2"], kernel.up["eth2"]) == (9000, True)
    assert kernel.routes == {"198.19.128.0/24": ("198.19.0.1", "eth2")}
    do(kernel, ABSENT)
    assert (kernel.mtu["eth2"], kernel.up["eth2"], kernel.routes) == (1500, False, {})


def test_a_setting_that_fails_takes_the_others_back(kernel):
    kernel.fails.add("neighbour replace")
    with pytest.raises(HostError, match="neighbour replace is not permitted"):
        do(kernel, DUT)
    assert kernel.addresses["eth2"] == []
    assert value(kernel, "net/ipv4/conf/eth1/forwarding") == "0"
    assert not kernel.path.exists()


def test_a_setting_that_does_not_hold_is_an_error_and_is_taken_back(kernel):
    kernel.ignores.add("address replace")
    with pytest.raises(HostError, match=r"address eth2 198\.19\.0\.2/24 wanted present, is absent"):
        do(kernel, DUT)
    assert kernel.neighbours == {"eth1": {}, "eth2": {}}
    assert not kernel.path.exists()


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ({"devices": [device("eth9")]}, "device eth9: not on this host"),
        (
            {"devices": [device("eth0")]},
            r"device eth0: carries the SSH connection from 192\.0\.2\.9",
        ),
        (
            {"devices": [device("eth1", mac=TESTER["eth1"])]},
            "device eth1: mac wanted 02:00:00:00:01:01, is 02:00:00:00:01:02",
        ),
        ({"devices": [device("eth1"), device("eth1")]}, "devices: found eth1 twice"),
        (
            {"devices": [device("eth1", addresses=["192.0.2.1/24"])]},
            r"192\.0\.2\.1/24: covers 192\.0\.2\.9, which manages this host over eth0",
        ),
        (
            {"devices": [device("eth1", addresses=["198.18.0.2"])]},
            r"'198\.18\.0\.2': wanted an address with its length",
        ),
        (
            {"neighbours": [{"device": "eth2", "address": "198.19.0.1", "mac": TESTER["eth2"]}]},
            r"neighbours\[0\]\.device: found eth2; wanted one of devices: none declared",
        ),
        (
            {
                "devices": [device("eth1")],
                "routes": [{"destination": "0.0.0.0/0", "gateway": "198.18.0.1", "device": "eth1"}],
            },
            r"0\.0\.0\.0/0: covers 192\.0\.2\.9",
        ),
        (
            {"devices": [device("eth1", offloads={"gro": "off"})]},
            "offload gro of eth1: found 'off'; wanted true or false",
        ),
        (
            {"devices": [device("eth1")], "irq": "pinned", "irq_cpus": [7]},
            "irq_cpus: found 7; wanted CPUs of this host: 0, 1",
        ),
        (
            {"devices": [device("eth1")], "irq": "pinned"},
            "irq: found pinned, but eth1 has no interrupts of its own to pin",
        ),
    ],
)
def test_what_cannot_be_or_could_cut_ssh_is_refused_before_any_change(kernel, wanted, message):
    with pytest.raises(HostError, match=message):
        do(kernel, params(**wanted))
    assert not kernel.path.exists()


def test_a_route_of_somebody_else_is_not_replaced(kernel):
    kernel.routes["198.19.128.0/24"] = ("198.18.0.9", "eth1")
    wanted = params(
        devices=[device("eth2")],
        routes=[{"destination": "198.19.128.0/24", "gateway": "198.19.0.1", "device": "eth2"}],
    )
    with pytest.raises(HostError, match=r"is via 198\.18\.0\.9 dev eth1; wanted none of others"):
        do(kernel, wanted)


def test_ipv6_is_not_forwarded_where_the_default_route_would_be_lost(kernel):
    kernel.default = [{"dst": "default", "dev": "eth0", "protocol": "ra"}]
    with pytest.raises(HostError, match="has learnt its default route over eth0"):
        do(kernel, params(ipv6_forwarding=True))
    kernel.default = [{"dst": "default", "dev": "eth0", "protocol": "static"}]
    do(kernel, params(ipv6_forwarding=True))
    assert value(kernel, "net/ipv6/conf/all/forwarding") == "1"


def test_interrupts_are_pinned_to_cpus_in_turn():
    found = declared.Found(
        macs=PORTS,
        ipv6={"eth1": {}, "eth2": {}},
        features={"eth1": {}, "eth2": {}},
        interrupts={"eth1": (40, 41), "eth2": (42,)},
        cpus=(0, 1),
        knows_ipv6=True,
        management=None,
        peer=None,
    )
    wanted = params(devices=[device("eth1"), device("eth2")], irq="pinned")
    pinned = {k: v for k, v in declared.declare(wanted, found, {}).items() if k.startswith("irq")}
    assert pinned == {"irq 40 eth1": "0", "irq 41 eth1": "1", "irq 42 eth2": "0"}
    one = declared.declare({**wanted, "irq_cpus": [1]}, found, {})
    assert {v for k, v in one.items() if k.startswith("irq")} == {"1"}


def test_queues_change_before_interrupts_are_looked_at():
    channels = Change("channels eth1 combined", "4", "2")
    plan = Plan((channels, Change("irq 40 eth1", "0-3", "0")), {"channels eth1 combined": "4"}, ())
    prepared = apply.Prepared({"channels eth1 combined": "2", "irq 40 eth1": "0"}, {}, plan)
    first = apply.channels_first(prepared)
    assert first == Plan((channels,), {"channels eth1 combined": "4"}, ())
    assert apply.channels_first(apply.with_plan(prepared, Plan((), {}, ()))) is None


class TestRules:
    def test_chains_of_somebody_else_are_named_and_left(self, kernel):
        kernel.chains.append(("inet", "firewall", "input"))
        with pytest.raises(HostError, match=r"chains of nftables of its own \(inet firewall input"):
            do(kernel, params(rules="none"))
        assert kernel.chains == [("inet", "firewall", "input")]

    def test_our_counting_filters_are_not_rules(self, kernel):
        kernel.chains.append(("netdev", "crossover_pktgen_0", "arriving"))
        assert do(kernel, params(rules="none")) == ()

    def test_rules_that_are_not_declared_are_not_looked_at(self, kernel):
        kernel.chains.append(("inet", "firewall", "input"))
        do(kernel, params(devices=[device("eth1", forwards=True)]))

    def test_a_host_without_nftables_has_no_rules(self):
        kernel = "Error: Could not process rule: Operation not supported"
        assert rules.current("nft", lambda _argv: (1, "", kernel)) == "none"

    def test_iptables_tables(self):
        policies = "-P INPUT ACCEPT\n-P FORWARD ACCEPT\n-P OUTPUT ACCEPT\n"
        assert rules.legacy_state(None, "") == "none"
        assert rules.legacy_state([], "") == "none"
        assert rules.legacy_state(["filter"], policies) == "empty"
        with pytest.raises(HostError, match=r"rules of iptables \(-A INPUT -j DROP\)"):
            rules.legacy_state(["filter"], policies + "-A INPUT -j DROP\n")
        with pytest.raises(HostError, match=r"rules of iptables \(-P FORWARD DROP\)"):
            rules.legacy_state(["filter"], policies.replace("FORWARD ACCEPT", "FORWARD DROP"))
        with pytest.raises(HostError, match="iptables' table nat; wanted none"):
            rules.legacy_state(["nat"], "")

    def test_iptables_rules_need_the_legacy_command(self, monkeypatch):
        monkeypatch.setattr(rules, "legacy_command", lambda: None)
        with pytest.raises(HostError, match="iptables-legacy is not here"):
            rules.change("iptables", "empty", lambda _argv: (0, "", ""))

    def test_iptables_is_modules_and_a_table(self):
        found = declared._rules("empty", ["iptables"])
        assert found == {
            "rules nft": "none",
            "module x_tables": "loaded",
            "module ip_tables": "loaded",
            "module iptable_filter": "loaded",
            "rules iptables": "empty",
        }


def test_every_kind_of_key_is_one_that_can_be_applied():
    assert set(host._QUIET) <= set(quiet.ORDER)
    assert Path(host.ONLINE).is_absolute()
