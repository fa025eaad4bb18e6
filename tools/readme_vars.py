#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Writes the table of variables in each role's README from its meta/argument_specs.yml.

    tools/readme_vars.py [--check] [ROLE_FOLDER ...]

Without a folder, all roles. The table stands between two marks in the README; a README without
marks is left alone. With --check nothing is written, and the exit code is 1 if one is out of date.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

BEGIN, END = "<!-- variables: begin -->", "<!-- variables: end -->"
ROLES = Path(__file__).resolve().parents[1] / "roles"


class ReadmeError(Exception):
    """A README or a specification that cannot be used; the text names the file."""


def table(options: Mapping[str, Any]) -> str:
    """The table in Markdown; nested options follow their parent, named from it."""
    lines = ["| Variable | Type | Default | Meaning |", "|---|---|---|---|"]
    lines += rows(options)
    return "\n".join(lines)


def rows(options: Mapping[str, Any], parent: str = "") -> Iterator[str]:
    """One line an option, in the order of the specification."""
    for name, option in options.items():
        full = f"{parent}{name}"
        kind = option.get("type", "str")
        if kind == "list" and "elements" in option:
            kind = f"list of {option['elements']}"
        yield f"| `{full}` | {kind} | {default_of(option)} | {meaning_of(option)} |"
        if "options" in option:
            inner = f"{full}[]." if option.get("type") == "list" else f"{full}."
            yield from rows(option["options"], inner)


def default_of(option: Mapping[str, Any]) -> str:
    """``required``, the default as YAML, or a dash."""
    if option.get("required"):
        return "required"
    if "default" not in option:
        return "–"
    text = yaml.safe_dump(option["default"], default_flow_style=True).strip()
    return f"`{text.removesuffix('...').strip()}`"


def meaning_of(option: Mapping[str, Any]) -> str:
    """Description and choices on one line, safe within a table."""
    given = option.get("description", "")
    text = " ".join(given) if isinstance(given, list) else str(given)
    if "choices" in option:
        text += " One of " + ", ".join(f"`{choice}`" for choice in option["choices"]) + "."
    return " ".join(text.split()).replace("|", "\\|")


def renew(readme: str, options: Mapping[str, Any], where: str) -> str:
    """The README with a current table. Raises :class:`ReadmeError` when a mark is alone."""
    if BEGIN not in readme and END not in readme:
        return readme
    before, begin, rest = readme.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ReadmeError(f"{where}: one of the two marks, wanted {BEGIN} before {END}")
    return f"{before}{BEGIN}\n{table(options)}\n{END}{after}"


def visit(role: Path, check: bool) -> bool:
    """Renew one role's README; whether it was out of date. Raises :class:`ReadmeError`."""
    readme, specs = role / "README.md", role / "meta" / "argument_specs.yml"
    try:
        text = readme.read_text()
        options = yaml.safe_load(specs.read_text())["argument_specs"]["main"].get("options", {})
    except (OSError, KeyError, TypeError, yaml.YAMLError) as error:
        raise ReadmeError(f"{role}: {error}, wanted a README.md and specs with a main") from error
    new = renew(text, options, str(readme))
    if new != text and not check:
        readme.write_text(new)
    return new != text


def main(arguments: list[str] | None = None) -> int:
    """Entry point; the exit code."""
    parser = argparse.ArgumentParser(description="Write the variables into the roles' READMEs.")
    parser.add_argument("--check", action="store_true", help="only say what is out of date")
    parser.add_argument("roles", nargs="*", type=Path, help="folders of roles (all)")
    given = parser.parse_args(arguments)
    roles = given.roles or sorted(
        path.parent.parent for path in ROLES.glob("*/meta/argument_specs.yml")
    )
    code = 0
    for role in roles:
        try:
            if visit(role, given.check):
                print(f"{role}/README.md: {'out of date' if given.check else 'renewed'}")
                code = 1 if given.check else code
        except ReadmeError as error:
            print(error, file=sys.stderr)
            code = 2
    return code


if __name__ == "__main__":
    sys.exit(main())
