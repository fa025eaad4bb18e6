"""Kernels as data: an entry says what a kernel is made of, an artifact is what came of it.

Runs on the controller. ``collector.kernels`` is the same source: the command line builds and lists
kernels through it. docs/data-format.md has both formats.
"""
