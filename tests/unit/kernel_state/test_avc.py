"""SELinux denials."""

from pathlib import Path

import pytest

from collector.kernel_state.avc import (
    allow_rule,
    allow_rules,
    explain,
    is_avc,
    parse_avc,
    parse_avcs,
)
from collector.kernel_state.context import LabelError, parse_context
from collector.kernel_state.errors import StateError

CASE = (Path(__file__).parents[2] / "data" / "cases" / "41-a.txt").read_text()


def test_the_denials_of_case_41():
    polmatch, sendto = parse_avcs(CASE)
    assert polmatch.permissions == ("polmatch",)
    assert (polmatch.source.type, polmatch.target.type) == ("unlabeled_t", "ipsec_spd_t")
    assert (polmatch.tclass, polmatch.permissive, polmatch.pid) == ("association", True, 756)
    assert (polmatch.time, polmatch.serial) == (1628614007.816, 154)
    assert not polmatch.enforced
    assert allow_rule(polmatch) == "allow unlabeled_t ipsec_spd_t:association polmatch;"
    assert sendto.pid is None
    assert sendto.comm == "dnsmasq"
    assert sendto.extra == {
        "saddr": "192.0.2.118",
        "src": "56980",
        "daddr": "198.51.100.8",
        "dest": "53",
        "netif": "eth0",
    }
    assert "without an SA" in explain(sendto)
    assert explain(polmatch) is not None


def test_several_permissions_self_and_the_kernel_log():
    line = (
        "[  12.3] audit: type=1400 audit(1.5:7): avc:  denied  { ingress egress } for  "
        'pid=1 comm="a b" netif=eth1 scontext=system_u:object_r:netlabel_peer_t:s0:c1,c3 '
        "tcontext=system_u:object_r:netlabel_peer_t:s0-s0:c0.c1023 tclass=netif permissive=0"
    )
    found = parse_avc(line)
    assert found.enforced
    assert (found.comm, found.serial) == ("a b", 7)
    assert found.source.range == "s0:c1,c3"
    assert allow_rule(found) == "allow netlabel_peer_t self:netif { ingress egress };"


def test_a_kernel_that_does_not_say_permissive_counts_as_enforcing():
    line = CASE.splitlines()[3].replace(" permissive=1", "")
    found = parse_avc(line)
    assert found.permissive is None
    assert found.enforced


def test_rules_are_merged_and_ordered():
    lines = CASE.splitlines()[2:4]
    again = lines[0].replace("{ polmatch }", "{ setcontext }")
    assert allow_rules(parse_avcs("\n".join([*lines, again]))) == (
        "allow dnsmasq_t unlabeled_t:association sendto;",
        "allow unlabeled_t ipsec_spd_t:association { polmatch setcontext };",
    )


@pytest.mark.parametrize(
    ("old", "new", "wanted"),
    [
        ("tclass=association", "", "an object class"),
        ("scontext=system_u:object_r:unlabeled_t:s0", "", "a context"),
        ("tcontext=system_u:object_r:ipsec_spd_t:s0", "tcontext=ipsec_spd_t", "a context"),
        ("permissive=1", "permissive=7", "0 or 1"),
        ("pid=756", "pid=756 pid=757", "each field once"),
        ("pid=756", "pid=x", "a number"),
        ("for  pid", "or  pid", "avc:  denied"),
    ],
)
def test_damaged_lines_are_refused(old, new, wanted):
    line = CASE.splitlines()[2]
    assert old in line
    assert is_avc(line)
    with pytest.raises(StateError) as caught:
        parse_avc(line.replace(old, new))
    assert wanted in str(caught.value)


def test_contexts_split_at_the_first_three_colons_only():
    context = parse_context("system_u:system_r:ping_t:s0:c1.c256")
    assert (context.type, context.range) == ("ping_t", "s0:c1.c256")
    assert str(context) == "system_u:system_r:ping_t:s0:c1.c256"
    assert parse_context("a_u:b_r:c_t").range is None
    for text in ("", "a:b", "a:b c:d", "a::c", "a:b:c:s0 x"):
        with pytest.raises(LabelError):
            parse_context(text)
