"""netlabelctl as records: cases 34, 37 and 39."""

from kernel_documents import case, document

from collector.parsers import netlabelctl
from collector.parsers.base import Status


def kinds(reading):
    return [record.kind for record in reading.records]


def test_case_34_listings_plain_and_pretty():
    reading = netlabelctl.parse(case("34-a.txt"))
    assert reading.problems == []
    dois = [record for record in reading.records if record.kind == "doi"]
    assert [(item.doi, item.mapping, item.tags) for item in dois] == [
        (100, "local", (128,)),
        (101, "pass", (1, 2)),
        (102, "pass", (1, 2, 5)),
    ]
    assert all(item.levels is None and item.categories is None for item in dois)
    compact, pretty = (record for record in reading.records if record.kind == "map")
    assert [entry.selector for entry in compact.entries] == [
        "192.0.2.4/32", "0.0.0.0/0", "::1:2:3:4/128", "::/0", None,
    ]  # fmt: skip
    assert compact.unmapped == ()
    assert [(entry.selector, entry.protocol, entry.doi) for entry in pretty.entries] == [
        ("192.0.2.0/24", "cipso", 1),
        ("198.51.100.0/24", "cipso", 2),
    ]
    assert pretty.unmapped == ("IPv4", "IPv6")
    assert (pretty.source.line, pretty.source.last_line) == (6, 12)


def test_case_34_a_translation_given_to_pass_is_an_error_of_the_script():
    script = next(r for r in netlabelctl.parse(case("34-a.txt")).records if r.kind == "script")
    assert script.status is Status.SUSPECT
    assert len(script.errors) == 2
    assert "levels: pass takes no translation" in script.errors[0]


def test_case_37_namespaces_and_a_script_without_fault():
    reading = netlabelctl.parse(case("37-a.txt"))
    assert reading.problems == []
    script, failure = reading.records
    assert (script.kind, script.errors, script.dois) == ("script", (), (16,))
    assert [entry.selector for entry in script.entries] == ["0.0.0.0/0", "::/0", "192.0.2.2/32"]
    assert failure.status is Status.FAILED
    assert failure.failure.error_class == "netlabel_unavailable"
    assert "CIPSO cells need real hosts or VMs" in failure.failure.hint


def test_case_39_only_two_networks_are_mapped():
    reading = netlabelctl.parse(case("39-a.txt"))
    assert kinds(reading) == ["script"]
    script = reading.records[0]
    assert "no 0.0.0.0/0 and ::/0 mapping" in script.errors[0]
    assert any("2001:db8::1/32 has host bits set" in text for text in script.warnings)
    assert any("CALIPSO" in text for text in script.warnings)


def test_the_number_of_a_plain_doi_comes_from_the_command_above():
    reading = netlabelctl.parse(
        document("# netlabelctl cipso list doi:7\ntags:1 levels:0=0 categories:1=2\n")
    )
    assert reading.records[0].doi == 7
    assert reading.records[0].levels == {0: 0}
    alone = netlabelctl.parse(document("tags:1,2\n")).records[0]
    assert alone.doi is None
    assert alone.warnings == ("the listing does not say the DOI's number",)


def test_all_listings_of_a_host_one_after_the_other():
    text = (
        "Configured CIPSO mappings (1)\n DOI value : 16\n   mapping type : TRANSLATED\n"
        "Configured CIPSO mapping (DOI = 16)\n tags (1): \n   RESTRICTED BITMAP\n"
        " levels (1): \n   0 = 0\n categories (1): \n   0 = 0\n"
        "Accept unlabeled packets : on\nConfigured NetLabel address mappings (1)\n"
        ' interface: lo\n   address: 127.0.0.1/32\n    label: "a_u:b_r:c_t:s0"\n'
        "Configured NetLabel domain mappings (1)\n domain: DEFAULT (IPv4)\n"
        "   protocol: CIPSO, DOI = 16\n"
        "16,TRANSLATED 17,LOCAL\n"
        "accept:off\n"
    )
    reading = netlabelctl.parse(document(text))
    assert reading.problems == []
    assert kinds(reading) == ["dois", "doi", "unlabelled", "map", "dois", "unlabelled"]
    assert reading.records[3].unmapped == ("IPv6",)
    assert reading.records[2].static[0].label == "a_u:b_r:c_t:s0"
    assert reading.claimed == set(range(1, len(text.splitlines()) + 1))


def test_a_cut_listing_is_a_problem_with_its_place():
    reading = netlabelctl.parse(document("prose\n\ndomain:DEFAULT,CIPSOv4,\n", "list.txt"))
    assert reading.records == []
    assert str(reading.problems[0]).startswith("list.txt:3: found 'CIPSOv4,'; wanted address:")


def test_prose_is_left_alone():
    text = document("Between `map del default` and the next command nothing is mapped.\n")
    assert not netlabelctl.recognise(text)
    assert netlabelctl.parse(text).records == []
