"""Order and honesty of the suite."""

from __future__ import annotations

import os

import pytest


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item):
    """What a test leaves in the environment (the command line names its lab there) ends with it."""
    before = dict(os.environ)
    try:
        return (yield)
    finally:
        os.environ.clear()
        os.environ.update(before)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Fast tests first, then those on the lab, and at the very end the README, whose commands
    take the lab down."""

    def rank(item: pytest.Item) -> int:
        if "test_readme" in item.nodeid:
            return 2 if item.get_closest_marker("lab") else 0
        return 1 if item.get_closest_marker("lab") else 0

    items.sort(key=rank)
    for item in items:
        if item.get_closest_marker("lab"):
            # Emulated guests on a shared machine may stall for seconds. Once more, and the
            # summary line counts it: a test that needs it often is a defect.
            item.add_marker(pytest.mark.flaky(reruns=1))
