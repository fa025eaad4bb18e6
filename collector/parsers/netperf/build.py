"""From a table that was read to the fields of a record."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

from ..base import Status
from .banner import Banner
from .blocks import Widths
from .command import Command
from .confidence import of_classic
from .numbers import MISLABELLED, TRANSACTIONS, measured, scaled, unit_factor, unit_of_letter
from .records import Alternate, Interim
from .tables import Table

_COPIED = ("recv_socket_bytes", "send_socket_bytes", "message_bytes", "request_bytes",
           "response_bytes", "elapsed_s", "messages_ok", "messages_received", "errors",
           "remote_send_socket_bytes", "remote_recv_socket_bytes")  # fmt: skip
_PARENTHESIS = re.compile(r"\(\s*(?P<value>[0-9]+\.[0-9]{1,3})(?P<text>(?:\s[^()]*)?)\)")
_WIDTH = re.compile(r"(?<![0-9.,])(?P<width>[0-9]+(?:\.[0-9]+)?)\s?%?\s*(?:%|for\b)")
Fields = dict[str, Any]


def from_banner(banner: Banner | None, command: Command | None) -> Fields:
    """The fields that say which test it was, between whom and how; ``printed`` is started."""
    fields: Fields = {"printed": {}}
    if command is not None:
        fields |= {"command": command.text}
        if banner is None and command.test != "OMNI":
            fields |= {"test": command.test, "host": command.host}
        elif banner is None:
            fields["host"] = command.host
    if banner is not None:
        fields |= {
            "test": banner.test or None,
            "host": banner.host,
            "address": banner.address or _literal(banner.host),
            "source_host": banner.source,
            "family": banner.family,
            "migrated": banner.migrated,
            "banner_flags": banner.flags,
            "first_burst": banner.first_burst,
        }
        fields["printed"]["banner"] = banner.text
    return fields


def _literal(host: str | None) -> str | None:
    if host and (re.fullmatch(r"[0-9.]{7,15}", host) or ":" in host):
        return host
    return None


def from_table(
    table: Table,
    banner: Banner | None,
    command: Command | None,
    warning: Widths | None,
) -> Fields:
    """The fields of a classic result. Rates become bit/s by the unit in the header (or by -f)."""
    fields = from_banner(banner, command)
    fields["test"] = fields.get("test") or table.shape.test
    values = table.values
    fields |= {name: values[name] for name in _COPIED if name in values}
    fields["printed"] |= table.printed
    fields["printed"]["unit"] = table.unit
    if warning is not None:
        fields["printed"]["warning"] = (
            f"throughput {warning.throughput}, local CPU {warning.local},"
            f" remote CPU {warning.remote}: full widths in %"
        )
    _cpu(fields, table)
    if table.shape.name.startswith("udp"):
        _udp(fields, table)
    elif table.shape.name.startswith("rr"):
        _request(fields, table, banner, command)
    else:
        _stream(fields, table)
    rate = fields.get("throughput_bps") or fields.get("transactions_per_second")
    fields["confidence"] = of_classic(
        banner, command, warning,
        cpu_local=fields.get("cpu_local_pct") is not None,
        cpu_remote=fields.get("cpu_remote_pct") is not None,
        zero=not rate,
    )  # fmt: skip
    if fields["confidence"] is not None and table.shape.name.startswith("udp"):
        # The interval is about the mean of the receive rate, the rows are of the last iteration.
        fields["last_iteration_only"] = (
            "throughput_bps", "send_throughput_bps", "receive_throughput_bps", "messages_ok",
            "messages_received", "errors", "lost_messages", "loss_pct",
        )  # fmt: skip
    for row, text in table.notes:
        _remark(fields, table, row, text)
    return fields


def _cpu(fields: Fields, table: Table) -> None:
    values = table.values
    if "cpu_local" not in values:
        return
    per = "us_per_transaction" if table.shape.name == "rr_cpu" else "us_per_kb"
    for side, method in zip(("local", "remote"), table.methods, strict=True):
        util, demand = values[f"cpu_{side}"], values[f"sd_{side}"]
        if util is not None and util < 0 and util != -1:
            warn(fields, f"the {side} CPU utilisation of {util} % is no measurement")
        if util is not None and util > 100.5:
            warn(fields, f"the {side} CPU utilisation of {util} % is no share of all CPUs")
        known = measured(util) is not None
        fields[f"cpu_{side}_pct"] = measured(util)
        fields[f"service_demand_{side}_{per}"] = measured(demand) if known else None
        fields[f"cpu_method_{side}"] = method if known else None


def _stream(fields: Fields, table: Table) -> None:
    throughput(fields, table.values["rate"], table.unit)


def throughput(fields: Fields, rate: float | None, unit: str | None) -> None:
    """Set the throughput, or say why there is none."""
    factor = unit_factor(unit) if unit else None
    fields["throughput_unit"] = unit
    mislabelled(fields, unit)
    if rate is None:
        fail(fields, "the throughput is not a number")
    elif factor is None:
        fields["status"] = Status.SUSPECT
        warn(fields, f"the unit of the throughput {rate} is not printed and -f is not known")
    elif rate == 0 and factor >= 1e9:
        # 0.00 of 10^9bits is anything below 5 Mbit/s.
        fields["status"] = Status.SUSPECT
        warn(fields, f"0.00 {unit}/s is below what this unit shows")
    else:
        fields["throughput_bps"] = scaled(rate, factor)
        if rate == 0:
            fail(fields, "zero throughput")


def mislabelled(fields: Fields, unit: str | None) -> None:
    """Mark a rate under ``10^0bits``: netperf 2.7 prints bytes there."""
    if unit == MISLABELLED:
        fields["status"] = Status.SUSPECT
        warn(fields, "netperf 2.7 prints bytes/s under the unit 10^0bits: taken as bytes")


def fail(fields: Fields, text: str) -> None:
    """Mark as failed with a reason of our own (the tool printed a value all the same)."""
    fields["status"] = Status.FAILED
    fields["failure_text"] = text


def warn(fields: Fields, text: str) -> None:
    """Add a warning."""
    fields["warnings"] = (*fields.get("warnings", ()), text)


def _udp(fields: Fields, table: Table) -> None:
    values = table.values
    send = values.get("rate", values.get("rate1"))
    receive = values.get("rate2", values.get("rate21"))
    factor = unit_factor(table.unit or "")
    fields["throughput_unit"] = table.unit
    # The local socket's send buffer and the remote socket's receive buffer.
    fields["send_socket_bytes"] = values["socket"]
    fields["remote_recv_socket_bytes"] = values["socket2"]
    fields["send_elapsed_s"] = values["elapsed_s"]
    fields["receive_elapsed_s"] = values["elapsed2_s"]
    sent, received = fields["messages_ok"], fields["messages_received"]
    fields["lost_messages"] = sent - received
    fields["loss_pct"] = 100 * (sent - received) / sent if sent else None
    if fields["errors"]:
        warn(fields, f"{fields['errors']} sends failed")
    if factor is None:
        throughput(fields, receive, None)
        return
    fields["send_throughput_bps"] = None if send is None else scaled(send, factor)
    fields["receive_throughput_bps"] = None if receive is None else scaled(receive, factor)
    if receive == 0 and received == 0:
        fields["throughput_bps"] = 0.0
        if sent:
            fields["status"] = Status.SUSPECT
            warn(fields, "nothing received")
        else:
            fail(fields, "zero throughput")
        return
    throughput(fields, receive, table.unit)


def _request(fields: Fields, table: Table, banner: Banner | None, command: Command | None) -> None:
    rate = table.values["rate"]
    unit = table.unit
    letter = command.unit_letter if command else None
    migrated = banner is None or banner.migrated
    if fields.get("test") == "TCP_CRR" and letter and letter != "x" and not unit and migrated:
        # The migrated TCP_CRR prints "Trans. Rate per sec" above a rate in the unit of -f.
        unit = unit_of_letter(letter)
        warn(fields, f"the header says transactions, but -f {letter} made it {unit}/s")
    if unit is not None and unit != TRANSACTIONS:
        throughput(fields, rate, unit)
        return
    fields["throughput_unit"] = "Trans/s"
    fields["transactions_per_second"] = rate
    if rate is None:
        fail(fields, "the transaction rate is not a number")
    elif rate == 0:
        fail(fields, "zero throughput")


def bare_result(
    value: float, text: str, banner: Banner | None, command: Command | None, test: str | None
) -> Fields:
    """The one number of ``-v 0``. Its unit is that of -f, or the test's own where -f is known.

    A UDP_STREAM prints what the sender put out (nettest_omni.c), which is not the result.
    """
    fields = from_banner(banner, command)
    fields["printed"] |= {"rate": text}
    requests = (
        banner.concerns_requests
        if banner
        else (test or "").endswith(("_RR", "_CRR", "_CC", "_TRR", "_RR_MANY"))
    )
    unit = default_unit(requests, command)
    fields["printed"]["unit"] = unit
    if unit == TRANSACTIONS or (requests and unit is None):
        fields["transactions_per_second"] = value
        fields["throughput_unit"] = "Trans/s"
        if command is None:
            warn(fields, "-v 0 prints no unit: taken as the test's own, transactions a second")
        if value == 0:
            fail(fields, "zero throughput")
    elif fields["test"] and fields["test"].endswith("UDP_STREAM"):
        factor = unit_factor(unit) if unit else None
        fields["send_throughput_bps"] = scaled(value, factor) if factor else None
        fields["throughput_unit"] = unit
        fields["status"] = Status.SUSPECT
        warn(fields, "-v 0 prints only the rate of the sender: what was received is not known")
    else:
        throughput(fields, value, unit)
    return fields


def default_unit(requests: bool, command: Command | None) -> str | None:
    """The unit of a rate printed without one; None if the command line is not known.

    Without -f netperf prints 10^6bits, and transactions for request/response tests.
    """
    if command is None:
        return None
    if command.unit_letter is not None:
        if command.unit_letter == "x" and not requests:
            return "10^6bits"
        return unit_of_letter(command.unit_letter)
    return TRANSACTIONS if requests else "10^6bits"


def bare_demand(
    text: str, method: str | None, banner: Banner | None, command: Command | None
) -> Fields:
    """The service demand that ``-v 0`` prints with -c or -C in the place of the rate.

    With -c it is the local one; with both, too (nettest_omni.c). Without the command line it may
    be of either side.
    """
    fields = from_banner(banner, command)
    fields["printed"] |= {"service_demand": text, "method": method}
    fields["status"] = Status.SUSPECT
    warn(fields, "-v 0 with -c or -C prints a service demand and no rate")
    side = None
    if command is not None:
        side = "local" if command.cpu_local else "remote" if command.cpu_remote else None
    if side is not None:
        requests = (fields.get("test") or "").endswith(("_RR", "_CRR", "_CC", "_TRR", "_RR_MANY"))
        per_unit = command is not None and command.unit_letter not in {None, "x"}
        per = "us_per_transaction" if requests and not per_unit else "us_per_kb"
        fields[f"service_demand_{side}_{per}"] = measured(float(text))
        fields[f"cpu_method_{side}"] = method
    return fields


def _remark(fields: Fields, table: Table, row: str, text: str) -> None:
    """Keep what somebody wrote beside a row; a value in parentheses is an alternate one."""
    match = _PARENTHESIS.fullmatch(text)
    if match is None:
        if re.fullmatch(r"[\w.:/+-]+", text) and fields.get("command"):
            fields["tag"] = text  # -B with -P 0 prints the brand behind the row
        fields["printed"][f"note_{row}"] = text
        return
    fields["printed"][f"alternate_{row}"] = text
    value = float(match["value"])
    factor = unit_factor(table.unit) if table.unit else None
    said = " ".join(match["text"].split())
    old: Alternate = fields.get("alternate") or Alternate()
    udp = table.shape.name.startswith("udp")
    bps = scaled(value, factor) if factor else None
    width = _WIDTH.search(said) if "conf" in said else None
    met = None
    if "confidence" in said:
        met = not re.search(r"\bnot\s+(?:be\s+)?(?:met|achieved|reached)\b", said)
        met = met if re.search(r"\b(?:met|achieved|reached)\b", said) else None
    fields["alternate"] = Alternate(
        throughput_bps=bps if (not udp or row == "2") else old.throughput_bps,
        send_throughput_bps=bps if udp and row == "1" else old.send_throughput_bps,
        receive_throughput_bps=bps if udp and row == "2" else old.receive_throughput_bps,
        transactions_per_second=value if factor is None else None,
        text="; ".join(filter(None, (old.text, said))),
        confidence_met=met if met is not None else old.confidence_met,
        confidence_width_pct=float(width["width"]) if width else old.confidence_width_pct,
    )
    alternate: Alternate = fields["alternate"]
    fields["alternate_throughput_bps"] = alternate.throughput_bps
    fields["alternate_transactions_per_second"] = alternate.transactions_per_second


def interim_warnings(series: list[Interim]) -> list[str]:
    """Interim results end one after the other; anything else has been mixed up."""
    ends = [one.end_s for one in series if one.end_s is not None]
    if any(later <= earlier for earlier, later in pairwise(ends)):
        return ["the interim results are not in the order of time: doubled, moved or of two runs"]
    return []
