"""Concurrent netperf sessions: starting them, the window that all share, what they did in it.

This folder is used on both sides (docs/decisions/0002): standard library and relative imports
only, Python 3.9.
"""
