"""Fixtures of this folder's tests."""

from bench_fixtures import host, peer, port

__all__ = ["host", "peer", "port"]
