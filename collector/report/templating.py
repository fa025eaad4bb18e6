"""Jinja environments for the templates beside this file: a missing name is an error."""

from __future__ import annotations

from functools import lru_cache

from jinja2 import Environment, PackageLoader, StrictUndefined

from collector.report import layout, words


@lru_cache(maxsize=2)
def environment(*, html: bool) -> Environment:
    """Templates of ``collector/report/templates``; HTML ones escape every value."""
    env = Environment(
        loader=PackageLoader("collector.report", "templates"),
        undefined=StrictUndefined,
        autoescape=html,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    env.filters["bullet"] = layout.bullet
    env.filters["paragraph"] = layout.paragraph
    env.filters["underlined"] = layout.underlined
    env.filters["command_line"] = words.command_line
    env.filters["command_lines"] = words.command_lines
    return env


def render(name: str, *, html: bool = False, **values: object) -> str:
    """The template with these values; an undefined name raises jinja2.UndefinedError."""
    return environment(html=html).get_template(name).render(**values)
