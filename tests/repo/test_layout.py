"""The rules of the layout that a tool does not check: names, sizes, rooms, what no task does."""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
# About 400 lines of code; tables of cases make tests longer.
CODE_LINES, TEST_LINES, TASK_LINES = 420, 600, 80
ROLES = sorted(path for path in (ROOT / "roles").iterdir() if path.is_dir())
TASK_FILES = sorted(ROOT.glob("roles/*/tasks/*.yml")) + sorted(ROOT.glob("roles/*/handlers/*.yml"))
PLAYBOOKS = sorted(ROOT.glob("playbooks/*.yml"))
SCENARIOS = sorted(ROOT.glob("molecule/*/*.yml"))
GROUPS = {"measured", "clients", "servers", "controller", "testers", "duts"}
# Plain words that say what a playbook does with its group; anything else would be logic.
PLAY_KEYS = {"name", "hosts", "roles", "tasks", "vars", "any_errors_fatal", "ignore_unreachable"}
# Parts of a role, where not all of it is meant.
ROLE_TASKS = {"ansible.builtin.include_role", "ansible.builtin.import_role"}
# What cannot be checked, compared or quoted safely.
FORBIDDEN_MODULES = {"shell", "raw", "script", "expect"}
# Roles whose scenario has another name, because it needs more than the role.
SCENARIO_OF = {"lab_qemu": "default", "bench_run": "end_to_end"}
# Brings programs to the machine that runs the tests, which therefore has them already.
WITHOUT_SCENARIO = {"controller"}
TARGET = [
    path
    for path in [*ROOT.glob("plugins/modules/*.py"), *ROOT.glob("plugins/module_utils/**/*.py")]
    # These run on the controller, from its own Python.
    if "lab" not in path.parts[:-1] and path.stem not in ("qemu_lab", "guest_image")
]
OFFLINE = [path for path in ROOT.glob("collector/**/*.py") if path.name != "runner.py"]
PYTHON = [
    path
    for folder in ("collector", "plugins", "tools", "tests")
    for path in ROOT.glob(f"{folder}/**/*.py")
    if "kernel_state" not in path.parts or "plugins" in path.parts
]


def relative(path):
    return str(path.relative_to(ROOT))


def tasks_of(data):
    """Each task of a task file or of the plays of a playbook, blocks opened."""
    for item in data or []:
        if not isinstance(item, dict):
            continue
        if "hosts" in item:
            for part in ("pre_tasks", "tasks", "post_tasks", "handlers"):
                yield from tasks_of(item.get(part))
            continue
        yield item
        for part in ("block", "rescue", "always"):
            yield from tasks_of(item.get(part))


def imported(path):
    """Top-level names of the modules that a file imports; relative ones left out."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield node.module or ""


def test_there_is_something_to_check():
    for found in (ROLES, TASK_FILES, PLAYBOOKS, SCENARIOS, TARGET, OFFLINE, PYTHON):
        assert found


@pytest.mark.parametrize("path", PLAYBOOKS + SCENARIOS, ids=relative)
def test_a_play_names_a_group(path):
    for play in yaml.safe_load(path.read_text()) or []:
        if isinstance(play, dict) and "hosts" in play:
            assert play["hosts"] in GROUPS


@pytest.mark.parametrize("path", PLAYBOOKS, ids=relative)
def test_a_playbook_is_groups_and_roles(path):
    for play in yaml.safe_load(path.read_text()):
        if "ansible.builtin.import_playbook" not in play:
            assert set(play) <= PLAY_KEYS
            entries = [set(task) & ROLE_TASKS for task in play.get("tasks", [])]
            assert play.get("roles") or entries
            assert all(entries), "a task that is not a part of a role"


@pytest.mark.parametrize("path", TASK_FILES + SCENARIOS, ids=relative)
def test_no_task_hides_a_failure_or_asks_a_shell(path):
    data = yaml.safe_load(path.read_text())
    for task in tasks_of(data if isinstance(data, list) else []):
        assert "ignore_errors" not in task, task["name"]
        modules = {key.rsplit(".", 1)[-1] for key in task}
        assert not modules & FORBIDDEN_MODULES, task["name"]


@pytest.mark.parametrize("path", TASK_FILES, ids=relative)
def test_a_task_file_can_be_read_at_one_go(path):
    assert len(path.read_text().splitlines()) <= TASK_LINES


@pytest.mark.parametrize("path", PYTHON, ids=relative)
def test_a_python_file_has_one_concern(path):
    limit = TEST_LINES if "tests" in path.parts else CODE_LINES
    assert len(path.read_text().splitlines()) <= limit


@pytest.mark.parametrize("role", ROLES, ids=lambda role: role.name)
def test_a_role_is_described(role):
    for name in ("README.md", "meta/argument_specs.yml", "meta/main.yml", "defaults/main.yml"):
        assert (role / name).is_file(), name
    if role.name not in WITHOUT_SCENARIO:
        scenario = ROOT / "molecule" / SCENARIO_OF.get(role.name, role.name)
        assert (scenario / "verify.yml").is_file()


@pytest.mark.parametrize("role", ROLES, ids=lambda role: role.name)
def test_the_variables_of_a_role_carry_its_name(role):
    public, private = f"{role.name}_", f"__{role.name}_"
    specified = yaml.safe_load((role / "meta" / "argument_specs.yml").read_text())
    options = set(specified["argument_specs"]["main"]["options"])
    defaults = set(yaml.safe_load((role / "defaults" / "main.yml").read_text()) or {})
    assert all(name.startswith(public) for name in options)
    assert defaults <= options
    for path in role.glob("vars/*.yml"):
        for name in yaml.safe_load(path.read_text()) or {}:
            assert name.startswith(private), name
    for path in role.glob("tasks/*.yml"):
        for task in tasks_of(yaml.safe_load(path.read_text())):
            names = {task.get("register"), (task.get("loop_control") or {}).get("loop_var")}
            names |= set(task.get("ansible.builtin.set_fact") or {}) - {"cacheable"}
            for name in names - {None}:
                assert name.startswith((private, public)), f"{task['name']}: {name}"


@pytest.mark.parametrize("role", ROLES, ids=lambda role: role.name)
def test_a_sentence_stands_above_each_default(role):
    previous = ""
    for line in (role / "defaults" / "main.yml").read_text().splitlines():
        if re.match(r"\w+:", line):
            assert previous.startswith("# "), line
        previous = line


@pytest.mark.parametrize("path", TARGET, ids=relative)
def test_target_code_needs_a_plain_python_3_9(path):
    ast.parse(path.read_text(), feature_version=(3, 9))
    for name in imported(path):
        own = name.startswith(
            ("ansible.module_utils", "ansible_collections.crossover.lab.plugins.module_utils")
        )
        assert own or name.split(".")[0] in sys.stdlib_module_names, name


@pytest.mark.parametrize("path", OFFLINE, ids=relative)
def test_the_collector_knows_nothing_of_ansible(path):
    for name in imported(path):
        assert name.split(".")[0] not in ("ansible", "ansible_runner", "ansible_collections")


@pytest.mark.parametrize("path", PYTHON, ids=relative)
def test_a_skipped_finding_has_its_reason_beside_it(path):
    lines = path.read_text().splitlines()
    for number, line in enumerate(lines):
        if re.search(r"#\s*noqa(:|\b)", line) and path != Path(__file__).resolve():
            reasoned = re.search(r"#\s*noqa: [A-Z0-9, ]+\s+[#—-]", line)
            above = lines[number - 1].lstrip().startswith("#")
            assert reasoned or above, f"line {number + 1}: {line.strip()}"


def test_every_decision_has_a_number_of_its_own_and_bears_it():
    files = sorted((ROOT / "docs" / "decisions").glob("*.md"))
    numbers = [file.name.partition("-")[0] for file in files]
    assert numbers == [f"{number:04d}" for number in range(1, len(files) + 1)]
    for file, number in zip(files, numbers, strict=True):
        assert file.read_text(encoding="utf-8").startswith(f"# {number} "), file.name
