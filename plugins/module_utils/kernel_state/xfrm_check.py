"""What is wrong with a declared set of SAs and policies, before it is applied."""

from __future__ import annotations

import functools
import ipaddress
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Dict, List, Optional, Set, Tuple

from .context import LabelError, parse_context
from .xfrm import Algorithm, Mark, Policy, Selector, State, Vault, mark_of, policy_id, state_id
from .xfrm_command import policy_name, state_name

MAX_WINDOW = 4096
# Algorithm -> (allowed key lengths in bytes, with salt; allowed integrity values in bits).
# RFC 4106, 4309, 4543, 7634, 3602, 3686, 2410, 2404, 4868, 4494, 3566.
AEADS: Dict[str, Tuple[Tuple[int, ...], Tuple[int, ...]]] = {
    "rfc4106(gcm(aes))": ((20, 28, 36), (64, 96, 128)),
    "rfc4309(ccm(aes))": ((19, 27, 35), (64, 96, 128)),
    "rfc4543(gcm(aes))": ((20, 28, 36), (128,)),
    "rfc7539esp(chacha20,poly1305)": ((36,), (128,)),
}
CIPHERS: Dict[str, Tuple[int, ...]] = {
    "cbc(aes)": (16, 24, 32),
    "rfc3686(ctr(aes))": (20, 28, 36),
    "cbc(des3_ede)": (24,),
    "ecb(cipher_null)": (0,),
}
HASHES: Dict[str, Tuple[Tuple[int, ...], Tuple[int, ...]]] = {
    "hmac(md5)": ((16,), (96, 128)),
    "hmac(sha1)": ((20,), (96, 160)),
    "hmac(sha256)": ((32,), (96, 128, 256)),
    "hmac(sha384)": ((48,), (192, 384)),
    "hmac(sha512)": ((64,), (256, 512)),
    "cmac(aes)": ((16,), (96, 128)),
    "xcbc(aes)": ((16,), (96, 128)),
    "digest_null": ((0,), (0,)),
}
_NAME = re.compile(r"[A-Za-z0-9_.:-]+")


@dataclass(frozen=True)
class Management:
    """How the host is managed: an address of its own or of the controller, and the TCP port."""

    address: str
    port: int = 22


def spi_conflicts(states: Iterable[State]) -> List[str]:
    """SAs that the kernel cannot hold beside each other, whatever their sources.

    Two SAs of one destination, protocol and SPI conflict when a packet mark could mean either.
    Work grows with the number of SAs, not with its square.
    """
    groups: Dict[Tuple[str, str, Optional[int]], List[State]] = {}
    for state in states:
        groups.setdefault((state.dst, state.proto, state.spi), []).append(state)
    errors: List[str] = []
    for (dst, proto, spi), members in groups.items():
        if len(members) < 2 or spi is None:
            continue
        masks = {mark_of(member.mark)[1] for member in members}
        exact: Set[Tuple[int, int]] = set()
        seen_by: Set[Tuple[int, int]] = set()  # (value, mask) of an SA that an earlier one matches
        for member in members:
            value, mask = mark_of(member.mark)
            # The kernel's own test: the new SA's mark under the mask of one that is there.
            found = any((value & other, other) in exact for other in masks)
            if found or (value, mask) in seen_by:
                errors.append(
                    f"SPI 0x{spi:x} used twice for {dst} {proto}"
                    + (f" mark 0x{value:x}" if mask else "")
                    + f" (source {member.src}): an SA is one per destination, protocol, SPI and "
                    "mark"
                )
            exact.add((value, mask))
            seen_by.update((value & other, other) for other in masks)
    return errors


def check_states(states: Sequence[State], keys: Vault) -> List[str]:
    """Errors of SAs, each naming the SA and the key at fault. ``keys`` are the declared ones."""
    errors = spi_conflicts(states)
    for index, state in enumerate(states):
        at = f"sas[{index}] ({state_name(state)})"
        errors += [f"{at}.{text}" for text in _state_errors(state, keys)]
    return errors


@functools.lru_cache(maxsize=1024)
def _family(text: str) -> int:
    # A table of thousands of SAs has two addresses.
    return ipaddress.ip_network(text, strict=False).version


def _families(names: Dict[str, str]) -> List[str]:
    """Errors when the named addresses or networks cannot be read or are of two families."""
    versions: Set[int] = set()
    for key, text in names.items():
        try:
            versions.add(_family(text))
        except ValueError:
            return [f"{key}: {text!r}, wanted an address"]
    if len(versions) > 1:
        return [f"{next(iter(names))}: {', '.join(names.values())}, wanted one address family"]
    return []


def _context_errors(context: Optional[str]) -> List[str]:
    if context is None:
        return []
    try:
        parse_context(context)
    except LabelError as error:
        return [f"ctx: {error}"]
    return []


def _mark_errors(mark: Optional[Mark]) -> List[str]:
    if mark is None or (0 <= mark.value < 1 << 32 and 0 <= mark.mask < 1 << 32):
        return []
    return [f"mark: {mark.value}/{mark.mask}, wanted 32-bit numbers"]


def _state_errors(state: State, keys: Vault) -> List[str]:
    errors = _families({"src": state.src, "dst": state.dst})
    if state.proto not in ("esp", "ah"):
        errors.append(f"proto: {state.proto!r}, wanted esp or ah")
    if state.spi is None or not 0 < state.spi < 1 << 32:
        errors.append(f"spi: {state.spi}, wanted 1 to 0xffffffff (below 0x100 is reserved)")
    if state.mode not in ("transport", "tunnel", "beet"):
        errors.append(f"mode: {state.mode!r}, wanted transport, tunnel or beet")
    window = state.window or 0
    if not 0 <= window <= MAX_WINDOW:
        errors.append(f"replay_window: {window}, wanted 0 to {MAX_WINDOW}")
    if state.esn and window == 0 and state.direction != "out":
        errors.append(f"replay_window: 0 with esn, wanted 1 to {MAX_WINDOW}")
    if state.selector is not None:
        ends = {"selector": state.selector.src, "dst": state.selector.dst}
        errors += _families(ends if state.mode == "tunnel" else {**ends, "of the SA": state.dst})
    if state.offload is not None:
        if not _NAME.fullmatch(state.offload.dev):
            errors.append(f"offload.dev: {state.offload.dev!r}, wanted the name of a device")
        if state.offload.direction not in ("in", "out"):
            errors.append(f"offload.dir: {state.offload.direction!r}, wanted in or out")
    errors += _context_errors(state.context) + _mark_errors(state.mark)
    return errors + _algorithm_errors(state, keys)


def _algorithm_errors(state: State, keys: Vault) -> List[str]:
    kinds = [algorithm.kind for algorithm in state.algorithms]
    esp = (["aead"], ["enc"], ["auth-trunc", "enc"])
    if sorted(kinds) not in (esp if state.proto == "esp" else (["auth-trunc"],)):
        wanted = "aead, or enc with or without auth-trunc" if state.proto == "esp" else "auth-trunc"
        return [f"algorithms: {', '.join(kinds) or 'none'}, wanted {wanted} for {state.proto}"]
    return [text for algorithm in state.algorithms for text in _one(state, algorithm, keys)]


def _one(state: State, algorithm: Algorithm, keys: Vault) -> List[str]:
    bits: Tuple[int, ...] = ()
    if algorithm.kind == "enc":
        table: Dict[str, Tuple[int, ...]] = CIPHERS
    else:
        pairs = AEADS if algorithm.kind == "aead" else HASHES
        table = {name: lengths for name, (lengths, _) in pairs.items()}
        bits = pairs.get(algorithm.name, ((), ()))[1]
    if algorithm.name not in table:
        return [f"{algorithm.kind}: {algorithm.name!r}, wanted one of {', '.join(table)}"]
    errors = []
    if bits and algorithm.bits not in bits:
        errors.append(
            f"{algorithm.kind}: integrity value of {algorithm.bits} bits for {algorithm.name}, "
            f"wanted one of {list(bits)}"
        )
    lengths = table[algorithm.name]
    key = keys.get(state_id(state), algorithm.kind)
    text = "" if key is None else key.reveal()
    if text and not re.fullmatch(r"0x(?:[0-9a-fA-F]{2})*", text):
        return [*errors, f"{algorithm.kind}: the key is not 0x and pairs of hexadecimal digits"]
    length = max(len(text) - 2, 0) // 2
    if length not in lengths:
        errors.append(
            f"{algorithm.kind}: key of {length} bytes for {algorithm.name}, wanted "
            f"{' or '.join(str(item) for item in lengths)}"
        )
    return errors


def check_policies(policies: Sequence[Policy], management: Sequence[Management] = ()) -> List[str]:
    """Errors of policies, each naming the policy and the key at fault."""
    errors: List[str] = []
    seen: Dict[object, int] = {}
    for index, policy in enumerate(policies):
        at = f"policies[{index}] ({policy_name(policy)})"
        first = seen.setdefault(policy_id(policy), index)
        if first != index:
            errors.append(
                f"{at}: the same as policies[{first}]: a policy is one per selector, direction, "
                "mark, interface id and label"
            )
        errors += [f"{at}.{text}" for text in _policy_errors(policy)]
        if policy.action == "allow" and not policy.templates:
            continue
        for manager in management:
            if covers(policy.selector, manager):
                errors.append(
                    f"{at}.selector: covers the management address {manager.address} port "
                    f"{manager.port}; choose the test addresses only"
                )
    return errors


def _policy_errors(policy: Policy) -> List[str]:
    chosen = policy.selector
    errors = _families({"selector": chosen.src, "dst": chosen.dst})
    if policy.direction not in ("in", "out", "fwd"):
        errors.append(f"dir: {policy.direction!r}, wanted in, out or fwd")
    if policy.action not in ("allow", "block"):
        errors.append(f"action: {policy.action!r}, wanted allow or block")
    for key, value in (("selector.dev", chosen.dev), ("selector.proto", chosen.proto)):
        if value is not None and not _NAME.fullmatch(value):
            errors.append(f"{key}: {value!r}, wanted a name")
    if chosen.proto is None and (chosen.sport is not None or chosen.dport is not None):
        errors.append("selector.proto: missing, ports need one (tcp, udp, sctp)")
    errors += _context_errors(policy.context) + _mark_errors(policy.mark)
    for number, template in enumerate(policy.templates):
        key = f"tmpl[{number}]"
        found = _families({f"{key}.src": template.src, f"{key}.dst": template.dst})
        if template.mode not in ("transport", "tunnel", "beet"):
            errors.append(f"{key}.mode: {template.mode!r}, wanted transport, tunnel or beet")
        elif not found and template.mode == "tunnel":
            if ipaddress.ip_address(template.dst).is_unspecified:
                errors.append(f"{key}.dst: {template.dst}, a tunnel needs its end's address")
        elif not found and not errors:
            found = _families({f"{key}.src": template.src, "selector": chosen.src})
        if template.level not in ("required", "use"):
            errors.append(f"{key}.level: {template.level!r}, wanted required or use")
        errors += found
    return errors


def covers(selector: Selector, management: Management) -> bool:
    """Whether packets of the management connection can match, in either direction."""
    if selector.proto not in (None, "tcp"):
        return False
    try:
        host = ipaddress.ip_address(management.address)
        networks = [
            ipaddress.ip_network(text, strict=False) for text in (selector.src, selector.dst)
        ]
    except ValueError:
        return False
    ports = {selector.sport, selector.dport} - {None}
    if ports and management.port not in ports:
        return False
    return any(host in network for network in networks)
