"""Crossover's offline half: plans, parsers, statistics, verdicts and reports.

Nothing in this package opens a connection to a measured host, and only ``collector.run.runner``
imports Ansible (through ansible-runner).

Its parts, each of which imports from those above it and never from those below
(tests/repo/test_collector_parts.py holds them to it):

- ``errors``, ``verdict``, ``duration``, ``tables``, ``junit``, ``files``, ``shape``: for all
- ``yaml_text``: YAML whose keys stand once
- ``kernel_state``, ``sessions``, ``lab``, ``kernels``: shared with the plugins (decision 0002)
- ``wire``: captured packets and what their headers say
- ``parsers``: what the tools print, read strictly
- ``published``: the figures of published experiments
- ``forwarding``: trials and searches of RFC 2544
- ``matrix``: what is to be measured
- ``runfolder``: what a run leaves on disk
- ``proof``: what must hold before a number counts
- ``results``: from what the tools printed to samples
- ``run``: a run planned, gone through and written down
- ``stats``: from samples to judged cells
- ``compare``: two sides, cell by cell
- ``history``: many runs, cell by cell
- ``stress``: hours of load on one configuration
- ``report``: a run as text, Markdown, HTML, CSV, JSON and JUnit
- ``commands``: one module a subcommand of ``crossover``
- ``cli``, ``devel``, ``__main__``: the entry points

A package's main module has the package's name (``matrix/matrix.py``), where it has one.
"""

__version__ = "0.1.0"
