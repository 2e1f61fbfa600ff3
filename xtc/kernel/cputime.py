"""CPU time of threads, from files kept open, so that a reused thread id is harmless."""

from collections.abc import Iterable
from dataclasses import dataclass

from common.units import Seconds
from xtc.kernel.files import KeptFile


@dataclass(slots=True)
class _Followed:
    file: KeptFile
    start: float
    used: float = 0.0


class ThreadTimes:
    """The CPU time of a changing set of threads since each was first followed.

    Reads field 1 of /proc/<tid>/schedstat (Linux, sched-stats.rst). The sum never falls: it keeps
    the last reading of a thread that has ended.
    """

    def __init__(self) -> None:
        self._followed: dict[int, _Followed] = {}
        self._ended = 0.0

    @property
    def tids(self) -> tuple[int, ...]:
        """The threads followed, oldest first."""
        return tuple(self._followed)

    @property
    def total(self) -> Seconds:
        """CPU time of all threads ever followed, as of the last reading."""
        return Seconds(self._ended + sum(thread.used for thread in self._followed.values()))

    def follow(self, tids: Iterable[int]) -> None:
        """Follow exactly these threads; those that have already ended are ignored."""
        wanted = set(tids)
        for tid in self._followed.keys() - wanted:
            self._drop(tid)
        for tid in sorted(wanted - self._followed.keys()):
            self._add(tid)

    def read(self) -> dict[int, Seconds]:
        """Return the CPU time of each living thread; those that have ended are dropped."""
        for tid, thread in tuple(self._followed.items()):
            try:
                thread.used = _seconds(thread.file.read()) - thread.start
            except ProcessLookupError:
                self._drop(tid)
        return {tid: Seconds(thread.used) for tid, thread in self._followed.items()}

    def _add(self, tid: int) -> None:
        try:
            file = KeptFile(f"/proc/{tid}/schedstat")
            self._followed[tid] = _Followed(file, _seconds(file.read()))
        except (FileNotFoundError, ProcessLookupError):
            return  # ended after it was listed

    def _drop(self, tid: int) -> None:
        thread = self._followed.pop(tid)
        self._ended += thread.used
        thread.file.close()


def _seconds(schedstat: str) -> float:
    return int(schedstat.split(maxsplit=1)[0]) / 1e9
