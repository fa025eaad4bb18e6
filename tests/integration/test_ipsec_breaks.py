"""Configurations broken on purpose: each is explained in its user's terms."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from ipsec_lab import (
    CLIENT4,
    ENDS4,
    ENDS6,
    LEVEL,
    SERVER4,
    causes,
    command,
    observed,
    role,
    run_tasks,
)

pytestmark = [pytest.mark.lab, pytest.mark.slow]

CONNECTION = {"name": "test4", "ends": ENDS4, "label": "process", "spi": 0x1000}
PING = ["ping", "-c1", "-W2", SERVER4]


@pytest.fixture(scope="module", autouse=True)
def clean(lab, tmp_path_factory):
    """Whatever a test did, the hosts are as before afterwards."""
    yield
    run_tasks(lab, tmp_path_factory.mktemp("clean"), [role(ipsec_state="absent")])


@pytest.fixture
def labelled(lab, tmp_path):
    """A labelled connection in force; new keys, so that what another test broke is whole again."""
    run_tasks(lab, tmp_path, [role(ipsec_connections=[CONNECTION], ipsec_rekey=True)])
    return lab


def doctor(lab, *words):
    """What ``crossover doctor`` says of IPsec, as lines without the marks of good and bad."""
    done = subprocess.run(
        [sys.executable, "-m", "collector", "doctor", *words],
        cwd=lab.root,
        env=lab.environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert "Traceback" not in done.stderr, done.stderr
    return [line[5:] for line in done.stdout.splitlines() if ": IPsec (" in line]


def told(lines, host, cause, keying="manual"):
    """Whether the doctor's lines name a cause on a host."""
    return any(line.startswith(f"{host}: IPsec ({keying}): {cause}: ") for line in lines)


def ping(level=LEVEL):
    # Through env: ping itself is no entry point of the shell's domain.
    return command("client", "runcon", "-l", level, "env", *PING)


def test_a_process_of_the_label_passes_and_nothing_is_to_be_explained(labelled, tmp_path):
    result = run_tasks(labelled, tmp_path, observed([{**ping(), "register": "sent"}]))
    assert result["client"]["sent"]["rc"] == 0, result["client"]["sent"]
    for host in ("client", "server"):
        assert result[host]["seen"]["explain"] == []
        assert result[host]["seen"]["grown"] == {}
    lines = doctor(labelled)
    for host, peer in (("client", SERVER4), ("server", CLIENT4)):
        assert f"{host}: IPsec (manual): nothing was dropped so far" in lines
        # ESP with AES-GCM between two hosts on a link of 1500 bytes: as the test of MTU has it.
        assert f"{host}: IPsec (manual): with ESP, 1438 bytes fit one datagram to {peer}" in lines


def test_no_sa_has_the_label_of_the_process(labelled, tmp_path):
    other = ping("s0:c5")
    result = run_tasks(labelled, tmp_path, observed([{**other, "register": "sent"}], level="s0:c5"))
    assert result["client"]["sent"]["rc"] != 0
    (reason, *_) = result["client"]["seen"]["explain"]
    assert reason["cause"] == "no_state_for_label"
    assert (
        "it runs as unconfined_u:unconfined_r:unconfined_t:s0:c5, the SAs are for" in reason["text"]
    )
    assert "XfrmOutNoStates" in reason["text"]
    assert told(doctor(labelled, "--level", "s0:c5"), "client", "no_state_for_label")


def test_a_policy_without_polmatch_is_bypassed(labelled, tmp_path):
    # Started by systemd, ping runs in a domain of its own, which may not use the policy.
    own_domain = command("client", "systemd-run", "--quiet", "--collect", *PING)
    wait = {"ansible.builtin.pause": {"seconds": 10}}
    result = run_tasks(labelled, tmp_path, observed([own_domain, wait]))
    (reason, *_) = result["client"]["seen"]["explain"]
    assert reason["cause"] == "no_polmatch"
    assert "in clear" in reason["text"]
    assert reason["hint"].endswith("allow ping_t ipsec_spd_t:association polmatch;")
    # The other end takes nothing in clear that should have been protected.
    assert causes(result["server"]["seen"])[0] == "template_mismatch"
    lines = doctor(labelled)
    assert told(lines, "client", "no_polmatch")
    assert told(lines, "server", "template_mismatch")


def test_templates_that_do_not_match(labelled, tmp_path):
    changed = command(
        "server", "ip", "xfrm", "policy", "update", "src", f"{CLIENT4}/32", "dst", f"{SERVER4}/32",
        "dir", "in", "ctx", "system_u:object_r:ipsec_spd_t:s0", "priority", "1000",
        "tmpl", "src", CLIENT4, "dst", SERVER4, "proto", "esp", "reqid", "9", "mode", "transport",
    )  # fmt: skip
    seen = run_tasks(labelled, tmp_path, [changed, *observed([ping()])])["server"]["seen"]
    assert causes(seen)[0] == "template_mismatch"
    assert "XfrmInTmplMismatch" in seen["explain"][0]["text"]


def replaced(spi, byte):
    """The server's inbound SA with another SPI or key."""
    gone = command(
        "server", "ip", "xfrm", "state", "delete", "dst", SERVER4, "proto", "esp", "spi", "0x1000"
    )
    new = command(
        "server", "ip", "xfrm", "state", "add", "src", CLIENT4, "dst", SERVER4, "proto", "esp",
        "spi", spi, "reqid", "{{ 0x43520000 }}", "mode", "transport", "aead", "rfc4106(gcm(aes))",
        "0x" + byte * 20, "128", "ctx", f"unconfined_u:unconfined_r:unconfined_t:{LEVEL}",
    )  # fmt: skip
    return [gone, new]


def test_a_wrong_spi(labelled, tmp_path):
    result = run_tasks(labelled, tmp_path, [*replaced("0x1002", "5a"), *observed([ping()])])
    assert causes(result["server"]["seen"])[0] == "wrong_spi"
    assert told(doctor(labelled), "server", "wrong_spi")


def test_a_wrong_key(labelled, tmp_path):
    result = run_tasks(labelled, tmp_path, [*replaced("0x1000", "5a"), *observed([ping()])])
    assert causes(result["server"]["seen"])[0] == "wrong_key"
    assert told(doctor(labelled), "server", "wrong_key")
    # Somebody else's SA in place of ours is seen, and both ends get new keys.
    healed = run_tasks(
        labelled,
        tmp_path,
        [role(ipsec_connections=[CONNECTION]), *observed([{**ping(), "register": "sent"}])],
    )
    assert healed["client"]["sent"]["rc"] == 0
    assert healed["server"]["seen"]["explain"] == []


def test_an_algorithm_that_the_kernel_has_not(lab, tmp_path):
    hidden = "/etc/modprobe.d/crossover-test.conf"
    modules = ("chacha20poly1305", "rfc7539", "chacha20_generic", "chacha_generic")
    text = "".join(f"install {name} /bin/false\n" for name in modules)
    wanted = {**CONNECTION, "label": None, "algorithm": "chacha20-poly1305"}
    outcome = run_tasks(
        lab,
        tmp_path,
        [
            {"ansible.builtin.copy": {"content": text, "dest": hidden, "mode": "0644"}},
            {"crossover.lab.ipsec_keys": {}, "register": "keys_of_test", "no_log": True},
            {
                "crossover.lab.ipsec": {
                    "connections": [wanted],
                    "seed": "{{ keys_of_test.seed }}",
                    "guard": {"timeout": 120},
                },
                "register": "applied",
                "failed_when": False,
            },
            {"ansible.builtin.file": {"path": hidden, "state": "absent"}},
            {"ansible.builtin.command": {"argv": ["ip", "xfrm", "state", "count"]},
             "register": "left"},
        ],
    )["client"]  # fmt: skip
    applied = outcome["applied"]
    assert applied["explain"][0]["cause"] == "missing_algorithm", applied
    assert applied["undone"]
    assert "add esp spi 0x1000" in applied["msg"]
    lines = doctor(lab)
    assert told(lines, "client", "missing_algorithm")
    assert any(line.startswith("client: IPsec (manual): refused: add esp") for line in lines)


def test_a_datagram_too_long_for_the_path(labelled, tmp_path):
    size = 1472  # fits a bare link, not ESP
    sent = command(
        "client", "runcon", "-l", LEVEL, "/usr/bin/python3", "-c",
        "import socket,sys\n"
        "one=socket.socket(2,2); one.setsockopt(0,10,2); one.connect((sys.argv[1],9))\n"
        "one.send(b'x'*int(sys.argv[2]))", SERVER4, str(size), register="sent",
    )  # fmt: skip
    tasks = observed([sent], error="{{ sent.stderr }}", payload_bytes=size, fits_bytes=1438)
    tasks[-1]["when"] = "inventory_hostname == 'client'"
    (reason, *_) = run_tasks(labelled, tmp_path, tasks)["client"]["seen"]["explain"]
    assert reason["cause"] == "mtu"
    assert reason["text"] == (
        "a datagram of 1472 bytes is too long: with ESP, 1438 bytes fit one packet"
    )


def test_a_clock_that_was_set(lab, tmp_path):
    # The kernel looks at its limits when the first of them is due, by the wall clock of then.
    limits = {"soft_use_s": 10, "hard_use_s": 3600}
    wanted = {"name": "test4", "ends": ENDS4, "lifetimes": limits}
    now = lab.ssh("client", "date +%s").strip()
    tasks = [
        role(ipsec_connections=[wanted], ipsec_rekey=True),
        *observed(
            [
                command("client", *PING),
                command("client", "date", "-s", "+2 hours"),
                {"ansible.builtin.pause": {"seconds": 25}},
                command("client", *PING),
            ]
        ),
    ]
    try:
        seen = run_tasks(lab, tmp_path, tasks)["client"]["seen"]
        examined = doctor(lab)
    finally:
        later = int(lab.ssh("client", "date +%s"))
        if later - int(now) > 3600:
            lab.ssh("client", "date -s '-2 hours'")
    assert causes(seen)[0] == "clock", seen
    assert told(examined, "client", "clock"), examined
    assert "the clock was set by +7200 s" in seen["explain"][0]["text"]


def test_ike_with_a_label_on_one_end_only(lab, tmp_path):
    wanted = {"name": "test6", "ends": ENDS6}
    outcome = run_tasks(
        lab,
        tmp_path,
        [
            role(ipsec_state="absent"),
            {"crossover.lab.ipsec_keys": {}, "register": "keys_of_test", "run_once": True,
             "no_log": True},
            {
                "crossover.lab.ike": {
                    "connections": [{**wanted, "label": "{{ own_label | default(omit) }}"}],
                    "level": LEVEL,
                    "seed": "{{ keys_of_test.seed }}",
                    "wait": 90,
                    "guard": {"timeout": 120},
                },
                "vars": {"own_label": "{{ 'process' if inventory_hostname == 'client' else '' }}"},
                "register": "applied",
                "failed_when": False,
            },
            {"ansible.builtin.command": {"argv": ["ip", "xfrm", "state", "count"]},
             "register": "left"},
        ],
    )  # fmt: skip
    applied = outcome["client"]["applied"]
    refused = next(item for item in applied["explain"] if item["cause"] == "ike_refused")
    assert "TS_UNACCEPTABLE" in refused["text"]
    assert told(doctor(lab), "client", "ike_refused", "libreswan")
    assert "label mismatch" in refused["hint"]
    assert "SAD count 0" in outcome["client"]["left"]["stdout"], json.dumps(outcome["client"])
