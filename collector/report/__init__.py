"""Reports of a run and of the published experiments: text, Markdown, CSV, JSON, JUnit, HTML.

Everything here is a pure function from a :class:`collector.report.model.Report` (or a
:class:`collector.published.Published`) to text; ``collector.commands.report`` reads and writes.
"""
