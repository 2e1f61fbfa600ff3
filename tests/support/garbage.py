"""Keeps the garbage collector from reading all modules and test functions again and again."""

import gc

import pytest

YOUNG = 20_000
"""Objects made before a collection of the young ones; Python's own is 700 (3.11)."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection() -> None:
    """Collect tests without collecting garbage: nearly all that is made then stays."""
    gc.disable()


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """Set aside what is there before the first test: it stays to the end."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG, 20, 20)
    gc.enable()
