"""A third outcome of a test: the machine was too busy for it to be judged.

A test that judges times or rates calls `inconclusive` where what the kernel counted shows that it
did not get the CPU it needed. Such tests are counted apart from failures and skips, listed at the
end, and fail the run where there are more of them than its budget (`--inconclusive-budget`).
"""

from collections.abc import Iterator
from typing import Any, Final, NoReturn

import pytest

OUTCOME: Final = "inconclusive"


class Inconclusive(Exception):  # noqa: N818  an outcome, as pytest's own are
    """What a test saw does not tell whether the code is right or wrong."""


def inconclusive(reason: str) -> NoReturn:
    """End the running test without a judgement.

    Raises:
        Inconclusive: always.
    """
    raise Inconclusive(reason)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let a run say how many tests may stay without a judgement."""
    parser.addoption(
        "--inconclusive-budget",
        type=int,
        default=0,
        metavar="N",
        help="fail if more than N tests could not be judged on this machine (default: 0)",
    )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """Give a test that ended as inconclusive an outcome of its own."""
    report: Any = yield
    if call.excinfo is not None and call.excinfo.errisinstance(Inconclusive):
        report.outcome = "skipped"
        report.longrepr = (str(item.path), item.location[1], str(call.excinfo.value))
        report.inconclusive = True
    return report


def is_inconclusive(report: pytest.TestReport) -> bool:
    """Whether a report, which may have come from another process, is of such a test."""
    return bool(getattr(report, OUTCOME, False))


def reason(report: Any) -> str:
    """Return why such a test could not be judged."""
    return str(report.longrepr[2])


def pytest_report_teststatus(report: pytest.TestReport) -> tuple[str, str, str] | None:
    """Count such tests by their own word."""
    return (OUTCOME, "?", OUTCOME.upper()) if is_inconclusive(report) else None


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """List what could not be judged, and whether the run has a budget for that."""
    reports = terminalreporter.getreports(OUTCOME)
    budget = config.getoption("inconclusive_budget")
    for report in reports:
        terminalreporter.write_line(f"INCONCLUSIVE {report.nodeid} - {reason(report)}")
    terminalreporter.write_line(
        f"inconclusive: {len(reports)}, budget: {budget}"
        + (": over budget, the run fails" if len(reports) > budget else "")
    )


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail a run with more such tests than its budget."""
    terminal = session.config.pluginmanager.getplugin("terminalreporter")
    if terminal is None or hasattr(session.config, "workerinput"):
        return
    if len(terminal.getreports(OUTCOME)) > session.config.getoption("inconclusive_budget"):
        session.exitstatus = session.exitstatus or pytest.ExitCode.TESTS_FAILED
