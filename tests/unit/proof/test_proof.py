"""Proofs: each finding holds for what was declared and fails for anything else."""

import base64
import copy

import pytest
from evidence_factory import (
    CLIENT,
    CONTEXT,
    LABELLED,
    PLAIN,
    SERVER,
    frame,
    frames,
    measured,
    pcap,
    peer,
)

from collector.kernel_state.netlabel_check import review
from collector.kernel_state.netlabel_map import describe
from collector.matrix.labels import netlabel_state
from collector.proof import findings as findings_of
from collector.proof.cipso import (
    check_packets,
    check_probe,
    check_state,
    expected_mss,
    expected_option,
    payload_that_fits,
)
from collector.proof.findings import Finding
from collector.proof.proof import Observed, check_denials, check_processes, prove
from collector.wire.packets import read_pcap

AVC = (
    'type=AVC msg=audit(1700000000.123:77): avc:  denied  { recvfrom } for  pid=1 comm="netperf"'
    " scontext=unconfined_u:unconfined_r:unconfined_t:s0"
    " tcontext=system_u:object_r:netlabel_peer_t:s0 tclass=peer permissive=0"
)


def sockets(subjects, seen):
    return check_processes(subjects, seen) + check_probe(subjects, seen, 1500)


def read_back(subjects):
    """What the module ``cipso`` reads back where everything is as declared."""
    cipso = subjects["cipso"]
    wanted = review(netlabel_state(cipso)).state
    return {
        "state": {
            "dois": copy.deepcopy(cipso.get("dois", [])),
            "maps": [describe(entry) for entry in wanted.maps],
            "sysctls": {"cipso_cache_enable": 1},
        },
        "netlabel": True,
    }


def test_a_kernel_without_netlabel_is_proven_by_its_absence():
    gone = {"state": {"dois": [], "maps": [], "sysctls": {}}, "netlabel": False}
    wish = {"label": "s0", "cipso": {"netlabel": "absent"}}
    found = check_state(wish, {"client": gone, "server": gone})
    assert [finding.ok for finding in found] == [True, True]
    found = check_state(wish, both(PLAIN))
    assert [str(finding) for finding in found] == [
        "NetLabel in the kernel of the client: wanted absent, found present",
        "NetLabel in the kernel of the server: wanted absent, found present",
    ]
    found = check_state(PLAIN, {"client": gone, "server": read_back(PLAIN)})
    assert failures(found) == ["NetLabel in the kernel of the client: wanted present, found absent"]


def both(subjects):
    return {"client": read_back(subjects), "server": read_back(subjects)}


def failures(found):
    return [str(finding) for finding in found if not finding.ok]


@pytest.mark.parametrize("subjects", [LABELLED, PLAIN], ids=["labelled", "plain"])
def test_a_configuration_that_is_live_is_proven(subjects):
    found = prove(
        subjects, Observed(measured(subjects), peer(), both(subjects), {}), CLIENT, SERVER
    )
    assert failures(found) == []
    assert {finding.what for finding in found} >= {
        "kernel state of the client",
        "kernel state of the server",
        "TCP segment size",
        "TCP packets sent",
        "TCP packets received",
        "UDP datagrams sent",
        "AVC denials on the client",
        "AVC denials on the server",
    }


def test_the_published_label_takes_forty_bytes_of_the_packet():
    assert len(expected_option(LABELLED)) == 40
    assert (expected_mss(PLAIN, 1500), expected_mss(LABELLED, 1500)) == (1448, 1408)
    assert (payload_that_fits(PLAIN, 1500), payload_that_fits(LABELLED, 1500)) == (1472, 1432)
    assert expected_option(PLAIN) is None


def change_doi(state):
    state["dois"][0]["number"] = 17


def change_levels(state):
    state["dois"][0]["levels"] = "0-15"


def drop_dois(state):
    state["dois"] = []


def drop_map(state):
    state["maps"].pop()


@pytest.mark.parametrize("change", [change_doi, change_levels, drop_dois, drop_map])
def test_another_kernel_state_on_one_host_is_no_proof(change):
    applied = both(LABELLED)
    change(applied["server"]["state"])
    found = check_state(LABELLED, applied)
    assert [finding.ok for finding in found] == [True, False]
    assert failures(found)[0].startswith("kernel state of the server: wanted as declared, found ")


def test_a_sysctl_that_did_not_take_is_no_proof():
    wanted = {**LABELLED, "cipso": {**LABELLED["cipso"], "sysctls": {"cipso_cache_enable": 0}}}
    assert failures(check_state(wanted, {"client": read_back(wanted)})) == [
        "kernel state of the client: wanted as declared, found net.ipv4.cipso_cache_enable"
        " wanted 0, is 1"
    ]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"label": CONTEXT + "s0"}, "label of the client: wanted level s0:c0.c239, found "),
        ({"label": None}, "label of the client: wanted level s0:c0.c239, found None"),
        ({"server_label": CONTEXT + "s0-s0:c0.c1023"}, "label of the server: wanted level "),
        ({"server_peer_label": None}, "peer label at the server: wanted level s0:c0.c239, found"),
        (
            {"server_peer_label": "system_u:object_r:netlabel_peer_t:s0:c0.c238"},
            "peer label at the server: wanted level s0:c0.c239, found ",
        ),
        ({"peer_label": "system_u:object_r:unlabeled_t:s0"}, "peer label at the client: wanted "),
        ({"mss": 1448}, "TCP segment size: wanted 1408, found 1448"),
        (
            {"datagram_error": "Message too long"},
            "datagram of 1472 bytes: wanted arrives unfragmented, found Message too long",
        ),
    ],
)
def test_each_observation_of_the_sockets_can_refuse_the_proof(change, message):
    found = sockets(LABELLED, measured(LABELLED, **change)["probe"])
    assert [text for text in failures(found) if text.startswith(message)]
    assert len(failures(found)) == 1


def test_a_label_from_the_wire_refutes_an_unlabelled_configuration():
    seen = measured(PLAIN, peer_label="system_u:object_r:netlabel_peer_t:s0")["probe"]
    assert failures(sockets(PLAIN, seen)) == [
        "peer label at the client: wanted none from the wire, found"
        " system_u:object_r:netlabel_peer_t:s0"
    ]


def test_a_peer_without_a_context_of_three_parts_is_no_proof_and_no_crash():
    seen = measured(LABELLED, label="unconfined", server_peer_label="?")["probe"]
    assert len(failures(sockets(LABELLED, seen))) == 2


OPTION = expected_option(LABELLED)
OTHER = expected_option({**LABELLED, "label": "s0:c0.c238"})


@pytest.mark.parametrize("place", [0, 1, 2])
@pytest.mark.parametrize("option", [b"", OTHER, OPTION[:-1] + b"\0", b"\x86\x03\x00"])
def test_one_packet_with_another_option_is_no_proof(place, option):
    ends = [(CLIENT, SERVER, 6), (SERVER, CLIENT, 6), (CLIENT, SERVER, 17)][place]
    data = pcap([*frames(OPTION), frame(*ends, option)])
    found = check_packets(LABELLED, read_pcap(data, "x"), CLIENT, SERVER)
    assert [finding.ok for finding in found] == [number != place for number in range(3)]


@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_direction_without_a_packet_is_no_proof(place):
    left = [packet for number, packet in enumerate(frames(OPTION)) if number != place]
    found = check_packets(LABELLED, read_pcap(pcap(left), "x"), CLIENT, SERVER)
    assert [finding.ok for finding in found] == [number != place for number in range(3)]
    assert found[place].found == "none"


def test_an_option_refutes_an_unlabelled_configuration():
    found = check_packets(PLAIN, read_pcap(pcap(frames(OPTION)), "x"), CLIENT, SERVER)
    assert not any(finding.ok for finding in found)
    assert found[0].wanted == "no option 134"
    assert "DOI 16, tag 1, s0:c0.c239" in found[0].found


def test_packets_of_others_prove_nothing():
    others = [frame("10.0.0.1", "10.0.0.2", protocol, OPTION) for protocol in (6, 17)]
    found = check_packets(LABELLED, read_pcap(pcap(others), "x"), CLIENT, SERVER)
    assert [finding.found for finding in found] == ["none"] * 3


def test_a_probe_that_did_not_get_through_says_why():
    brought = measured(LABELLED)
    brought["probe"] = {"error": "Connection timed out", "errno": 110}
    found = prove(LABELLED, Observed(brought, peer(), both(LABELLED), {}), CLIENT, SERVER)
    assert findings_of.first_failure(found) == (
        "connection of the probe: wanted made, found Connection timed out"
    )


@pytest.mark.parametrize("where", ["client", "server"])
def test_a_denial_on_either_host_is_no_proof_and_says_what_would_allow_it(where):
    lines = {"client": [], "server": [], where: [AVC]}
    found = check_denials(
        Observed({"denials": lines["client"]}, {"denials": lines["server"]}, {}, {})
    )
    assert [finding.ok for finding in found] == [where != "client", where != "server"]
    text = failures(found)[0]
    assert text.startswith(f"AVC denials on the {where}: wanted none, found 1 (1 enforced); would")
    assert "allow unconfined_t netlabel_peer_t:peer" in text


def test_a_damaged_capture_cannot_prove():
    brought = measured(LABELLED)
    brought["pcap"] = base64.b64encode(pcap([])).decode()
    found = prove(LABELLED, Observed(brought, peer(), both(LABELLED), {}), CLIENT, SERVER)
    assert len(failures(found)) == 3


def test_findings_as_documents_and_sentences():
    good, bad = findings_of.equal("a", 1, 1), findings_of.equal("b", 1, "1")
    assert (good.ok, bad.ok) == (True, False)
    assert findings_of.first_failure([good]) is None
    assert findings_of.first_failure([good, bad]) == "b: wanted 1, found 1"
    assert findings_of.document([good]) == {
        "schema": 1,
        "findings": [{"what": "a", "wanted": "1", "found": "1", "ok": True}],
    }
    assert isinstance(good, Finding)
