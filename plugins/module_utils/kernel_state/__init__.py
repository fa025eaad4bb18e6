"""Readers of kernel state: text that the kernel and its tools print, as typed values.

The same source runs in two places: on the managed hosts (as ``module_utils`` of the
collection) and offline in the collector (as ``collector.kernel_state``, a symbolic link). So it
uses the standard library only, Python 3.9 syntax, and imports nothing outside this folder.
Readers take text and return frozen dataclasses; what cannot be read raises
:class:`~.errors.StateError`. What the text does not say is ``None``. Key material is never kept.
"""
