"""A plugin of pytest: collect once, then run the tests of each mutant in a fork."""

import itertools
import json
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from _pytest.main import pytest_runtestloop
from hypothesis import HealthCheck, Phase, settings, strategies

from scripts.mutation import forks
from scripts.mutation.operators import Mutant
from scripts.mutation.swap import swap

COMMON = settings(deadline=None, suppress_health_check=list(HealthCheck))
EXAMPLES = 50
settings.register_profile(
    "mutants",
    COMMON,
    database=None,
    derandomize=True,
    max_examples=EXAMPLES,
    phases=(Phase.explicit, Phase.generate),
)
"""Like the tests' profile `gate`, but without shrinking: only the failure counts."""

KILLED, SURVIVED, UNPLACED = 1, 0, 71
BUDGET = 3.0
"""Seconds of tests for a mutant, the quickest first: they must detect a fault of a pure core."""


def affordable(items: list[pytest.Item], seconds: dict[str, float]) -> list[pytest.Item]:
    """Return the quickest tests, up to the budget, and at least one."""
    items = sorted(items, key=lambda item: seconds[item.nodeid])
    spent = itertools.accumulate(seconds[item.nodeid] for item in items)
    within = sum(so_far <= BUDGET for so_far in spent)
    return items[: max(within, 1)]


def run_tests(session: pytest.Session) -> int:
    """Run the session's tests up to the first that fails."""
    session.config.option.maxfail = 1
    try:
        pytest_runtestloop(session)
    except (session.Failed, session.Interrupted):
        return KILLED
    return KILLED if session.testsfailed else SURVIVED


class Recorder:
    """Record which functions of one file each test calls, and its duration."""

    def __init__(self, target: Path) -> None:
        self._target = str(target)
        self._test: str | None = None
        self.calls: dict[str, set[str]] = {}
        self.seconds: dict[str, float] = {}
        self.at_import: set[str] = set()
        self.failed: list[str] = []

    def start(self) -> None:
        """Watch calls from now on, including those in future threads."""
        sys.settrace(self._trace)
        threading.settrace(self._trace)

    def stop(self) -> None:
        """Stop watching calls."""
        sys.settrace(None)
        threading.settrace(None)

    def _trace(self, frame: FrameType, _event: str, _: object) -> None:
        """Record a call; returning None switches off tracing of its lines."""
        if frame.f_code.co_filename == self._target:
            name = frame.f_code.co_qualname.split(".<locals>")[0]
            known = self.at_import if self._test is None else self.calls[self._test]
            known.add(name)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep the text of a failure, for debugging."""
        if report.failed:
            self.failed.append(f"{report.nodeid}\n{report.longreprtext}")

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Attribute calls during the test to it."""
        self._test = item.nodeid
        self.calls[item.nodeid] = set()
        began = time.process_time()
        result = yield
        self.seconds[item.nodeid] = time.process_time() - began
        self._test = None
        return result


class Server:
    """Replace pytest's loop: run once without a mutation, then once for each mutant."""

    def __init__(self, target: Path, mutants: dict[int, Mutant], answers: Path) -> None:
        self._target = target
        self._mutants = mutants
        self._answers = answers
        self._recorder = Recorder(target)

    def pytest_configure(self, config: pytest.Config) -> None:
        """Watch the calls of tests during collection."""
        config.pluginmanager.register(self._recorder)
        self._recorder.start()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Write the result of each mutant, and the list of those that need their own import."""
        self._recorder.stop()
        strategies.text().validate()  # make its slow Unicode tables before forks
        baseline = self._baseline(session)
        answer: dict[str, Any] = {"modules": _foreign(), **baseline, "codes": {}}
        if baseline["code"] == SURVIVED:
            answer["codes"] = {
                number: self._judge(session, mutant, baseline)
                for number, mutant in self._mutants.items()
            }
        self._answers.write_text(json.dumps(answer))
        return True

    def _baseline(self, session: pytest.Session) -> dict[str, Any]:
        notes = self._answers.with_suffix(".baseline")

        def work() -> int:
            self._recorder.start()
            code = run_tests(session)
            self._recorder.stop()
            calls = {test: sorted(names) for test, names in self._recorder.calls.items()}
            seconds, failed = self._recorder.seconds, self._recorder.failed
            notes.write_text(json.dumps({"calls": calls, "seconds": seconds, "failed": failed}))
            return code

        code, _ = forks.run(work)
        return {"code": code, **json.loads(notes.read_text())}

    def _judge(self, session: pytest.Session, mutant: Mutant, baseline: dict[str, Any]) -> int:
        """Return a mutant's exit code; run only tests that call its function."""
        if mutant.function is None or mutant.function in self._recorder.at_import:
            return UNPLACED
        calls, seconds = baseline["calls"], baseline["seconds"]
        items = [item for item in session.items if mutant.function in calls[item.nodeid]]
        items = affordable(items, seconds)

        def work() -> int:
            if not swap(self._target, mutant):
                return UNPLACED
            session.items[:] = items
            return run_tests(session)

        return forks.run(work, sum(seconds[item.nodeid] for item in items))[0]


def _foreign() -> list[str]:
    """Name the modules from outside the tree, which may be imported before a fork."""
    root = str(Path.cwd())
    found = ((name, getattr(module, "__file__", None)) for name, module in sys.modules.items())
    return [name for name, file in found if file and not file.startswith(root)]
