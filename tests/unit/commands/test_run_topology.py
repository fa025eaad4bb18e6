"""The topology that ``crossover run`` is told to measure in."""

import pytest

from collector.commands import run as run_command
from collector.errors import UsageError
from collector.matrix.matrix import load_matrix
from collector.run.campaign import find_matrix

FORWARDING = load_matrix(find_matrix("forwarding"))
NETPERF = load_matrix(find_matrix("netlabel_cipso"))


@pytest.mark.parametrize("topology", ["dut", "chain"])
@pytest.mark.parametrize("kind", ["guests", "netns"])
def test_a_forwarding_matrix_is_measured_in_either_form(topology, kind):
    run_command.check_topology(topology, FORWARDING, kind)


@pytest.mark.parametrize(
    ("topology", "matrix", "kind", "text"),
    [
        ("pair", FORWARDING, "guests", "forwarding is measured in another; wanted dut or chain"),
        ("chain", NETPERF, "guests", "netlabel_cipso is measured in another; wanted pair"),
        ("chain", FORWARDING, "hardware", "the hosts are those of the inventory"),
    ],
)
def test_a_topology_that_is_not_to_be_had_is_told(topology, matrix, kind, text):
    with pytest.raises(UsageError, match=f"^--topology {topology}: {text}"):
        run_command.check_topology(topology, matrix, kind)
