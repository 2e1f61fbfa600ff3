"""Hypothesis profiles, and a count of the tests that ran on real namespaces and cgroups.

Profiles: `gate` says the same every time, `hunt` looks for new failures.
"""

import os
from collections.abc import Iterator

import pytest
import structlog
from hypothesis import HealthCheck, settings

# How fast examples are drawn tells of the machine's other work, not of the code.
COMMON = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("gate", COMMON, derandomize=True, max_examples=100)
settings.register_profile("hunt", COMMON, max_examples=2000, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "gate"))


@pytest.fixture(autouse=True)
def _own_log() -> Iterator[None]:
    """Undo a test's logging: it may write to a standard error that is closed by now."""
    yield
    structlog.reset_defaults()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip, and so count, what needs root where there is none."""
    if os.geteuid() == 0:
        return
    for item in items:
        if item.get_closest_marker("root"):
            item.add_marker(pytest.mark.skip(reason="needs root"))


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Count the tests that need root, by whether they ran."""
    if "root" in report.keywords and (report.when == "call" or report.skipped):
        COUNT["skipped" if report.skipped else "ran"] += 1


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say how much of the real thing was tested."""
    if any(COUNT.values()):
        terminalreporter.write_line(
            f"on real namespaces, cgroups and schedulers: {COUNT['ran']} tests ran, "
            f"{COUNT['skipped']} were skipped"
        )


COUNT = {"ran": 0, "skipped": 0}
