"""What differs between an SA or policy and its declaration, and how either is shown.

The kernel lists some things in other words than they were given: ``auth`` comes back as
``auth-trunc`` with a length, no selector as one that takes everything, a window with extended
sequence numbers in the replay context. Keys are compared in constant time and never shown.
"""

from __future__ import annotations

import functools
import hmac
from operator import attrgetter
from typing import Any, Dict, List, Optional, Tuple

from .kernel_state.xfrm import (
    Algorithm,
    Limits,
    Policy,
    Secret,
    Selector,
    State,
    Vault,
    mark_of,
    state_id,
)

# Integrity values the kernel gives to `auth`, which states no length (net/xfrm/xfrm_algo.c).
_TRUNCATED = {
    "hmac(md5)": 96, "hmac(sha1)": 96, "hmac(sha256)": 96, "hmac(sha384)": 192,
    "hmac(sha512)": 256, "cmac(aes)": 96, "xcbc(aes)": 96, "digest_null": 0,
}  # fmt: skip
_EVERYTHING = (Selector("0.0.0.0/0", "0.0.0.0/0"), Selector("::/0", "::/0"))
# The fields that state_changes compares, and the kernel mostly lists as they were given.
_AS_WRITTEN = attrgetter(
    "src", "mode", "reqid", "window", "flags", "output_mark", "encap", "offload", "if_id",
    "tfc_pad", "context",
)  # fmt: skip


@functools.lru_cache(maxsize=256)
def _listed(algorithms: Tuple[Algorithm, ...]) -> Tuple[Algorithm, ...]:
    """The algorithms as the kernel lists them: ``auth`` with its length, in a fixed order."""
    found = []
    for item in algorithms:
        if item.kind == "auth":
            found.append(
                Algorithm("auth-trunc", item.name, item.key_bits, _TRUNCATED.get(item.name))
            )
        else:
            found.append(item)
    return tuple(sorted(found, key=lambda item: item.kind))


def _chosen(selector: Optional[Selector]) -> Optional[Selector]:
    """None for a selector that takes every packet: the kernel lists it for SAs without one."""
    return None if selector in _EVERYTHING else selector


def _differs(now: Optional[Limits], wanted: Optional[Limits]) -> bool:
    # Without -s the limits were not read; then they cannot be compared.
    return now is not None and now != (wanted or Limits())


def state_changes(now: State, wanted: State, have: Vault, want: Vault) -> Tuple[str, ...]:
    """Names of what differs between an SA and its declaration (keys of each beside it)."""
    # Most SAs of a large table are as declared, word for word.
    alike = _AS_WRITTEN(now) == _AS_WRITTEN(wanted)
    alike = alike and _chosen(now.selector) == _chosen(wanted.selector)
    found = [] if alike else _field_changes(now, wanted)
    if wanted.direction is not None and now.direction != wanted.direction:
        found.append("dir")
    if _differs(now.limits, wanted.limits):
        found.append("limits")
    have_algorithms, want_algorithms = _listed(now.algorithms), _listed(wanted.algorithms)
    if [(item.kind, item.name, item.bits) for item in have_algorithms] != [
        (item.kind, item.name, item.bits) for item in want_algorithms
    ]:
        found.append("algorithms")
    elif any(_key_differs(now, wanted, item, have, want) for item in have_algorithms):
        found.append("key")
    return tuple(found)


def _field_changes(now: State, wanted: State) -> List[str]:
    pairs: Dict[str, Tuple[object, object]] = {
        "src": (now.src, wanted.src),
        "mode": (now.mode, wanted.mode),
        "reqid": (now.reqid or 0, wanted.reqid or 0),
        "replay_window": (now.window or 0, wanted.window or 0),
        "flags": (sorted(now.flags), sorted(wanted.flags)),
        "output_mark": (now.output_mark, wanted.output_mark),
        "encap": (now.encap, wanted.encap),
        "selector": (_chosen(now.selector), _chosen(wanted.selector)),
        "offload": (
            now.offload and (now.offload.dev, now.offload.direction),
            wanted.offload and (wanted.offload.dev, wanted.offload.direction),
        ),
        "if_id": (now.if_id or 0, wanted.if_id or 0),
        "tfc_pad": (now.tfc_pad or 0, wanted.tfc_pad or 0),
        "ctx": (now.context, wanted.context),
    }
    return [name for name, (one, other) in pairs.items() if one != other]


def _key(state: State, kind: str, keys: Vault) -> Optional[Secret]:
    key = keys.get(state_id(state), kind)
    if key is None and kind == "auth-trunc":
        return keys.get(state_id(state), "auth")
    return key


def _key_differs(now: State, wanted: State, item: Algorithm, have: Vault, want: Vault) -> bool:
    one, other = _key(now, item.kind, have), _key(wanted, item.kind, want)
    if other is None:
        return False
    length = 4 * max(len(other.reveal()) - 2, 0)
    if item.key_bits is not None and item.key_bits != length:
        return True
    if one is None:
        return False
    return not hmac.compare_digest(one.reveal().lower(), other.reveal().lower())


def policy_changes(now: Policy, wanted: Policy) -> Tuple[str, ...]:
    """Names of what differs between a policy and its declaration."""
    pairs: Dict[str, Tuple[object, object]] = {
        "priority": (now.priority or 0, wanted.priority or 0),
        "action": (now.action, wanted.action),
        "flags": (sorted(now.flags), sorted(wanted.flags)),
        "tmpl": (now.templates, wanted.templates),
    }
    found = [name for name, (one, other) in pairs.items() if one != other]
    if _differs(now.limits, wanted.limits):
        found.append("limits")
    return tuple(found)


def _shown_selector(selector: Optional[Selector]) -> Optional[str]:
    if selector is None:
        return None
    parts = [selector.src, "to", selector.dst]
    for name in ("proto", "sport", "dport", "key", "dev"):
        value = getattr(selector, name)
        if value is not None:
            parts.append(f"{name} {value}")
    return " ".join(parts)


def shown_state(state: State) -> Dict[str, Any]:
    """An SA for a diff, without anything made from a key."""
    shown: Dict[str, Any] = {
        "src": state.src,
        "mode": state.mode,
        "reqid": state.reqid or 0,
        "replay_window": state.window or 0,
        "algorithms": [
            item.name if item.bits is None else f"{item.name} {item.bits}"
            for item in _listed(state.algorithms)
        ],
    }
    optional = {
        "flags": list(state.flags), "selector": _shown_selector(_chosen(state.selector)),
        "if_id": state.if_id, "offload": state.offload and state.offload.dev,
        "dir": state.direction, "ctx": state.context,
        "mark": None if state.mark is None else list(mark_of(state.mark)),
        "limits": _shown_limits(state.limits),
    }  # fmt: skip
    shown.update({key: value for key, value in optional.items() if value})
    return shown


def _shown_limits(limits: Optional[Limits]) -> Dict[str, int]:
    values = {} if limits is None else vars(limits)
    return {name: value for name, value in values.items() if value is not None}


def shown_policy(policy: Policy) -> Dict[str, Any]:
    """A policy for a diff."""
    shown: Dict[str, Any] = {
        "action": policy.action,
        "priority": policy.priority or 0,
        "tmpl": [
            f"{item.proto} {item.mode} {item.src} to {item.dst} reqid {item.reqid or 0} "
            f"level {item.level}"
            for item in policy.templates
        ],
    }
    if policy.context is not None:
        shown["ctx"] = policy.context
    limits = _shown_limits(policy.limits)
    return {**shown, "limits": limits} if limits else shown
