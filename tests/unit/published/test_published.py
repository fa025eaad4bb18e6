"""The figures of the four posts are what was published, and a broken file says where."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector import published
from collector.errors import InputError, UsageError
from collector.published import si_value
from collector.published.reading import published_from_yaml

# Retyped a second time and apart from the data files, so that a slip in one shows.
NETLABEL = """\
NoPatch 941.52 961.61 10778.58 10901.03
Disable 941.53 961.60 10814.46 11129.77
Unlabel 941.51 961.61 10769.00 10896.26
C_NoCat 932.30 954.04 9904.58 10106.00
C_FlCat 625.46 935.52 9110.29 9262.92
C_F_LxV 686.46 935.53 9325.37 9484.93
C_F_NoC 328.69 935.53 6258.61 6415.35
"""
IPSEC = """\
tcp_stream_57344 22.87 23.22
tcp_stream_32768 23.05 23.02
tcp_rr_1_1 878.09 877.30
udp_rr_1_1 1105.25 1105.03
udp_rr_516_4 756.26 689.66
udp_stream_4096 21.88 23.75
udp_stream_1024 18.91 20.94
"""
FORWARDING = """\
64 14 20 21 17 19
128 22 33 34 28 32
256 37 52 58 49 54
512 67 85 83 85 85
1024 100 100 100 100 100
1280 100 100 100 100 100
1518 100 100 100 100 100
"""


def test_there_are_the_four_experiments() -> None:
    assert published.names() == ("forwarding", "labelled_ipsec", "netlabel_cipso", "tunnels")


def test_netlabel_figures_with_units() -> None:
    experiment = published.load("netlabel_cipso")
    tests = ["tcp_stream", "udp_stream", "tcp_rr", "udp_rr"]
    for line in NETLABEL.splitlines():
        name, *values = line.split()
        for test, text in zip(tests, values, strict=True):
            figure = experiment.figure(name, test)
            assert figure is not None
            assert figure.printed == text
            assert figure.unit == ("1/s" if test.endswith("rr") else "bit/s")
    assert len(experiment.figures) == 28
    stream = experiment.figure("C_F_NoC", "tcp_stream")
    assert stream is not None
    assert stream.value == 328_690_000.0


def test_ipsec_figures_and_the_unmet_confidences() -> None:
    experiment = published.load("labelled_ipsec")
    for line in IPSEC.splitlines():
        test, with_label, without = line.split()
        labelled = experiment.figure("labelled", test)
        unlabelled = experiment.figure("unlabelled", test)
        assert labelled is not None
        assert unlabelled is not None
        assert (labelled.printed, unlabelled.printed) == (with_label, without)
    unmet = {
        (f.configuration, f.test): f.unmet_width_pct
        for f in experiment.figures
        if f.unmet_width_pct is not None
    }
    assert unmet == {
        ("labelled", "tcp_stream_32768"): 8.2,
        ("unlabelled", "tcp_stream_32768"): 9.8,
        ("unlabelled", "udp_rr_516_4"): 57.0,
    }
    sent = experiment.figure("unlabelled", "udp_stream_4096", "send_throughput")
    assert sent is not None
    assert sent.printed == "34.45"
    assert [run.hours for run in experiment.stress_runs] == [24, 48, 18, 24, 24]
    first = experiment.test("tcp_stream_57344").command
    assert first is not None
    assert " ".join(first) == (
        "netperf -t TCP_STREAM -l 60 -H xxxx -i 10,3 -I 99,5 -- -s 57344 -S 57344 -m 4096"
    )


def test_forwarding_figures_and_the_dip() -> None:
    experiment = published.load("forwarding")
    kernels = [configuration.name for configuration in experiment.configurations]
    assert kernels == ["2.6.23", "2.6.24", "2.6.26", "2.6.29", "2.6.30"]
    for line in FORWARDING.splitlines():
        size, *values = line.split()
        for kernel, text in zip(kernels, values, strict=True):
            figure = experiment.figure(kernel, f"size_{size}")
            assert figure is not None
            assert (figure.printed, figure.unit) == (text, "%")
    assert experiment.ratio("2.6.29", "size_64") == pytest.approx(17 / 21)
    pinned = experiment.figure("2.6.26", "size_64_pinned")
    assert pinned is not None
    assert pinned.value == 32.0


def test_tunnel_figures_with_the_cpu_of_both_ends() -> None:
    experiment = published.load("tunnels")
    names = ("cpu_local", "cpu_remote", "throughput")
    found = {
        (configuration.name, test.name): tuple(
            figure.printed
            for name in names
            if (figure := experiment.figure(configuration.name, test.name, name)) is not None
        )
        for configuration in experiment.configurations
        for test in experiment.tests
    }
    assert found == {
        ("VXLAN", "tcp_stream_1"): ("1.26", "8.62", "4.9"),
        ("STT", "tcp_stream_1"): ("1.01", "1.8", "9.45"),
        ("VXLAN", "tcp_stream_5"): ("9.7", "70", "9.05"),
        ("STT", "tcp_stream_5"): ("5.85", "14", "9.47"),
    }
    varying = experiment.figure("VXLAN", "tcp_stream_5", "cpu_remote")
    assert varying is not None
    assert varying.range_printed == ("60", "80")


@pytest.mark.parametrize("name", published.names())
def test_every_experiment_names_its_source_and_machines(name: str) -> None:
    experiment = published.load(name)
    assert experiment.name == name
    assert experiment.source.author
    assert experiment.source.list in {"redhat-lspp", "netdev"}
    assert experiment.source.date is not None or experiment.source.date_note is not None
    assert experiment.hardware
    assert experiment.comments


@pytest.mark.parametrize("name", published.names())
def test_every_figure_has_a_ratio_or_no_baseline(name: str) -> None:
    experiment = published.load(name)
    for test in experiment.tests:
        base = experiment.figure(experiment.baseline, test.name)
        for configuration in experiment.configurations:
            figure = experiment.figure(configuration.name, test.name)
            ratio = experiment.ratio(configuration.name, test.name)
            assert (ratio is None) == (figure is None or base is None)


def test_the_order_of_configurations() -> None:
    order = published.load("netlabel_cipso").order("tcp_rr")
    assert order[-4:] == ("C_NoCat", "C_F_LxV", "C_FlCat", "C_F_NoC")


def test_an_unknown_name_is_wrong_use() -> None:
    with pytest.raises(UsageError, match="found 'nope'; wanted one of forwarding, labelled_ipsec"):
        published.load("nope")


MINIMAL = """\
schema: 1
name: x
title: X
shape: netlabel
baseline: a
source: {author: A, list: L, date: null, date_note: n, subject: null, subject_note: null}
hardware: [h]
conditions: [c]
comments: [k]
configurations:
  - {name: a, description: d, factors: {}}
tests:
  - name: t
    quantities:
      - {name: throughput, unit: 1/s, printed_unit: per sec, scale: 1, higher_is_better: true}
figures:
  - {configuration: a, test: t, printed: "1.5"}
"""


def test_the_minimal_document_reads() -> None:
    assert published_from_yaml(MINIMAL, "x.yml").figures[0].value == 1.5


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("schema: 1", "schema: 2", "x.yml.schema: found 2; wanted 1"),
        ("title: X", "title: [X]", "x.yml.title: found ['X']; wanted a text"),
        ("title: X\n", "title: X\ntitel: Y\n", "x.yml.titel: found an unknown key"),
        ("baseline: a", "baseline: b", "x.yml.baseline: found 'b'; wanted the name of a config"),
        ("test: t,", "test: u,", "x.yml.figures[0].test: found 'u'; wanted one that exists"),
        ("configuration: a,", "configuration: b,", "x.yml.figures[0].configuration: found 'b'"),
        ('printed: "1.5"', "printed: 1.5", "x.yml.figures[0].printed: found 1.5; wanted a text"),
        ('"1.5"', '"1,5"', "x.yml.figures[0]: found '1,5'; wanted a plain number"),
        ('"1.5"', '"nan"', "x.yml.figures[0]: found 'nan'; wanted a plain number"),
        ("scale: 1", "scale: true", "scale: found True; wanted a whole number"),
        (
            'printed: "1.5"}',
            'printed: "1.5"}\n  - {configuration: a, test: t, printed: "2"}',
            "x.yml.figures[1]: found a second figure of the same cell",
        ),
        ('printed: "1.5"', 'printed: "1.5", quantity: q', "quantity: found 'q'; wanted one of t's"),
        ("hardware: [h]", "hardware: h", "x.yml.hardware: found 'h'; wanted a list of texts"),
        ("name: x\n", "name: [\n", "x.yml: found text that is no YAML"),
    ],
)
def test_a_broken_document_says_where(old: str, new: str, message: str) -> None:
    assert old in MINIMAL
    with pytest.raises(InputError, match=re.escape(message)):
        published_from_yaml(MINIMAL.replace(old, new, 1), "x.yml")


@given(st.integers(0, 10**7), st.integers(0, 999), st.sampled_from([1, 10**6, 10**9]))
def test_printed_values_convert_exactly(whole: int, thousandths: int, scale: int) -> None:
    text = f"{whole}.{thousandths:03d}"
    assert si_value(text, scale) == (whole * 1000 + thousandths) * scale / 1000


@given(st.text(max_size=12))
def test_a_text_that_is_no_number_is_refused(text: str) -> None:
    if re.fullmatch(r"[0-9]+(\.[0-9]+)?", text):
        return
    with pytest.raises(ValueError, match=f"^{re.escape(text)}$"):
        si_value(text, 1)
