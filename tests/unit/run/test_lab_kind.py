"""Which kind of lab an inventory means, and what is refused there before anything starts."""

import copy
import json
from pathlib import Path

import pytest

from collector import cli
from collector.errors import UsageError
from collector.matrix.matrix import load_matrix, read_matrix
from collector.run import lab_kind
from tests.unit import matrix_factory

ROOT = Path(__file__).resolve().parents[3]
MATRICES = ROOT / "playbooks" / "matrices"
NETNS = str(ROOT / "inventories" / "netns")


def plain(**more):
    """A small matrix of plain and IPsec connections without a label."""
    document = copy.deepcopy(matrix_factory.DOCUMENT)
    document["subjects"] = ["ipsec"]
    document["baseline"] = "plain"
    document["configurations"] = [{"name": "plain", "about": "nothing", "ipsec": {}}]
    document["configurations"].append({"name": "other", "about": "another", **more})
    return read_matrix(document, "small.yml")


def test_the_inventory_says_which_kind_it_is():
    assert lab_kind.kind_of(str(ROOT / "inventories" / "qemu")) == "guests"
    assert lab_kind.kind_of(NETNS) == "netns"
    assert lab_kind.kind_of(str(ROOT / "inventories" / "hardware_example")) == "hardware"


@pytest.mark.parametrize("text", ["", "[]", "plugin: other.one", "a: ["])
def test_another_lab_file_is_somebodys_own_hosts(tmp_path, text):
    (tmp_path / "lab.yml").write_text(text)
    assert lab_kind.kind_of(str(tmp_path)) == "hardware"


def test_netlabel_is_refused_on_namespaces_with_the_reason():
    matrix = load_matrix(MATRICES / "netlabel_cipso.yml")
    with pytest.raises(UsageError) as error:
        lab_kind.for_kind(matrix, "netns")
    assert str(error.value) == (
        "matrix netlabel_cipso: its baseline Unlabel cannot be had in a netns lab: NetLabel's maps "
        "are one for the whole kernel, and hosts of a netns lab share this machine's; use the "
        "guests of inventories/qemu or real machines"
    )


@pytest.mark.parametrize("kind", ["guests", "hardware"])
@pytest.mark.parametrize("path", sorted(MATRICES.glob("*.yml")), ids=lambda path: path.stem)
def test_other_kinds_have_everything(kind, path):
    matrix = load_matrix(path)
    assert lab_kind.for_kind(matrix, kind) == matrix


def test_a_label_skips_its_configuration_and_the_rest_runs():
    found = lab_kind.for_kind(plain(label="s0"), "netns")
    assert found.configurations[0].skip is None
    assert (found.configurations[1].skip or "").startswith("label s0: hosts of a netns lab share")


def test_an_ike_daemon_skips_its_configuration():
    ipsec = {
        "keying": "libreswan",
        "connections": [
            {"name": "m", "ends": ["@client_ipv4", "@server_ipv4"], "mode": "transport"}
        ],
    }
    found = lab_kind.for_kind(plain(ipsec=ipsec), "netns")
    assert (found.configurations[1].skip or "").startswith("keying libreswan: an IKE daemon's")


def test_a_kernel_skips_its_configuration():
    found = lab_kind.for_kind(plain(kernel="debian-6.1"), "netns")
    assert (found.configurations[1].skip or "").startswith("kernel debian-6.1: hosts of a netns")


def test_other_kernels_by_option_are_refused(monkeypatch, capsys):
    monkeypatch.setenv("CROSSOVER_INVENTORY", NETNS)
    assert cli.main(["run", "tunnels", "--kernels", "old=a,new=b"]) == 2
    assert "--kernels old=a,new=b: hosts of a netns lab run this" in capsys.readouterr().err
    lab_kind.for_kernels("netns", "none")
    lab_kind.for_kernels("guests", "old=a,new=b")


def test_a_reason_of_the_matrix_itself_stays():
    found = lab_kind.for_kind(plain(label="s0", skip="not today"), "netns")
    assert found.configurations[1].skip == "not today"


def test_the_command_line_refuses_before_it_starts_a_lab(monkeypatch, capsys):
    monkeypatch.setenv("CROSSOVER_INVENTORY", NETNS)
    assert cli.main(["run", "netlabel_cipso", "--short"]) == 2
    assert "NetLabel's maps are one for the whole kernel" in capsys.readouterr().err


def test_a_plan_is_that_of_the_inventory(monkeypatch, capsys):
    monkeypatch.setenv("CROSSOVER_INVENTORY", NETNS)
    assert cli.main(["plan", "netlabel_cipso"]) == 2
    assert "NetLabel's maps are one for the whole kernel" in capsys.readouterr().err
    assert cli.main(["plan", "tunnels", "--kernels", "old=a,new=b"]) == 2
    assert "--kernels old=a,new=b: hosts of a netns lab run this" in capsys.readouterr().err
    assert cli.main(["plan", "tunnels", "--json"]) == 0
    lab = json.loads(capsys.readouterr().out)["lab"]
    assert (lab["kind"], lab["accelerator"]) == ("netns", "none")


def test_a_stress_run_is_refused_on_namespaces(monkeypatch, capsys):
    monkeypatch.setenv("CROSSOVER_INVENTORY", NETNS)
    assert cli.main(["stress", "ipsec_stress", "--hours", "1"]) == 2
    assert "crossover: stress: systemd keeps the streams" in capsys.readouterr().err
