"""What a module documents is what it takes; ansible-test checks nothing in a tree of links."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[3]
MODULES = sorted(path.stem for path in ROOT.glob("plugins/modules/*.py"))
PREFIX = "ansible_collections.crossover.lab.plugins.modules."
FRAGMENTS = "ansible_collections.crossover.lab.plugins.doc_fragments."
PROSE = {"description", "version_added", "suboptions"}


class SpecificationSeenError(Exception):
    """Ends a module's main at the moment when it says what it takes."""


@pytest.fixture
def load(monkeypatch):
    """Returns (documentation, keywords of AnsibleModule) of a module."""

    def find(name):
        module = importlib.import_module(PREFIX + name)

        def stand_in(*_arguments, **keywords):
            raise SpecificationSeenError(keywords)

        monkeypatch.setattr(module, "AnsibleModule", stand_in)
        with pytest.raises(SpecificationSeenError) as seen:
            module.main()
        return module, seen.value.args[0]

    return find


def compare(where, documented, specified):
    """Assert that both name the same options with the same types, defaults and choices."""
    assert set(documented) == set(specified), where
    for name, option in documented.items():
        given = specified[name]
        for key, plain in (("type", "str"), ("required", False)):
            assert option.get(key, plain) == given.get(key, plain), f"{where}{name}: {key}"
        for key in ("default", "choices", "elements", "aliases"):
            assert option.get(key) == given.get(key), f"{where}{name}: {key}"
        unknown = set(option) - PROSE - {"type", "required", "default", "choices", "elements"}
        assert unknown <= {"aliases"}, f"{where}{name}: {unknown}"
        assert option.get("description"), f"{where}{name}: description"
        compare(f"{where}{name}.", option.get("suboptions") or {}, given.get("options") or {})


def shared_options(fragment):
    """The options that a documentation fragment of this collection brings."""
    collection, _, name = fragment.rpartition(".")
    assert collection == "crossover.lab"
    found = importlib.import_module(FRAGMENTS + name).ModuleDocFragment
    return yaml.safe_load(found.DOCUMENTATION)["options"]


def test_there_are_modules_to_check():
    assert MODULES


@pytest.mark.parametrize("name", MODULES)
def test_the_documentation_has_the_options_that_the_module_takes(load, name):
    module, keywords = load(name)
    documentation = yaml.safe_load(module.DOCUMENTATION)
    assert documentation["module"] == name
    options = dict(documentation.get("options", {}))
    for fragment in documentation.get("extends_documentation_fragment", []):
        assert not set(options) & set(shared_options(fragment)), fragment
        options.update(shared_options(fragment))
    compare(f"{name}: ", options, keywords["argument_spec"])


@pytest.mark.parametrize("name", MODULES)
def test_the_documentation_says_how_far_check_and_diff_mode_go(load, name):
    module, keywords = load(name)
    attributes = yaml.safe_load(module.DOCUMENTATION)["attributes"]
    supported = bool(keywords.get("supports_check_mode"))
    assert (attributes["check_mode"]["support"] != "none") == supported
    assert attributes["diff_mode"]["support"] in ("full", "partial", "none")


@pytest.mark.parametrize("name", MODULES)
def test_examples_are_tasks_with_a_name_that_use_known_options(load, name):
    module, keywords = load(name)
    for task in yaml.safe_load(module.EXAMPLES):
        assert task["name"]
        arguments = task.get(f"crossover.lab.{name}")
        if isinstance(arguments, dict):
            assert set(arguments) <= set(keywords["argument_spec"])


@pytest.mark.parametrize("name", MODULES)
def test_each_returned_value_is_described(name):
    module = importlib.import_module(PREFIX + name)
    for key, value in (yaml.safe_load(module.RETURN) or {}).items():
        assert value["description"], key
        assert value["type"], key
        assert value["returned"], key
