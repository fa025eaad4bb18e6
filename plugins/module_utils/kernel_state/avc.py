"""SELinux denials: AVC lines of the audit log, of ``ausearch`` and of the kernel log.

Format: Linux security/selinux/avc.c and security/lsm_audit.c. After ``for`` there may be one
blank or more, and any field may be missing but scontext, tcontext and tclass.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Dict, List, Mapping, Optional, Tuple

from .context import LabelError, SecurityContext, parse_context
from .errors import StateError, Text, number_lines

SIGNATURE = re.compile(r"\bavc:\s+(denied|granted)\s+\{")
_LINE = re.compile(
    r"(?:type=(?:AVC|USER_AVC|1400|1107) )?(?:(?:.*?)(?:msg=)?audit\(([0-9.]+):([0-9]+)\):)?"
    r".*?avc:\s+(denied|granted)\s+\{ ([a-z0-9_ ]+?) \}\s+for\s+(.*)"
)
_FIELD = re.compile(r'([a-z_0-9]+)=("[^"]*"|\S+)')
_CONTEXT_RANGE = re.compile(r"[A-Za-z0-9_.,:-]+")
_PLACED = ("scontext", "tcontext", "tclass", "permissive", "pid", "comm", "trawcon", "srawcon")


@dataclass(frozen=True)
class Avc:
    """A decision. ``permissive`` is None where an old kernel does not print it.

    ``extra`` keeps the other fields as printed: saddr, src, daddr, dest, netif, laddr, lport,
    name, path, ipaddr and so on.
    """

    denied: bool
    permissions: Tuple[str, ...]
    source: SecurityContext
    target: SecurityContext
    tclass: str
    permissive: Optional[bool]
    pid: Optional[int]
    comm: Optional[str]
    time: Optional[float]
    serial: Optional[int]
    extra: Mapping[str, str]

    @property
    def enforced(self) -> bool:
        """Whether the access was refused. Not said (kernels before 3.16) counts as refused."""
        return self.denied and self.permissive is not True


def is_avc(line: str) -> bool:
    """Whether the line is an AVC decision."""
    return SIGNATURE.search(line) is not None


def parse_avc(line: str, number: int = 1) -> Avc:
    """Read one line. Raises :class:`StateError` when it is no whole AVC line."""
    match = _LINE.search(line.strip())
    if match is None:
        raise StateError(number, repr(line.strip()[:80]), "avc:  denied  { … } for …")
    fields: Dict[str, str] = {}
    for key, value in _FIELD.findall(match.group(5)):
        if key in fields:
            raise StateError(number, f"{key} a second time", "each field once")
        fields[key] = value.strip('"')
    contexts = {}
    for key in ("scontext", "tcontext"):
        try:
            contexts[key] = parse_context(fields[key].rstrip("'"))
        except (KeyError, LabelError):
            raise StateError(number, f"{key} {fields.get(key, 'missing')}", "a context") from None
    tclass = fields.get("tclass", "").rstrip("'")
    if not re.fullmatch(r"[a-z0-9_]+", tclass):
        raise StateError(number, f"tclass {tclass or 'missing'}", "an object class")
    permissive = fields.get("permissive", "").rstrip("'")
    if permissive not in ("", "0", "1"):
        raise StateError(number, f"permissive={permissive}", "0 or 1")
    pid = fields.get("pid")
    if pid is not None and not pid.isdecimal():
        raise StateError(number, f"pid={pid}", "a number")
    return Avc(
        denied=match.group(3) == "denied",
        permissions=tuple(match.group(4).split()),
        source=contexts["scontext"],
        target=contexts["tcontext"],
        tclass=tclass,
        permissive=None if permissive == "" else permissive == "1",
        pid=None if pid is None else int(pid),
        comm=fields.get("comm"),
        time=None if match.group(1) is None else _time(match.group(1), number),
        serial=None if match.group(2) is None else int(match.group(2)),
        extra={key: value for key, value in fields.items() if key not in _PLACED},
    )


def _time(text: str, number: int) -> float:
    try:
        return float(text)
    except ValueError:
        raise StateError(number, f"audit({text})", "seconds since 1970") from None


def parse_avcs(text: Text) -> Tuple[Avc, ...]:
    """Every AVC line of a log; other lines are left alone. Raises as :func:`parse_avc` does."""
    return tuple(parse_avc(line, number) for number, line in number_lines(text) if is_avc(line))


def allow_rule(avc: Avc) -> str:
    """The rule that the decision implies, for a person to judge; nothing loads it.

    One permission stands bare, several in braces, a target of the source's own type is ``self``.
    """
    target = "self" if avc.target.type == avc.source.type else avc.target.type
    permissions = avc.permissions
    listed = permissions[0] if len(permissions) == 1 else "{ " + " ".join(permissions) + " }"
    return f"allow {avc.source.type} {target}:{avc.tclass} {listed};"


def allow_rules(avcs: Iterable[Avc]) -> Tuple[str, ...]:
    """One rule a source, target and class, over all denials, in a fixed order."""
    merged: Dict[Tuple[str, str, str], List[Avc]] = {}
    for avc in avcs:
        if avc.denied:
            merged.setdefault((avc.source.type, avc.target.type, avc.tclass), []).append(avc)
    rules = []
    for key in sorted(merged):
        names = sorted({name for avc in merged[key] for name in avc.permissions})
        target = "self" if key[0] == key[1] else key[1]
        listed = names[0] if len(names) == 1 else "{ " + " ".join(names) + " }"
        rules.append(f"allow {key[0]} {target}:{key[2]} {listed};")
    return tuple(rules)


_EXPLAINED = (
    ("association", {"polmatch"}, None,
     "the domain may not use an IPsec policy of this label"),
    ("association", {"sendto", "recvfrom"}, "unlabeled_t",
     "traffic left or came without an SA while labelled networking is active"),
    ("association", {"sendto", "recvfrom"}, None,
     "the domain may not send to or receive from an SA of this label"),
    ("association", {"setcontext"}, None, "the caller may not give this label to an SA or policy"),
    ("peer", {"recv"}, "unlabeled_t",
     "an unlabelled packet reached the domain while labelled networking is active"),
    ("peer", {"recv"}, None, "the domain may not receive from a peer of this label"),
    ("netif", {"ingress", "egress"}, None, "a labelled packet may not pass this interface"),
    ("node", {"recvfrom", "sendto"}, None, "a labelled packet may not pass this address"),
)  # fmt: skip


def explain(avc: Avc) -> Optional[str]:
    """What a denial of labelled networking means, None for what has nothing to do with it."""
    for tclass, names, target, meaning in _EXPLAINED:
        fits = avc.tclass == tclass and target in (None, avc.target.type)
        if fits and names & set(avc.permissions):
            return meaning
    return None
