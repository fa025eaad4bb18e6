"""The one error type of the kernel code."""

from __future__ import annotations


class KernelError(Exception):
    """A kernel cannot be had as declared; the text says what, where, what came, what was wanted."""
