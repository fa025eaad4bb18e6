"""IP option 134 (CIPSO): what a label becomes on the wire, and back.

Formats: draft-ietf-cipso-ipsecurity-01 and FIPS 188 as Linux writes them
(net/ipv4/cipso_ipv4.c). An option is type 134, length, DOI (4 bytes), then one tag: tag type,
tag length, an alignment octet (zero), the level, and the categories. An IPv4 header has room for
40 bytes of options, so 30 bytes remain for categories.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import FrozenSet, List, Optional, Tuple

from .context import LabelError, format_level, low_level, spans
from .netlabel import TAG_BITMAP, TAG_ENUM, TAG_LOCAL, TAG_RANGE, Doi

OPTION_CIPSO = 134
OPTION_MAX = 40
HEADER = 6
TAG_HEADER = 4
CATEGORY_BYTES = OPTION_MAX - HEADER - TAG_HEADER
LOCAL_TAG_LENGTH = 6
IPV4_HEADER = 20
TCP_HEADER = 20
TCP_TIMESTAMPS = 12
UDP_HEADER = 8
NO_SPACE = 'connect() would fail with ENOSPC, "No space left on device"'
NOT_PERMITTED = 'connect() would fail with EPERM, "Operation not permitted"'


@dataclass(frozen=True)
class CipsoOption:
    """A decoded option. ``level`` and ``categories`` are the wire's own numbers.

    A local tag (128) carries the sender's own identifier instead: ``local_id`` holds its bytes
    as hexadecimal digits, ``level`` is None and ``categories`` is empty.
    """

    doi: int
    tag: int
    level: Optional[int]
    categories: Tuple[int, ...]
    local_id: Optional[str]
    length: int


def _wire_level(level: int, doi: Doi) -> int:
    if doi.kind == "trans":
        if level not in doi.levels:
            raise LabelError(
                f"level s{level} has no entry in the levels of DOI {doi.number} ({NOT_PERMITTED})"
            )
        level = doi.levels[level]
    if not 0 <= level <= 255:
        raise LabelError(
            f"level {level} does not fit the one byte that a tag of DOI {doi.number} has for it"
        )
    return level


def _wire_categories(categories: FrozenSet[int], doi: Doi) -> FrozenSet[int]:
    if doi.kind != "trans":
        return categories
    missing = sorted(category for category in categories if category not in doi.categories)
    if missing:
        raise LabelError(
            f"category c{missing[0]} has no entry in the categories of DOI {doi.number} "
            f"({NOT_PERMITTED})"
        )
    return frozenset(doi.categories[category] for category in categories)


def _bitmap(categories: FrozenSet[int], rbm_optfmt: bool) -> bytes:
    highest = max(categories)
    if highest >= CATEGORY_BYTES * 8:
        raise LabelError(
            f"highest category on the wire is {highest}, tag 1 carries 0 to "
            f"{CATEGORY_BYTES * 8 - 1} ({NO_SPACE})"
        )
    size = highest // 8 + 1
    if rbm_optfmt and size <= 10:
        size = 10
    field = bytearray(size)
    for category in categories:
        field[category // 8] |= 0x80 >> (category % 8)
    return bytes(field)


def _enumerated(categories: FrozenSet[int]) -> bytes:
    most = CATEGORY_BYTES // 2
    if len(categories) > most:
        raise LabelError(f"{len(categories)} categories, tag 2 carries at most {most} ({NO_SPACE})")
    return b"".join(category.to_bytes(2, "big") for category in sorted(categories))


def _ranged(categories: FrozenSet[int]) -> bytes:
    ranges = spans(categories)
    field = b""
    # Highest range first; the zero that would end the last one is left out.
    for first, last in reversed(ranges):
        field += last.to_bytes(2, "big") + (first.to_bytes(2, "big") if first else b"")
    if len(field) > CATEGORY_BYTES:
        raise LabelError(
            f"{len(ranges)} ranges of categories, tag 5 carries at most 7, or 8 if the lowest "
            f"category is 0 ({NO_SPACE})"
        )
    return field


def option_bytes(
    level: int,
    categories: Iterable[int],
    tag: int,
    doi: Doi,
    rbm_optfmt: bool = False,
) -> bytes:
    """The option that Linux must send for a local level and local categories.

    ``rbm_optfmt`` is ``net.ipv4.cipso_rbm_optfmt``: bitmaps of 1 to 10 bytes then take 10.
    The result has no padding (:func:`padded_length`). Raises :class:`LabelError`, with the reason
    and the errno of the failing connect(), when the label does not fit.
    """
    if doi.kind == "local" or tag == TAG_LOCAL:
        raise LabelError(
            f"DOI {doi.number}, tag 128: its bytes are an identifier that only the "
            "sending host knows"
        )
    if tag not in doi.tags:
        raise LabelError(f"tag {tag} is not one of the tags of DOI {doi.number}: {list(doi.tags)}")
    wire_level = _wire_level(level, doi)
    wire = _wire_categories(frozenset(categories), doi)
    field = b""
    if wire:
        if tag == TAG_BITMAP:
            field = _bitmap(wire, rbm_optfmt)
        elif tag == TAG_ENUM:
            field = _enumerated(wire)
        elif tag == TAG_RANGE:
            field = _ranged(wire)
        else:
            raise LabelError(f"tag {tag} of DOI {doi.number} is none that Linux sends (1, 2, 5)")
    body = bytes([tag, TAG_HEADER + len(field), 0, wire_level]) + field
    return bytes([OPTION_CIPSO, HEADER + len(body)]) + doi.number.to_bytes(4, "big") + body


def label_option(
    label_range: str, doi: Doi, tags: Optional[Sequence[int]] = None, rbm_optfmt: bool = False
) -> bytes:
    """The option for a level or range (its low level is sent), by the first tag that fits.

    Raises :class:`LabelError` that names the level, the DOI and why each tag failed.
    """
    level, categories = low_level(label_range)
    reasons: List[str] = []
    for tag in doi.tags if tags is None else tags:
        try:
            return option_bytes(level, categories, tag, doi, rbm_optfmt)
        except LabelError as error:
            reasons.append(f"tag {tag}: {error}")
    raise LabelError(
        f"level {format_level(level, categories)} does not fit DOI {doi.number}: "
        + ("; ".join(reasons) or "it has no tag")
    )


def label_fits(label_range: str, doi: Doi, tags: Optional[Sequence[int]] = None) -> Optional[str]:
    """None when the label can be sent under the DOI, else the reason for people.

    Limits: tag 1 categories 0–239; tag 2 at most 15 categories; tag 5 at most 7 ranges, 8 when
    the lowest category is 0 (cipso_v4_map_cat_*_hton of the kernel). Under a local DOI any label
    fits. A text that is no level is a reason too.
    """
    try:
        if doi.kind == "local":
            low_level(label_range)
        else:
            label_option(label_range, doi, tags)
    except LabelError as error:
        return str(error)
    return None


def padded_length(option_length: int) -> int:
    """Bytes the option takes in the IP header: the next multiple of four."""
    return (option_length + 3) // 4 * 4


def tcp_mss(option_length: int = 0, mtu: int = 1500, timestamps: bool = True) -> int:
    """TCP payload of a full segment: MTU − 40 − padded option − 12 with timestamps.

    1448 without an option, 1436 for ``s0``, 1408 for ``s0:c0.c239`` at MTU 1500.
    """
    room = mtu - IPV4_HEADER - TCP_HEADER - padded_length(option_length)
    return room - TCP_TIMESTAMPS if timestamps else room


def mss_for(
    label_range: Optional[str],
    doi: Optional[Doi] = None,
    mtu: int = 1500,
    timestamps: bool = True,
    rbm_optfmt: bool = False,
) -> int:
    """The TCP MSS that a label must give. None as label or DOI: unlabelled.

    Raises :class:`LabelError` when the label does not fit the DOI.
    """
    return tcp_mss(_length(label_range, doi, rbm_optfmt), mtu, timestamps)


def udp_payload_for(
    label_range: Optional[str],
    doi: Optional[Doi] = None,
    mtu: int = 1500,
    rbm_optfmt: bool = False,
) -> int:
    """The largest UDP payload that is not fragmented (1472, 1460 for ``s0``, 1432 full)."""
    return mtu - IPV4_HEADER - UDP_HEADER - padded_length(_length(label_range, doi, rbm_optfmt))


def _length(label_range: Optional[str], doi: Optional[Doi], rbm_optfmt: bool) -> int:
    if label_range is None or doi is None:
        return 0
    if doi.kind == "local":
        return HEADER + LOCAL_TAG_LENGTH
    return len(label_option(label_range, doi, None, rbm_optfmt))


def decode_option(data: bytes) -> CipsoOption:
    """Decode option 134 from its first byte on; bytes after its own length are not looked at.

    Raises :class:`LabelError` on anything a Linux sender cannot have sent.
    """
    if len(data) < 2 or data[0] != OPTION_CIPSO:
        raise LabelError(
            f"option starts with {data[:2].hex() or 'nothing'}, wanted 86 and a length"
        )
    length = data[1]
    if not HEADER + 2 <= length <= min(OPTION_MAX, len(data)):
        raise LabelError(f"option length {length} with {len(data)} bytes there, wanted 8 to 40")
    tag, tag_length = data[HEADER], data[HEADER + 1]
    if tag_length != length - HEADER:
        raise LabelError(
            f"tag {tag} of length {tag_length} in an option of {length} bytes, wanted "
            f"one tag of {length - HEADER}"
        )
    doi = int.from_bytes(data[2:6], "big")
    body = data[HEADER + 2 : length]
    if tag == TAG_LOCAL:
        if len(body) < 4:
            raise LabelError(f"local tag with {len(body)} bytes, wanted at least 4")
        return CipsoOption(doi, tag, None, (), body.hex(), length)
    if len(body) < 2 or body[0] != 0:
        raise LabelError(
            f"tag {tag} starts with {body[:2].hex() or 'nothing'}, wanted a zero octet "
            "and the level"
        )
    return CipsoOption(doi, tag, body[1], _categories(tag, body[2:]), None, length)


def _categories(tag: int, field: bytes) -> Tuple[int, ...]:
    if tag == TAG_BITMAP:
        return tuple(
            index for index in range(len(field) * 8) if field[index // 8] & (0x80 >> index % 8)
        )
    if tag not in (TAG_ENUM, TAG_RANGE):
        raise LabelError(f"tag {tag}, wanted 1, 2, 5 or 128")
    if len(field) % 2:
        raise LabelError(f"tag {tag} with {len(field)} category bytes, wanted pairs")
    numbers = [int.from_bytes(field[at : at + 2], "big") for at in range(0, len(field), 2)]
    if tag == TAG_ENUM:
        if numbers != sorted(set(numbers)):
            raise LabelError("tag 2 with categories out of order")
        return tuple(numbers)
    if len(numbers) % 2:
        numbers.append(0)  # the zero that is left out at the end
    if numbers != sorted(numbers, reverse=True):
        raise LabelError("tag 5 with ranges out of order")
    found: List[int] = []
    for at in range(0, len(numbers), 2):
        found.extend(range(numbers[at + 1], numbers[at] + 1))
    if len(found) != len(set(found)):
        raise LabelError("tag 5 with ranges that overlap")
    return tuple(sorted(found))


def to_local(option: CipsoOption, doi: Doi) -> Tuple[int, FrozenSet[int]]:
    """The receiver's own level and categories for an option under its DOI definition.

    Raises :class:`LabelError` when the DOI differs or has no local number for one on the wire.
    """
    if option.doi != doi.number:
        raise LabelError(f"option of DOI {option.doi}, wanted DOI {doi.number}")
    if option.level is None:
        raise LabelError("a local tag carries no level")
    if doi.kind != "trans":
        return option.level, frozenset(option.categories)
    levels = {wire: local for local, wire in doi.levels.items()}
    categories = {wire: local for local, wire in doi.categories.items()}
    if option.level not in levels:
        raise LabelError(f"level {option.level} on the wire has no local level in DOI {doi.number}")
    missing = [category for category in option.categories if category not in categories]
    if missing:
        raise LabelError(f"category {missing[0]} on the wire has no local one in DOI {doi.number}")
    return levels[option.level], frozenset(categories[item] for item in option.categories)
