"""What the IKE daemons are told about a declared connection."""

from __future__ import annotations

import re

import pytest

from ansible_collections.crossover.lab.plugins.module_utils.ike_config import (
    check,
    children,
    keys_of,
    libreswan,
    libreswan_secrets,
    shared_key,
    strongswan,
    strongswan_secrets,
)
from ansible_collections.crossover.lab.plugins.module_utils.ipsec_declared import (
    read_connections,
)
from ansible_collections.crossover.lab.plugins.module_utils.kernel_state.declared import (
    DeclarationError,
)

ENDS4 = ["198.18.0.1", "198.18.0.2"]
ENDS6 = ["2001:db8:18::1", "2001:db8:18::2"]
SEED = bytes(range(32))


def read(**values):
    return read_connections([{"name": "test", "ends": ENDS4, **values}])


def settings(text):
    """The lines of the one conn, as a dict."""
    body = text.partition("conn crossover-test\n")[2]
    return dict(line.strip().split("=", 1) for line in body.splitlines() if "=" in line)


def test_libreswan_is_told_the_whole_declaration():
    connections = read(
        mode="tunnel", networks=["10.1.0.0/16", "10.2.0.0/16"], algorithm="aes-cbc-sha256",
        key_bits=256, esn=True, replay_window=128, label="process",
        lifetimes={"hard_add_s": 600, "soft_add_s": 540, "hard_bytes": 1 << 30},
        mark={"value": 5, "mask": 255},
    )  # fmt: skip
    found = settings(libreswan(connections, "/run/pluto/crossover"))
    assert found == {
        "left": "198.18.0.1", "right": "198.18.0.2", "leftid": "198.18.0.1",
        "rightid": "198.18.0.2", "leftsubnet": "10.1.0.0/16", "rightsubnet": "10.2.0.0/16",
        "authby": "secret", "type": "tunnel", "ikev2": "insist", "esp": "aes256-sha2_256",
        "esn": "yes", "replay-window": "128", "salifetime": "600s", "rekeymargin": "60s",
        "rekeyfuzz": "0%", "keyingtries": "0", "auto": "ondemand", "mark": "0x5/0xff",
        "ipsec-max-bytes": str(1 << 30),
        "policy-label": "system_u:object_r:ipsec_spd_t:s0",
    }  # fmt: skip


def test_a_selector_is_a_connection_of_its_own():
    connections = read(selectors=[{"protocol": "tcp", "port": 5201}, {"protocol": "udp"}])
    assert [child.name for child in children(connections)] == [
        "crossover-test-1",
        "crossover-test-2",
    ]
    text = libreswan(connections, "/x")
    assert "leftprotoport=6/%any\n\trightprotoport=6/5201" in text
    assert "rightprotoport=17/%any" in text


def test_strongswan_knows_which_end_it_is():
    connections = read(selectors=[{"protocol": "tcp", "port": 5201}], lifetimes={"hard_add_s": 600})
    first, second = (strongswan(connections, (end,)) for end in (0, 1))
    assert "local_addrs = 198.18.0.1" in first
    assert "local_ts = 198.18.0.1/32[6]" in first
    assert "remote_ts = 198.18.0.2/32[6/5201]" in first
    assert "local_ts = 198.18.0.2/32[6/5201]" in second
    assert "life_time = 600s" in first
    assert "rekey_time = 540s" in first
    assert "esp_proposals = aes128gcm16-noesn" in first
    for text in (first, second, strongswan_secrets(connections, keys_of(SEED))):
        assert text.count("{") == text.count("}")


def test_strongswan_lets_neighbours_find_each_other_in_clear():
    wanted = [{"name": "six", "ends": ENDS6}]
    text = strongswan(read_connections(wanted), (1,))
    for kind in (135, 136):
        assert (
            f"      crossover-six-neighbour-{kind} {{\n"
            "        mode = pass\n"
            f"        local_ts = {ENDS6[1]}/128[58/{kind}]\n"
            f"        remote_ts = {ENDS6[0]}/128[58/{kind}]\n"
            "        start_action = trap\n"
        ) in text
    assert text.count("{") == text.count("}")
    one = [{**wanted[0], "selectors": [{"protocol": "tcp"}]}]
    assert "neighbour" not in strongswan(read_connections(one), (1,))
    assert "neighbour" not in strongswan(read(), (0,))


def test_both_ends_and_every_connection_of_theirs_have_one_key():
    items = read_connections(
        [
            {"name": "a", "ends": ENDS4},
            {"name": "b", "ends": ENDS4[::-1]},
            {"name": "c", "ends": ENDS6},
        ]
    )
    one, other, six = (shared_key(SEED, item) for item in items)
    assert one == other != six
    assert shared_key(bytes(32), items[0]) != one
    assert libreswan_secrets(items[:1], keys_of(SEED)) == (
        f'198.18.0.1 198.18.0.2 : PSK "0s{one}"\n'
    )
    assert strongswan_secrets(items, keys_of(SEED)).count("secret = 0s") == 2


def test_configurations_hold_no_key():
    connections = read(label="process")
    key = shared_key(SEED, connections[0])
    assert key not in libreswan(connections, "/x") + strongswan(connections, (0,))


FAULTS = [
    ({"pairs": 2, "vary": "selector"}, "libreswan", ".pairs: 2, wanted 1 or keying: manual"),
    ({"if_id": 7}, "libreswan", ".if_id: 7, wanted keying: manual with it"),
    ({"offload": "eth1"}, "strongswan", ".offload: eth1, wanted keying: manual with it"),
    ({"lifetimes": {"hard_use_s": 9}}, "libreswan", ".lifetimes.hard_use_s: wanted keying: manual"),
    ({"lifetimes": {"soft_add_s": 9}}, "libreswan", ".soft_add_s: wanted hard_add_s with it"),
    ({"label": "process"}, "strongswan", "wanted keying: libreswan; strongSwan as Debian"),
]


@pytest.mark.parametrize(("values", "keying", "text"), FAULTS, ids=[item[2] for item in FAULTS])
def test_what_a_daemon_cannot_do_is_refused_by_name(values, keying, text):
    with pytest.raises(DeclarationError, match=re.escape(text)):
        check(read(**values), keying)


def test_two_connections_of_the_same_ends_are_both_labelled_or_neither():
    items = read_connections(
        [{"name": "a", "ends": ENDS4}, {"name": "b", "ends": ENDS4[::-1], "label": "process"}]
    )
    with pytest.raises(DeclarationError, match=r"connection b\.label: wanted as a's"):
        check(items, "libreswan")
