"""The roles' READMEs say what their specifications say."""

import importlib.util
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
ROLES = sorted(path.parent.parent for path in ROOT.glob("roles/*/meta/argument_specs.yml"))

spec = importlib.util.spec_from_file_location("readme_vars", ROOT / "tools" / "readme_vars.py")
readme_vars = importlib.util.module_from_spec(spec)
spec.loader.exec_module(readme_vars)


def test_there_are_roles_to_check():
    assert ROLES


@pytest.mark.parametrize("role", ROLES, ids=lambda role: role.name)
def test_the_readme_of_a_role_is_current(role):
    assert readme_vars.BEGIN in (role / "README.md").read_text()
    assert readme_vars.main(["--check", str(role)]) == 0


@pytest.mark.parametrize("role", ROLES, ids=lambda role: role.name)
def test_defaults_are_those_of_the_specification(role):
    specified = yaml.safe_load((role / "meta" / "argument_specs.yml").read_text())
    options = specified["argument_specs"]["main"].get("options", {})
    defaults = role / "defaults" / "main.yml"
    given = yaml.safe_load(defaults.read_text()) if defaults.exists() else {}
    assert set(given or {}) <= set(options)
    for name, value in (given or {}).items():
        if isinstance(value, str) and "{{" in value:
            continue  # computed where it is used
        assert options[name].get("default") == value, name


def test_a_table_shows_nested_options_choices_and_defaults():
    options = {
        "x_list": {
            "type": "list",
            "elements": "dict",
            "default": [],
            "description": "Items | things.",
            "options": {"name": {"type": "str", "required": True, "description": ["A", "name."]}},
        },
        "x_mode": {"choices": ["a", "b"], "description": "Mode.", "default": "a"},
        "x_free": {"type": "int"},
    }
    assert readme_vars.table(options).splitlines()[2:] == [
        "| `x_list` | list of dict | `[]` | Items \\| things. |",
        "| `x_list[].name` | str | required | A name. |",
        "| `x_mode` | str | `a` | Mode. One of `a`, `b`. |",
        "| `x_free` | int | – |  |",
    ]


def make_role(folder, readme, specs="argument_specs: {main: {options: {x: {type: str}}}}\n"):
    (folder / "meta").mkdir()
    (folder / "README.md").write_text(readme)
    (folder / "meta" / "argument_specs.yml").write_text(specs)
    return str(folder)


def test_checking_tells_and_writing_renews(tmp_path, capsys):
    role = make_role(tmp_path, f"# x\n{readme_vars.BEGIN}\nold\n{readme_vars.END}\nend\n")
    assert readme_vars.main(["--check", role]) == 1
    assert "README.md: out of date" in capsys.readouterr().out
    assert readme_vars.main([role]) == 0
    text = (tmp_path / "README.md").read_text()
    assert text.startswith("# x\n")
    assert text.endswith(f"{readme_vars.END}\nend\n")
    assert "| `x` | str | – |  |" in text
    assert readme_vars.main(["--check", role]) == 0


def test_a_lone_mark_and_a_broken_specification_are_errors(tmp_path, capsys):
    role = make_role(tmp_path, f"{readme_vars.BEGIN}\n")
    assert readme_vars.main([role]) == 2
    assert "one of the two marks" in capsys.readouterr().err
    (tmp_path / "meta" / "argument_specs.yml").write_text("[]")
    assert readme_vars.main([role]) == 2
    assert "wanted a README.md and specs with a main" in capsys.readouterr().err
