"""IPsec as the kernel has it: typed SAs (states) and policies.

The readers of ``ip xfrm`` text are in :mod:`.xfrm_state` and :mod:`.xfrm_policy`. None of these
types has room for a key: an :class:`Algorithm` keeps the length only.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Dict, Iterator, Optional, Tuple, TypeVar


@dataclass(frozen=True)
class Algorithm:
    """``kind``: ``aead``, ``enc``, ``auth``, ``auth-trunc`` or ``comp``.

    ``key_bits`` is None when the text hides the key; ``bits`` is the length of the integrity
    value of ``aead`` and ``auth-trunc``.
    """

    kind: str
    name: str
    key_bits: Optional[int] = None
    bits: Optional[int] = None


@dataclass(frozen=True)
class Mark:
    """A packet mark with its mask."""

    value: int
    mask: int = 0xFFFFFFFF


@dataclass(frozen=True)
class Selector:
    """Which packets. Networks in CIDR form; ``proto`` by name where one is known.

    ``sport``/``dport`` hold ports, or type and code of ICMP; ``key`` is that of GRE.
    """

    src: str
    dst: str
    proto: Optional[str] = None
    sport: Optional[int] = None
    dport: Optional[int] = None
    key: Optional[int] = None
    dev: Optional[str] = None


@dataclass(frozen=True)
class Limits:
    """Lifetime limits, as `-s` shows them. None: no limit. Times are seconds, 0 is None."""

    soft_bytes: Optional[int] = None
    hard_bytes: Optional[int] = None
    soft_packets: Optional[int] = None
    hard_packets: Optional[int] = None
    soft_add_s: Optional[int] = None
    hard_add_s: Optional[int] = None
    soft_use_s: Optional[int] = None
    hard_use_s: Optional[int] = None


@dataclass(frozen=True)
class Usage:
    """Current lifetime: counters, and times as printed (local time of the host), None for "-"."""

    bytes: int
    packets: int
    added: Optional[str]
    used: Optional[str]


@dataclass(frozen=True)
class Replay:
    """Replay protection as it is now. ``window`` is in packets; numbers are 64-bit with ESN."""

    esn: bool
    window: Optional[int]
    seq: Optional[int]
    oseq: Optional[int]


@dataclass(frozen=True)
class ReplayErrors:
    """The ``stats:`` block: packets outside the window, replayed, and failing integrity."""

    window: int
    replay: int
    failed: int


@dataclass(frozen=True)
class Encap:
    """UDP or TCP encapsulation."""

    type: str
    sport: int
    dport: int
    address: str


@dataclass(frozen=True)
class Offload:
    """Hardware offload: ``direction`` in or out, ``mode`` crypto or packet, where they are said."""

    dev: str
    direction: Optional[str] = None
    mode: Optional[str] = None


@dataclass(frozen=True)
class State:
    """An SA. ``replay_window`` is the first line's; ``replay`` what the replay context says.

    ``direction`` is the ``dir`` attribute (kernels from 6.10 on, where set), else None: see
    :func:`direction_of`. ``blanked`` names values that were blanked out of the text before it was
    kept (``spi 0xSPISPI``); such a value is None. ``unknown`` keeps attributes that this reader
    does not know, as text without anything key-like.
    """

    src: str
    dst: str
    proto: str
    spi: Optional[int]
    reqid: Optional[int]
    mode: str
    replay_window: Optional[int] = None
    flags: Tuple[str, ...] = ()
    extra_flags: Tuple[str, ...] = ()
    mark: Optional[Mark] = None
    output_mark: Optional[Mark] = None
    algorithms: Tuple[Algorithm, ...] = ()
    encap: Optional[Encap] = None
    care_of: Optional[str] = None
    last_used: Optional[str] = None
    replay: Optional[Replay] = None
    offload: Optional[Offload] = None
    if_id: Optional[int] = None
    tfc_pad: Optional[int] = None
    direction: Optional[str] = None
    selector: Optional[Selector] = None
    limits: Optional[Limits] = None
    usage: Optional[Usage] = None
    replay_errors: Optional[ReplayErrors] = None
    context: Optional[str] = None
    blanked: Tuple[str, ...] = ()
    unknown: Tuple[str, ...] = ()

    @property
    def esn(self) -> bool:
        """Whether 64-bit sequence numbers are in use."""
        return "esn" in self.flags

    @property
    def window(self) -> Optional[int]:
        """The replay window in effect; the long context replaces the first line's number."""
        if self.replay is not None and self.replay.window is not None:
            return self.replay.window
        return self.replay_window


@dataclass(frozen=True)
class Template:
    """What a policy wants done to a packet. ``level``: ``required`` unless said otherwise."""

    src: str
    dst: str
    proto: str
    reqid: Optional[int]
    mode: str
    spi: Optional[int] = None
    level: str = "required"


@dataclass(frozen=True)
class Policy:
    """A policy. ``socket``: it belongs to one socket (IKE daemons make those), not to the host."""

    selector: Selector
    direction: str
    priority: Optional[int]
    action: str = "allow"
    socket: bool = False
    index: Optional[int] = None
    ptype: str = "main"
    flags: Tuple[str, ...] = ()
    templates: Tuple[Template, ...] = ()
    mark: Optional[Mark] = None
    if_id: Optional[int] = None
    offload: Optional[Offload] = None
    limits: Optional[Limits] = None
    usage: Optional[Usage] = None
    context: Optional[str] = None
    blanked: Tuple[str, ...] = ()
    unknown: Tuple[str, ...] = ()


T = TypeVar("T")


def varied(item: T, **fields: Any) -> T:
    """A copy of an SA, policy or part of one with other values of some fields. Unlike
    dataclasses.replace it does not go through the constructor, which tells with thousands."""
    found = type(item).__new__(type(item))
    vars(found).update(vars(item), **fields)
    return found


StateId = Tuple[str, str, Optional[int], int, int]
PolicyId = Tuple[str, str, Selector, Tuple[int, int], int, Optional[str]]


def mark_of(mark: Optional[Mark]) -> Tuple[int, int]:
    """A mark as (value, mask); none is (0, 0), which every packet matches."""
    return (0, 0) if mark is None else (mark.value & mark.mask, mark.mask)


def state_id(state: State) -> StateId:
    """What makes an SA one of its kind: destination, protocol, SPI and mark, not the source."""
    return (state.dst, state.proto, state.spi, *mark_of(state.mark))


def policy_id(policy: Policy) -> PolicyId:
    """What makes a policy one of its kind (xfrm_policy_insert of Linux from 5.10 on)."""
    return (
        policy.direction,
        policy.ptype,
        policy.selector,
        mark_of(policy.mark),
        policy.if_id or 0,
        policy.context,
    )


def direction_of(state: State, local: Tuple[str, ...]) -> Optional[str]:
    """``in`` or ``out``: the attribute, else the offload's, else which end is this host's.

    None when neither says it: both ends local (loopback), or neither.
    """
    if state.direction is not None:
        return state.direction
    if state.offload is not None and state.offload.direction is not None:
        return state.offload.direction
    inbound, outbound = state.dst in local, state.src in local
    if inbound == outbound:
        return None
    return "in" if inbound else "out"


class Secret:
    """Key bytes that do not show: in no repr, no str, no comparison by value in a dict."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def __repr__(self) -> str:
        return "<key>"

    __str__ = __repr__

    def __reduce__(self) -> str:
        raise TypeError("a key is not pickled")

    def reveal(self) -> str:
        """``0x…`` as ``ip`` takes it; for the text that goes to its standard input only."""
        return self._value


@dataclass
class Vault:
    """Keys read beside the states, in memory only, by SA identity and kind of algorithm.

    A reader fills it when a caller on the host passes one, so that a plan can tell whether a key
    differs and a rollback can put an SA back.
    """

    _keys: Dict[Tuple[StateId, str], Secret] = field(default_factory=dict, repr=False)

    def put(self, identity: StateId, kind: str, key: Secret) -> None:
        """Remember a key."""
        self._keys[(identity, kind)] = key

    def get(self, identity: StateId, kind: str) -> Optional[Secret]:
        """The key, or None when it was not read."""
        return self._keys.get((identity, kind))

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[Tuple[StateId, str]]:
        return iter(self._keys)
