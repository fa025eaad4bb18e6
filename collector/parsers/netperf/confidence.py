"""What was asked of the repeats and what they achieved: from banner, warning block, selectors."""

from __future__ import annotations

from collections.abc import Mapping

from .banner import Banner
from .blocks import Widths
from .command import Command
from .numbers import measured
from .records import Confidence, Met, PerQuantity


def of_classic(
    banner: Banner | None,
    command: Command | None,
    warning: Widths | None,
    *,
    cpu_local: bool,
    cpu_remote: bool,
    zero: bool,
) -> Confidence | None:
    """The confidence of a classic table; None if none was asked for or the input does not say.

    The classic forms print the warning block whenever the smallest of the margins is negative,
    right before the table and whatever -P and -v say. So a table without it has met what was
    asked. It also appears when only CPU missed, and a throughput of zero suppresses it (the
    width is then no number). Without -c/-C the CPU width is printed as 0.0: not measured.
    """
    level, wanted, only = _wanted(banner, command)
    if warning is None:
        if level is None or wanted is None or banner is None:
            return None
        sound = True if not zero else None
        return Confidence(
            level_pct=level,
            wanted_half_width_pct=wanted,
            met=Met(sound, _also(sound, cpu_local, only), _also(sound, cpu_remote, only)),
            result_only=only,
        )
    got = PerQuantity(
        _half(warning.throughput),
        _half(warning.local) if cpu_local or warning.local else None,
        _half(warning.remote) if cpu_remote or warning.remote else None,
    )
    return Confidence(
        level_pct=level,
        wanted_half_width_pct=wanted,
        got_half_width_pct=got,
        met=_compare(got, wanted, missed=True),
        result_only=only,
    )


def _also(sound: bool | None, was_measured: bool, only: bool | None) -> bool | None:
    return sound if was_measured and not only else None


def _wanted(
    banner: Banner | None, command: Command | None
) -> tuple[float | None, float | None, bool | None]:
    if banner is not None and banner.half_width_pct is not None:
        return banner.level_pct, banner.half_width_pct, banner.result_only
    if command is not None and command.width_pct is not None:
        return command.level_pct, command.width_pct / 2, None
    return None, None, None


def _half(width: float | None) -> float | None:
    return None if width is None or width < 0 else width / 2


def _compare(got: PerQuantity, wanted: float | None, *, missed: bool = False) -> Met:
    if wanted is None:
        # The block itself says that something missed; with one width only that is known of it.
        alone = missed and got.cpu_local is None and got.cpu_remote is None
        return Met(throughput=False if alone else None)
    return Met(*(_within(one, wanted) for one in (got.throughput, got.cpu_local, got.cpu_remote)))


def _within(got: float | None, wanted: float) -> bool | None:
    return None if got is None else got <= wanted


def of_omni(
    values: Mapping[str, object], banner: Banner | None, command: Command | None
) -> Confidence | None:
    """The confidence of an omni result, compared here: omni output never prints the warning.

    ``CONFIDENCE_INTERVAL`` and ``*_CONFID`` are full widths in % of the mean; level 0 and width
    -1 mean that no interval was asked for.
    """
    level = _number(values, "CONFIDENCE_LEVEL")
    width = _number(values, "CONFIDENCE_INTERVAL")
    iterations = _number(values, "CONFIDENCE_ITERATION")
    asked_level, asked, only = _wanted(banner, command)
    wanted = asked if width is None or width <= 0 else width / 2
    level = level or asked_level
    got = PerQuantity(
        _half(_number(values, "THROUGHPUT_CONFID")),
        _half(_cpu_width(values, "LOCAL")),
        _half(_cpu_width(values, "REMOTE")),
    )
    if level is None and wanted is None and iterations is None and got == PerQuantity():
        return None
    return Confidence(
        level_pct=level,
        wanted_half_width_pct=wanted,
        iterations=None if iterations is None else int(iterations),
        got_half_width_pct=got,
        met=Met() if wanted is None else _compare(got, wanted),
        result_only=only,
    )


def _cpu_width(values: Mapping[str, object], side: str) -> float | None:
    width = _number(values, f"{side}_CPU_CONFID")
    util = f"{side}_CPU_UTIL"
    if util in values:
        return width if measured(_number(values, util)) is not None else None
    return width or None


def _number(values: Mapping[str, object], name: str) -> float | None:
    value = values.get(name)
    return float(value) if isinstance(value, (int, float)) else None
