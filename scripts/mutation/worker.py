"""Test the mutants of one module, in a copy of the tree: `worker.py REQUEST ANSWER`."""

import importlib
import json
import os
import signal
import sys
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pytest

from common.process import end_with_parent
from scripts.mutation import forks
from scripts.mutation.operators import Mutant, sample
from scripts.mutation.places import mutants_of
from scripts.mutation.serve import BUDGET, SURVIVED, UNPLACED, Server, affordable, run_tests
from scripts.mutation.swap import MutantFinder


class Request(msgspec.Struct, frozen=True):
    """A request to a worker."""

    path: str
    tests: list[str]
    seed: int
    limit: int
    survivors: list["Judged"] | None = None
    """Only these, of an earlier run; None for all."""


class Judged(msgspec.Struct, frozen=True):
    """One mutant, and its result."""

    line: int
    before: str
    after: str
    outcome: str
    """killed, survived, or timed out."""


IMPORT_SECONDS = 5.0
"""Longer than the import and collection of a file's tests."""
OPTIONS = [
    *("-q", "--capture=sys", "-p", "no:cacheprovider", "-p", "no:xdist", "-o", "timeout=0"),
    *("-W", "ignore::pytest.PytestAssertRewriteWarning"),  # the worker has imported hypothesis
]


@dataclass(frozen=True, slots=True)
class _Imported:
    """Run the tests with the mutant imported, the quickest first."""

    seconds: dict[str, float]

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        session.items[:] = affordable(session.items, self.seconds)
        os._exit(run_tests(session))


def _collected(request: Request, mutants: dict[int, Mutant], answers: Path) -> dict[str, Any]:
    """Test the mutants of functions, with tests that are collected once."""
    server = Server(Path(request.path).absolute(), mutants, answers)
    forks.run(lambda: int(pytest.main([*OPTIONS, *request.tests], plugins=[server])))
    if not answers.exists():
        raise SystemExit(f"{request.path}: its tests cannot be collected")
    answer: dict[str, Any] = json.loads(answers.read_text())
    if answer["code"] != SURVIVED:
        failed = "\n".join(answer["failed"])
        raise SystemExit(f"{request.path}: its tests fail without a mutation: {failed}")
    return answer


def _preload(names: list[str]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in names:
            if name not in sys.modules and importlib.util.find_spec(name) is not None:
                importlib.import_module(name)


def _import(request: Request, mutant: Mutant, seconds: dict[str, float]) -> int:
    """Test a mutant of code that runs at import: import everything again."""

    def work() -> int:
        name = request.path.removesuffix(".py").replace("/", ".").removesuffix(".__init__")
        MutantFinder(name, Path(request.path).absolute(), mutant).install()
        return int(pytest.main([*OPTIONS, *request.tests], plugins=[_Imported(seconds)]))

    return forks.run(work, BUDGET + IMPORT_SECONDS)[0]


def judge(request: Request, answers: Path) -> list[Judged]:
    """Return the result of each mutant of the sample; one that breaks pytest counts as killed."""
    source = Path(request.path).read_bytes()
    chosen = sample(list(mutants_of(source)), request.seed, request.limit)
    if request.survivors is not None:
        known = {(judged.before, judged.after) for judged in request.survivors}
        chosen = [mutant for mutant in chosen if (mutant.before, mutant.after) in known]
    mutants = dict(enumerate(chosen))
    answer = _collected(request, mutants, answers)
    _preload(answer["modules"])
    judged = []
    for number, mutant in mutants.items():
        code = answer["codes"][str(number)]
        if code == UNPLACED:
            code = _import(request, mutant, answer["seconds"])
        outcome = {SURVIVED: "survived", forks.TIMED_OUT: "timed out"}.get(code, "killed")
        judged.append(Judged(mutant.line, mutant.before, mutant.after, outcome))
    return judged


def main() -> None:
    """Answer one request."""
    end_with_parent(signal.SIGKILL)
    request = msgspec.json.decode(Path(sys.argv[1]).read_bytes(), type=Request)
    answer = Path(sys.argv[2])
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    judged = judge(request, answer.with_suffix(".tests"))
    answer.write_bytes(msgspec.json.encode(judged))


if __name__ == "__main__":
    main()
