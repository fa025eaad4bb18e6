"""Records on the host: for one boot, in one step, read strictly."""

import stat

import pytest

from ansible_collections.crossover.lab.plugins.module_utils.host import record
from ansible_collections.crossover.lab.plugins.module_utils.host.errors import HostError


@pytest.fixture(autouse=True)
def boot(tmp_path, monkeypatch):
    path = tmp_path / "boot_id"
    path.write_text("first\n")
    monkeypatch.setattr(record, "BOOT_ID", path)
    return path


def test_values_come_back_in_their_order(tmp_path):
    path = tmp_path / "run" / "x.json"
    record.save_values(path, {"b": "1", "a": "2"})
    assert list(record.recorded_values(path).items()) == [("b", "1"), ("a", "2")]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [item.name for item in path.parent.iterdir()] == ["x.json"]


def test_another_boot_has_forgotten(tmp_path, boot):
    path = tmp_path / "x.json"
    record.save_values(path, {"a": "1"})
    boot.write_text("second\n")
    assert record.recorded_values(path) == {}


def test_nothing_to_remember_leaves_no_file(tmp_path):
    path = tmp_path / "x.json"
    record.save_values(path, {"a": "1"})
    record.save_values(path, {})
    assert not path.exists()
    record.forget(path)


@pytest.mark.parametrize("text", ["", "[]", '{"schema": 2}', '{"schema": 1, "boot_id": "first"}'])
def test_another_format_is_refused_by_name(tmp_path, text):
    path = tmp_path / "x.json"
    path.write_text(text)
    with pytest.raises(HostError, match=r"x\.json: .*wanted"):
        record.recorded_values(path)


@pytest.mark.parametrize("scope", ["", "../x", "a/b", ".hidden", "x" * 65])
def test_a_scope_is_a_plain_name(tmp_path, scope):
    with pytest.raises(HostError, match="scope: found"):
        record.scope_file(tmp_path, "kernel_settings", scope)
