"""The one error of the host modules."""

from __future__ import annotations


class HostError(Exception):
    """Something a person has to look at; the text says what, where, found and wanted."""


class BusyError(HostError):
    """Somebody else uses the host or the port: trying later may help."""


class NotInstalledError(HostError):
    """A command that this host does not have."""
