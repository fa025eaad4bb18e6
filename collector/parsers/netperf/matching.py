"""Which run can have printed what: tests against the shapes and forms of output."""

from __future__ import annotations

from .command import Command
from .numbers import TRANSACTIONS
from .omni import Row
from .runs import Run, kind_of
from .tables import BY_NAME, Shape

_KINDS = {"stream": "stream", "maerts": "stream", "udp": "udp_stream", "rr": "request_response"}


def shape_fits_test(shape: Shape, test: str) -> bool:
    """Whether a test prints tables of this shape. The omni test prints none at all."""
    if test.startswith("OMNI"):
        return False
    if not test or kind_of(test) != _KINDS[shape.name.split("_")[0]]:
        return not test
    if shape.name == "maerts_cpu":
        return test.endswith("MAERTS")
    if shape.name == "stream_cpu":
        return test != "TCP_MAERTS"
    if shape.name.startswith("rr_throughput"):
        # TCP_CRR keeps the titles of transactions, TCP_CC and SCTP know no other unit.
        return test in {"TCP_RR", "UDP_RR"}
    return True


def table_fits(run: Run, shape: Shape) -> bool:
    """Whether an open run can have printed a classic table of this shape."""
    if run.command is not None and run.command.output is not None:
        return False
    return run.banner is None or shape_fits_test(shape, run.banner.test)


def omni_fits(run: Run, row: Row, form: str) -> bool:
    """Whether an open run can have printed this row in this form (keyval, csv, human)."""
    if run.command is not None and output_of(run.command) != form:
        return False
    if run.banner is None or not run.banner.test:
        return True
    unit = row.printed.get("THROUGHPUT_UNITS", "")
    return run.banner.concerns_requests or not unit.startswith(TRANSACTIONS)


def output_of(command: Command) -> str | None:
    """The form of output that a command asks for; None is the classic one."""
    if command.output is None and command.test == "OMNI":
        return "human"
    return command.output


def number_fits(run: Run) -> bool:
    """Whether an open run can have printed the one number of ``-v 0``."""
    command = run.command
    return command is None or (command.verbosity == 0 and command.output is None)


def shape_of(command: Command, unit: str | None) -> tuple[Shape | None, str | None]:
    """The table that a command with ``-P 0`` prints the rows of, and the unit of its rate.

    ``unit`` is the unit that its ``-f`` or its test makes the rate have.
    """
    kind = kind_of(command.test)
    cpu = command.cpu_local or command.cpu_remote
    name = {"udp_stream": "udp_stream", "request_response": "rr", "stream": "stream"}.get(kind)
    if name is None or command.test == "OMNI":
        return None, None
    if name == "rr" and unit != TRANSACTIONS and command.test in {"TCP_RR", "UDP_RR"}:
        name = "rr_throughput"
    if name == "stream" and cpu and command.test.endswith("MAERTS"):
        name = "maerts"
    shape = BY_NAME[f"{name}_cpu" if cpu else name]
    return shape, None if name == "rr" else unit
