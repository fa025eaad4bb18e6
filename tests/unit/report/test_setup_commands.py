"""The commands that build a configuration by hand stand in the report, ready to type."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import build_run
import pytest

from collector.errors import InputError
from collector.report.loading import load_report
from collector.report.markdown import run_markdown
from collector.report.setup_commands import setup_of
from collector.report.text import run_text
from collector.report.words import command_line, command_lines
from collector.runfolder.runfolder import load_run

LINES = [
    "ip link add name xt0 type vxlan id 42 local 198.18.0.1 remote 198.18.0.2 dstport 4789 ttl 64",
    "printf '%s\\n' \"$KEY_XT0_PRIVATE\" | wg set xt0 private-key /dev/stdin",
]


def write(folder: Path, document: object) -> None:
    run = load_run(folder)
    path = folder / "evidence" / run.plan.cells[-1].cell_id / "0" / "setup.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document))


def test_a_report_has_them_by_configuration_and_host(tmp_path: Path) -> None:
    folder = build_run.build_run(tmp_path / "run", build_run.tiny())
    write(folder, {"schema": 1, "hosts": {"client": LINES, "server": []}})
    run = load_run(folder)
    (group,) = setup_of(folder, run.plan)
    name = run.plan.cells[-1].configuration
    assert (group.title, group.argvs) == (f"{name}, built by hand on the client", tuple(LINES))
    text = run_text(load_report(folder))
    assert f"{name}, built by hand on the client:" in text
    assert "printf '%s\\n' \"$KEY_XT0_PRIVATE\" | wg set xt0" in text


DOCUMENT = "(umask 077 && cat >/run/x) <<'END'\nconn a\n\tleft=198.18.0.1\nEND"


def test_what_all_hosts_type_stands_once_and_a_document_as_it_is(tmp_path: Path) -> None:
    folder = build_run.build_run(tmp_path / "run", build_run.tiny())
    write(folder, {"schema": 1, "hosts": {"client": [DOCUMENT], "server": [DOCUMENT]}})
    run = load_run(folder)
    (group,) = setup_of(folder, run.plan)
    assert group.title.endswith(", built by hand on the client and the server")
    report = load_report(folder)
    for text in (run_text(report), run_markdown(report)):
        assert f"\n{DOCUMENT}\n" in text


def test_a_run_without_them_has_no_group(tmp_path: Path) -> None:
    folder = build_run.build_run(tmp_path / "run", build_run.tiny())
    assert setup_of(folder, load_run(folder).plan) == ()


def test_another_shape_is_named(tmp_path: Path) -> None:
    folder = build_run.build_run(tmp_path / "run", build_run.tiny())
    write(folder, {"schema": 1, "hosts": ["client"]})
    with pytest.raises(InputError, match=r"setup\.json"):
        setup_of(folder, load_run(folder).plan)


@pytest.mark.parametrize(
    "line",
    [
        LINES[0],
        'K=${K:-0x$(printf %s "$SECRET '
        + "test 1 " * 8
        + '" | sha512sum | cut -c 1-4)}; echo $K | cat',
        "printf '%s|' "
        + "'two  words' \"and  'three'  more\" it\\'s $(echo  substituted  ')  ' | cat) " * 3,
    ],
)
def test_a_line_means_the_same_when_it_is_wrapped(line: str, tmp_path: Path) -> None:
    wrapped = command_lines(line)
    assert "\\\n" in wrapped
    said = [
        subprocess.run(
            ["/bin/sh", "-c", f"ip() {{ echo $*; }}; wg() {{ echo $*; }}; {text}"],
            env={"PATH": os.environ["PATH"], "SECRET": "x", "KEY_XT0_PRIVATE": "y"},
            capture_output=True, text=True, check=True, timeout=30,
        ).stdout
        for text in (line, wrapped)
    ]  # fmt: skip
    assert said[0] == said[1] != ""


def test_a_comment_is_not_wrapped() -> None:
    comment = "# " + "word " * 30
    assert command_lines(comment) == comment


def test_a_line_for_a_shell_is_wrapped_and_not_quoted_again() -> None:
    assert command_line(LINES[1]) == LINES[1]
    wrapped = command_lines(LINES[0])
    assert all(len(line) <= 76 for line in wrapped.splitlines())
    assert wrapped.replace(" \\\n", " ").split() == LINES[0].split()
