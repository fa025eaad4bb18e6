"""Crossover's offline half: plans, parsers, statistics, verdicts and reports.

Nothing in this package opens a connection to a measured host, and only ``collector.run.runner``
imports Ansible (through ansible-runner).
"""

__version__ = "0.1.0"
