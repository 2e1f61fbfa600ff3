"""Hypothesis profiles, a log of its own for each test, and the outcomes of support.

Profiles: `gate` says the same every time, `check` and `coverage` less of it,
`hunt` looks for new failures.
"""

import os
from collections.abc import Iterator

# Before numpy is loaded: test processes with a thread for each CPU wait for each other.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import pyroute2.config
import pytest
import structlog
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers

pytest_plugins = [
    f"support.{name}" for name in ("garbage", "inconclusive", "skips", "stalls", "summary")
]

# Seconds that a child of pyroute2 has to make a namespace; 2 are too few on a busy machine.
pyroute2.config.default_communicate_timeout = 60

# structlog shows the values of all variables of a traceback, which takes 0.1 s of CPU.
for step in structlog.get_config()["processors"]:
    if isinstance(step, structlog.dev.ConsoleRenderer):
        step.exception_formatter = structlog.dev.plain_traceback

# How fast examples are drawn tells of the machine's other work, not of the code.
COMMON = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("gate", COMMON, derandomize=True, max_examples=100)
settings.register_profile("check", COMMON, derandomize=True, max_examples=40)
settings.register_profile("coverage", COMMON, derandomize=True, max_examples=10)
settings.register_profile("hunt", COMMON, max_examples=2000, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "gate"))

# Hypothesis also draws constants of the project's modules that are loaded by then, which depends
# on the tests that this process ran before. A Hypothesis without this function needs another way.
if settings().derandomize:
    assert callable(providers._get_local_constants)
    providers._get_local_constants = providers.Constants


@pytest.fixture(autouse=True)
def _own_log() -> Iterator[None]:
    """Undo a test's logging: it may write to a standard error that is closed by now."""
    yield
    structlog.reset_defaults()
