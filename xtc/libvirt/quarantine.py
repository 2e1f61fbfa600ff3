"""Tracks slow and hung domains, and when each may be called again. Time is a parameter.

One domain must not use up the workers: slow ones share a few, and a domain with an abandoned call
is retried with increasing backoff.
"""

from collections.abc import Set as AbstractSet
from typing import Final

from common.units import Seconds

OVERDUE_S: Final = Seconds(0.75)
"""A domain with a longer operation is slow; its worker counts as blocked, and is replaced."""
BACKOFF_S: Final = (2.0, 4.0, 8.0, 16.0, 30.0)
"""Backoff after abandoned calls, by their number in a row; the last one repeats."""


class Quarantine:
    """The record of domains that were slow or hung, by UUID."""

    def __init__(self) -> None:
        self._slow: set[str] = set()
        self._given_up: dict[str, int] = {}
        """Number of abandoned calls in a row."""
        self._until: dict[str, Seconds] = {}
        self._answered: dict[str, Seconds] = {}

    def answered(self, uuid: str, took: Seconds, now: Seconds) -> None:
        """Note an answer; a quick one ends the quarantine."""
        self._answered[uuid] = now
        if took > OVERDUE_S:
            self._slow.add(uuid)
            return
        self._slow.discard(uuid)
        self._given_up.pop(uuid, None)
        self._until.pop(uuid, None)

    def give_up(self, uuid: str) -> None:
        """Note that a call exceeded its deadline."""
        self._slow.add(uuid)
        self._given_up[uuid] = self._given_up.get(uuid, 0) + 1

    def came_back(self, uuid: str, now: Seconds, *, well: bool) -> None:
        """Note that a call returned without a valid answer: if well, a retry is allowed now."""
        times = self._given_up.get(uuid, 0)
        if times > 0 and not well:
            rest = BACKOFF_S[min(times, len(BACKOFF_S)) - 1]
            self._until[uuid] = Seconds(now + rest)

    def keep(self, uuids: AbstractSet[str]) -> None:
        """Forget all other domains: they are gone, and have no call in progress."""
        self._slow.intersection_update(uuids)
        for remembered in (self._given_up, self._until, self._answered):
            for uuid in remembered.keys() - uuids:
                del remembered[uuid]

    def is_slow(self, uuid: str) -> bool:
        """Whether its last operation was slow or given up."""
        return uuid in self._slow

    def bars(self, uuid: str, now: Seconds) -> bool:
        """Whether it must not be called yet."""
        return now < self._until.get(uuid, now)

    def has_answered(self, uuid: str, since: Seconds) -> bool:
        """Whether it has answered since an instant."""
        return self._answered.get(uuid, Seconds(-1.0)) >= since
