"""Report on the mutants: a table by file, and the list of the survivors."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

import msgspec

from scripts.mutation.worker import Judged


class Result(msgspec.Struct, frozen=True):
    """The mutants of one file."""

    path: str
    mutants: list[Judged]
    seconds: float

    @property
    def timed_out(self) -> int:
        """Those that did not end."""
        return sum(mutant.outcome == "timed out" for mutant in self.mutants)

    @property
    def killed(self) -> int:
        """Those that a test detected, or that did not end."""
        return len(self.mutants) - len(self.survivors)

    @property
    def survivors(self) -> list[Judged]:
        """Those that no test detected."""
        return [mutant for mutant in self.mutants if mutant.outcome == "survived"]

    @property
    def percent(self) -> float:
        """Number of killed mutants."""
        return 100.0 * self.killed / len(self.mutants) if self.mutants else 100.0


def total(results: Iterable[Result], name: str = "all") -> Result:
    """Join results."""
    joined = list(results)
    mutants = [mutant for result in joined for mutant in result.mutants]
    return Result(name, mutants, sum(result.seconds for result in joined))


def _rows(results: Sequence[Result]) -> Iterator[Result]:
    for package, group in groupby(results, key=lambda result: result.path.split("/")[0]):
        members = list(group)
        yield from members
        yield total(members, f"{package}/")
    yield total(results)


def table(results: Sequence[Result]) -> str:
    """Return one line for each file, package, and for all."""
    lines = [f"{'':28}{'killed':>8}{'survived':>10}{'timed out':>11}{'percent':>9}{'seconds':>9}"]
    lines += [
        f"{row.path:28}{row.killed:8}{len(row.survivors):10}{row.timed_out:11}"
        f"{row.percent:9.0f}{row.seconds:9.0f}"
        for row in _rows(results)
    ]
    return "\n".join(lines) + "\nkilled counts what timed out\n"


def listed(results: Iterable[Result]) -> str:
    """Return the place of each survivor, the original and the replacement."""
    return "".join(
        f"{result.path}:{mutant.line}: {_short(mutant.before)}  =>  {_short(mutant.after)}\n"
        for result in results
        for mutant in sorted(result.survivors, key=lambda mutant: mutant.line)
    )


def _short(text: str) -> str:
    return " ".join(text.split())
