"""JUnit XML, as continuous-integration servers read it.

Element names and attributes follow the schema the Jenkins xUnit plugin publishes (junit-10.xsd):
``testsuite`` with ``tests``, ``failures``, ``errors``, ``skipped``; in each ``testcase`` at most
one of ``failure``, ``error``, ``skipped``, then ``system-out``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from xml.etree import ElementTree

# Characters that XML 1.0 forbids even as references (https://www.w3.org/TR/xml/#charsets).
_FORBIDDEN = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class Outcome(StrEnum):
    """``failed``: the thing under test is worse. ``error``: it could not be told (invalid cell,
    infrastructure). ``skipped``: not run here, or too few samples to judge."""

    PASSED = "passed"
    FAILED = "failed"
    ERROR = "error"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One test case. ``kind`` is the verdict word (attribute ``type``), ``message`` one line,
    ``detail`` more lines, ``output`` what goes to system-out, ``time_s`` seconds or None."""

    classname: str
    name: str
    outcome: Outcome = Outcome.PASSED
    kind: str | None = None
    message: str | None = None
    detail: str | None = None
    output: str | None = None
    time_s: float | None = None


def junit_xml(suite_name: str, cases: Sequence[Case]) -> str:
    """A whole JUnit document (with XML declaration and a final newline).

    Raises ValueError if there are no cases: a suite that checked nothing must not look passed.
    """
    if not cases:
        raise ValueError(f"JUnit suite {suite_name!r}: no cases; wanted at least one")
    counts = {
        "tests": len(cases),
        "failures": sum(case.outcome is Outcome.FAILED for case in cases),
        "errors": sum(case.outcome is Outcome.ERROR for case in cases),
        "skipped": sum(case.outcome is Outcome.SKIPPED for case in cases),
    }
    root = ElementTree.Element("testsuites")
    suite = ElementTree.SubElement(
        root,
        "testsuite",
        {"name": _clean(suite_name), **{key: str(value) for key, value in counts.items()}},
    )
    for case in cases:
        suite.append(_element(case))
    ElementTree.indent(root, space="  ")
    body = ElementTree.tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{body}\n'


def _element(case: Case) -> ElementTree.Element:
    attributes = {"classname": _clean(case.classname), "name": _clean(case.name)}
    if case.time_s is not None:
        attributes["time"] = f"{case.time_s:.3f}"
    element = ElementTree.Element("testcase", attributes)
    tag = {Outcome.FAILED: "failure", Outcome.ERROR: "error", Outcome.SKIPPED: "skipped"}.get(
        case.outcome
    )
    if tag is not None:
        child = ElementTree.SubElement(element, tag)
        if case.kind is not None:
            child.set("type", _clean(case.kind))
        if case.message is not None:
            child.set("message", _clean(case.message))
        if case.detail is not None:
            child.text = _clean(case.detail)
    if case.output is not None:
        ElementTree.SubElement(element, "system-out").text = _clean(case.output)
    return element


def _clean(text: str) -> str:
    """Text without the characters XML cannot carry (each becomes U+FFFD)."""
    return _FORBIDDEN.sub("\ufffd", text)
