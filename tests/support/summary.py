"""Writes what became of a run's tests to a file, so that several runs can be added up."""

import json
import time
from pathlib import Path
from typing import Any

import pytest

from support.inconclusive import reason
from support.stalls import PROPERTY

COUNTED = ("passed", "failed", "error", "skipped", "inconclusive")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let a run name the file."""
    parser.addoption("--summary", type=Path, metavar="FILE", help="write outcomes as JSON")


def pytest_configure(config: pytest.Config) -> None:
    """Begin to count the time."""
    config.stash[_BEGUN] = time.monotonic()


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Write the file."""
    path: Path | None = config.getoption("summary")
    if path is None:
        return
    reports = {name: terminalreporter.getreports(name) for name in COUNTED}
    counts: dict[str, Any] = {name: len(found) for name, found in reports.items()}
    counts["failures"] = [one.nodeid for name in ("failed", "error") for one in reports[name]]
    counts["not_judged"] = [f"{one.nodeid}: {reason(one)}" for one in reports["inconclusive"]]
    counts["longest_stall_s"] = max(_stalls(reports), default=0.0)
    counts["seconds"] = time.monotonic() - config.stash[_BEGUN]
    path.write_text(json.dumps(counts, indent=1) + "\n")


def _stalls(reports: dict[str, Any]) -> list[float]:
    return [
        float(value)
        for found in reports.values()
        for report in found
        for name, value in getattr(report, "user_properties", ())
        if name == PROPERTY
    ]


_BEGUN = pytest.StashKey[float]()
