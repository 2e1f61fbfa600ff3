"""Skipped tests: what needs root without it, and runs in which a skip is a failure.

Where everything that the tests need can be installed, as in CI, a skip hides what was not tested:
`--fail-on-skip` makes such a run fail.
"""

import os
from typing import Any

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let a run take skips for failures."""
    parser.addoption("--fail-on-skip", action="store_true", help="fail if any test was skipped")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip, and so count, what needs root where there is none."""
    if os.geteuid() == 0:
        return
    for item in items:
        if item.get_closest_marker("root"):
            item.add_marker(pytest.mark.skip(reason="needs root"))


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Give the number of tests on the real thing, by whether they ran."""
    counted = [
        "root" in report.keywords
        for outcome in ("passed", "failed", "inconclusive")
        for report in terminalreporter.getreports(outcome)
        if report.when == "call"
    ]
    skipped = terminalreporter.getreports("skipped")
    terminalreporter.write_line(
        f"on real namespaces, cgroups and schedulers: {sum(counted)} tests ran, "
        f"{sum('root' in report.keywords for report in skipped)} were skipped"
    )
    if skipped and config.getoption("fail_on_skip"):
        terminalreporter.write_line(f"{len(skipped)} skipped with --fail-on-skip: the run fails")


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail a run that skipped something it should not have."""
    terminal = session.config.pluginmanager.getplugin("terminalreporter")
    if terminal is None or hasattr(session.config, "workerinput"):
        return
    if session.config.getoption("fail_on_skip") and terminal.getreports("skipped"):
        session.exitstatus = session.exitstatus or pytest.ExitCode.TESTS_FAILED
