"""The matrix file: what is accepted, and one refusal for every constraint."""

from pathlib import Path

import pytest
from matrix_factory import CIPSO, DOCUMENT, document, matrix

from collector.errors import InputError
from collector.matrix.matrix import load_matrix, read_matrix
from collector.run.campaign import MATRICES

FLCAT = ("configurations", 1)
CONFIDENCE = ("full", "confidence")
RR, STREAM = ("tests", 0), ("tests", 1)


@pytest.mark.parametrize("file", sorted(MATRICES.glob("*.yml")), ids=lambda file: file.stem)
def test_every_shipped_matrix_is_accepted_and_named_as_its_file(file):
    assert load_matrix(file).name == file.stem


def test_the_published_cipso_matrix_has_the_posts_configurations():
    made = load_matrix(MATRICES / "netlabel_cipso.yml")
    skipped = {item.name: item.skip for item in made.configurations if item.skip}
    assert [item.name for item in made.configurations] == [
        "NoPatch", "Disable", "Unlabel", "C_NoCat", "C_FlCat", "C_F_LxV", "C_F_NoC",
    ]  # fmt: skip
    assert set(skipped) == {"NoPatch"}
    assert made.kernel == "lab-6.12"
    assert {item.name: item.kernel for item in made.configurations if item.kernel} == {
        "Disable": "lab-6.12-disable"
    }
    assert [test.netperf for test in made.tests] == ["TCP_STREAM", "UDP_STREAM", "TCP_RR", "UDP_RR"]
    assert made.baseline == "Unlabel"


def test_defaults_are_what_the_documents_say():
    made = matrix()
    assert (made.min_blocks, made.delta) == (6, None)
    assert made.forms["short"].confidence is None
    assert made.forms["full"].confidence.width_pct == 5.0
    assert [test.unit for test in made.tests] == ["1/s", "bit/s"]


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("schema",), 2, "m.yml: schema: found 2, written by a newer version of Crossover; wanted"
                         " at most 1 (update Crossover to read it)"),
        (("schema",), 0, "m.yml: schema: found 0; wanted 1 to 1"),
        (("schema",), ..., "m.yml: schema: found nothing; wanted a whole number"),
        (("name",), ..., "m.yml: name: found nothing; wanted a string"),
        (("name",), "../up", "m.yml: name: found '../up'; wanted letters, digits, '_' and '-', not"
                             " starting with a sign"),
        (("title",), 5, "m.yml: title: found 5; wanted a string"),
        (("topology",), "ring", "m.yml: topology: found 'ring'; wanted one of pair, dut, chain"),
        (("speed",), 1, "m.yml: speed: found an unknown field; wanted only fields of"
                        " docs/data-format.md"),
        (("subjects",), ["cipso", "magic"], "m.yml: subjects[1]: found 'magic'; wanted one of "),
        (("baseline",), "None", "m.yml: baseline: found 'None'; wanted one of Unlabel, C_FlCat,"
                                " NoPatch"),
        (("baseline",), "NoPatch", "m.yml: baseline: found a skipped configuration; wanted one"
                                   " that runs"),
        (("min_blocks",), 0, "m.yml: min_blocks: found 0; wanted 1 to 10000"),
        (("delta",), 2, "m.yml: delta: found 2.0; wanted a fraction between 0 and 1"),
        (("delta",), -0.1, "m.yml: delta: found -0.1; wanted a fraction between 0 and 1"),
        (("delta",), float("nan"), "m.yml: delta: found nan; wanted a finite number"),
        (("definitions",), [], "m.yml: definitions: found []; wanted a mapping"),
        (("configurations",), {}, "m.yml: configurations: found {}; wanted a list"),
        ((*FLCAT, "name"), "Unlabel", "m.yml: configurations: found 'Unlabel' twice; wanted each"
                                      " name once"),
        ((*FLCAT, "about"), ..., "m.yml: configurations[1].about: found nothing; wanted a string"),
        ((*FLCAT, "cipso"), [], "m.yml: configurations[1].cipso: found []; wanted a mapping"),
        ((*FLCAT, "labels"), "s0", "m.yml: configurations[1].labels: found an unknown field; wanted"
                                   " only fields of docs/data-format.md"),
        ((*FLCAT, "factors"), {"a": 1}, "m.yml: configurations[1].factors.a: found 1; wanted a"
                                        " string"),
        ((*FLCAT, "label"), ..., "m.yml: configurations.C_FlCat.label: found nothing; wanted a"
                                 " level to send under DOI 16"),
        ((*FLCAT, "label"), "secret", "m.yml: configurations.C_FlCat.label: found 'secret'; wanted"
                                      " a level such as s0:c0.c239"),
        ((*FLCAT, "label"), "s0:c0,c1,c2", "m.yml: configurations.C_FlCat.label: found"
                                           " 's0:c0,c1,c2'; wanted the kernel's own spelling,"
                                           " s0:c0.c2"),
        ((*FLCAT, "label"), "s0:c0.c300", "m.yml: configurations.C_FlCat.label: found"
                                          " 's0:c0.c300' ("),
        ((*FLCAT, "label"), "s17", "m.yml: configurations.C_FlCat.label: found 's17' ("),
        (("configurations", 0, "label"), "s", "m.yml: configurations.Unlabel.label: found 's';"
                                              " wanted a level such as s0:c0.c239"),
        ((*FLCAT, "cipso", "maps", 1, "address"), "@tst_ipv4",
         "m.yml: configurations.C_FlCat.cipso.maps[1].address: found '@tst_ipv4'; wanted one of"
         " @test_ipv4, "),
        ((*FLCAT, "cipso", "dois", 0, "number"), "sixteen",
         "m.yml: configurations.C_FlCat.cipso: found "),
        ((*FLCAT, "cipso", "maps", 1, "doi"), 17, "m.yml: configurations.C_FlCat.cipso: found "),
        (("tests",), [], "m.yml: tests: found none; wanted at least one"),
        ((*RR, "name"), "udp_stream", "m.yml: tests: found 'udp_stream' twice; wanted each name"
                                      " once"),
        ((*RR, "netperf"), "SCTP_RR", "m.yml: tests[0].netperf: found 'SCTP_RR'; wanted one of"
                                      " TCP_STREAM, UDP_STREAM, TCP_MAERTS, TCP_RR, UDP_RR,"
                                      " TCP_CRR"),
        ((*RR, "request_bytes"), 0, "m.yml: tests[0].request_bytes: found 0; wanted at least 1"
                                    " byte"),
        ((*RR, "response_bytes"), True, "m.yml: tests[0].response_bytes: found True; wanted a whole"
                                        " number"),
        ((*RR, "local_socket_bytes"), -1, "m.yml: tests[0].local_socket_bytes: found -1; wanted at"
                                          " least 1 byte"),
        ((*RR, "message_bytes"), 100, "m.yml: tests[0].message_bytes: found 100; wanted none:"
                                      " TCP_RR sends requests"),
        ((*STREAM, "request_bytes"), 1, "m.yml: tests[1].request_bytes: found a size; wanted none:"
                                        " UDP_STREAM sends a stream"),
        ((*STREAM, "message_bytes"), "full", "m.yml: tests[1].message_bytes: found 'full'; wanted a"
                                             ' size in bytes or "fit"'),
        ((*STREAM, "remote_socket_bytes"), "1M", "m.yml: tests[1].remote_socket_bytes: found '1M';"
                                                 " wanted a whole number"),
        ((*RR, "sessions"), 0, "m.yml: tests[0].sessions: found 0; wanted 1 to 10000"),
        ((*RR, "start_s"), 5, "m.yml: tests[0].start_s: found 5; wanted none without sessions"),
        ((*RR, "request_bytes"), "fit", "m.yml: tests[0].request_bytes: found 'fit'; wanted a size"
                                        " in bytes: TCP_RR sends no datagrams"),
        (("short",), ..., "m.yml: short: found nothing; wanted a mapping"),
        (("short", "duration_s"), 0, "m.yml: short.duration_s: found 0; wanted 1 to 86400"),
        (("short", "blocks"), 0, "m.yml: short.blocks: found 0; wanted 1 to 10000"),
        (("short", "budget_s"), 0, "m.yml: short.budget_s: found 0; wanted at least 1 second"),
        (("short", "warm_up_s"), -1, "m.yml: short.warm_up_s: found -1.0; wanted a positive"
                                     " number"),
        (("short", "blokcs"), 1, "m.yml: short.blokcs: found an unknown field; wanted only fields"
                                 " of docs/data-format.md"),
        ((*CONFIDENCE, "level_pct"), 90, "m.yml: full.confidence.level_pct: found 90; wanted 95 or"
                                         " 99 (netperf knows no other)"),
        ((*CONFIDENCE, "width_pct"), 0, "m.yml: full.confidence.width_pct: found 0.0; wanted a"
                                        " positive number"),
        ((*CONFIDENCE, "min_iterations"), 2, "m.yml: full.confidence.min_iterations: found 2;"
                                             " wanted 3 to 30"),
        ((*CONFIDENCE, "max_iterations"), 31, "m.yml: full.confidence.max_iterations: found 31;"
                                              " wanted 3 to 30"),
        ((*CONFIDENCE, "min_iterations"), 11, "m.yml: full.confidence.min_iterations: found 11;"
                                              " wanted at most max_iterations, 10"),
        ((*CONFIDENCE, "width"), 5, "m.yml: full.confidence.width: found an unknown field; wanted"
                                    " only fields of docs/data-format.md"),
    ],
)  # fmt: skip
def test_a_refusal_names_file_key_value_and_what_was_wanted(path, value, message):
    with pytest.raises(InputError) as caught:
        matrix(path, value)
    assert str(caught.value).startswith(message)


def test_a_warm_up_of_zero_is_a_wish_for_none():
    assert matrix(("short", "warm_up_s"), 0).forms["short"].warm_up_s == 0.0


def test_no_configuration_at_all_is_refused():
    with pytest.raises(
        InputError, match=r"^m.yml: configurations: found none; wanted at least one$"
    ):
        read_matrix(document(("configurations",), []), "m.yml")


@pytest.mark.parametrize("document", [None, [], "text", 5])
def test_something_else_than_a_mapping_is_refused(document):
    with pytest.raises(InputError, match=r"^m.yml: found .*; wanted a mapping$"):
        read_matrix(document, "m.yml")


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(InputError) as caught:
        load_matrix(tmp_path / "no.yml")
    assert str(caught.value) == (
        f"{tmp_path}/no.yml: found No such file or directory; wanted a matrix file"
    )


def test_broken_yaml_is_named_with_its_line(tmp_path):
    file = tmp_path / "broken.yml"
    file.write_text("schema: 1\nname: [\n")
    with pytest.raises(InputError, match=rf"^{file}:3: found text that is not YAML \(exp"):
        load_matrix(file)


def test_bytes_that_are_no_text_are_refused(tmp_path):
    file = tmp_path / "binary.yml"
    file.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="wanted a matrix"):
        load_matrix(file)


def test_reading_does_not_change_the_document():
    before = str(DOCUMENT)
    matrix()
    assert str(DOCUMENT) == before
    assert Path("m.yml").suffix == ".yml"
    assert CIPSO["maps"][1]["address"] == "@test_ipv4"
