"""The cipso module under a kernel that has no NetLabel: nothing to declare, nothing to remove."""

import pytest

from ansible_collections.crossover.lab.plugins.module_utils import cipso_host
from ansible_collections.crossover.lab.plugins.module_utils.cipso_apply import carry_out, prepare
from ansible_collections.crossover.lab.plugins.module_utils.cipso_host import CipsoError, Host

DOI = {"number": 16, "type": "pass", "tags": [1]}


def refuse(argv):
    raise AssertionError(f"{argv}: such a kernel has nobody to ask")


@pytest.fixture
def host(tmp_path, monkeypatch):
    """A host whose kernel has no CIPSO parameters, in the initial network namespace."""
    monkeypatch.setattr(cipso_host.os.path, "samefile", lambda one, other: True)
    (tmp_path / "ipv4").mkdir()
    return Host(refuse, tmp_path / "run" / "cipso.json", tmp_path / "ipv4", tmp_path / "guard")


@pytest.mark.parametrize("state", ["present", "absent"])
def test_nothing_is_there_and_nothing_is_changed(host, state):
    change = prepare({"state": state, "exclusive": False, "management": []}, host)
    result = carry_out(change, {}, host)
    assert result["changed"] is False
    assert result["netlabel"] is False
    assert result["state"] == {"dois": [], "maps": []}
    assert result["commands"] == []


@pytest.mark.parametrize(
    "declared",
    [{"dois": [DOI]}, {"maps": [{"protocol": "unlbl"}]}, {"sysctls": {"cipso_cache_enable": 0}},
     {"unlabelled": {"accept": True}}],
)  # fmt: skip
def test_what_is_declared_needs_another_kernel(host, declared):
    with pytest.raises(CipsoError, match="has no NetLabel; wanted one with CONFIG_NETLABEL, or"):
        prepare({"state": "present", "exclusive": False, "management": [], **declared}, host)


def test_in_a_network_namespace_the_parameters_say_nothing_of_the_kernel(host, monkeypatch):
    monkeypatch.setattr(cipso_host.os.path, "samefile", lambda one, other: False)
    assert cipso_host.has_netlabel(host)


def test_a_host_that_hides_its_namespaces_is_asked(host, monkeypatch):
    def hidden(one, other):
        raise PermissionError

    monkeypatch.setattr(cipso_host.os.path, "samefile", hidden)
    assert cipso_host.has_netlabel(host)
