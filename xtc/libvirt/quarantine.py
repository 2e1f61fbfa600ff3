"""Which domains are slow or hang, and when each may be called again. Time is a parameter.

One domain must not cost the others their workers: a slow one waits for one of a few, and one whose
call was given up rests before it is tried again, longer each time.
"""

from collections.abc import Set as AbstractSet
from typing import Final

from common.units import Seconds

OVERDUE_S: Final = Seconds(0.75)
"""A domain whose visit lasts longer is slow; its worker counts as taken, and is replaced."""
BACKOFF_S: Final = (2.0, 4.0, 8.0, 16.0, 30.0)
"""Between a call that was given up and the next, by how often in sequence; the last goes on."""


class Quarantine:
    """What is remembered of domains that were slow or hung, by UUID."""

    def __init__(self) -> None:
        self._slow: set[str] = set()
        self._given_up: dict[str, int] = {}
        """How often in sequence a call was given up."""
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
        """Note that a call hangs beyond its deadline."""
        self._slow.add(uuid)
        self._given_up[uuid] = self._given_up.get(uuid, 0) + 1

    def came_back(self, uuid: str, now: Seconds, *, well: bool) -> None:
        """Note that a call came back of which no answer counts: well, it may be tried now."""
        times = self._given_up.get(uuid, 0)
        if times > 0 and not well:
            rest = BACKOFF_S[min(times, len(BACKOFF_S)) - 1]
            self._until[uuid] = Seconds(now + rest)

    def keep(self, uuids: AbstractSet[str]) -> None:
        """Forget all other domains: they are gone, and no call of theirs is under way."""
        self._slow.intersection_update(uuids)
        for remembered in (self._given_up, self._until, self._answered):
            for uuid in remembered.keys() - uuids:
                del remembered[uuid]

    def is_slow(self, uuid: str) -> bool:
        """Whether its last visit was slow or given up."""
        return uuid in self._slow

    def bars(self, uuid: str, now: Seconds) -> bool:
        """Whether it is not to be called yet."""
        return now < self._until.get(uuid, now)

    def has_answered(self, uuid: str, since: Seconds) -> bool:
        """Whether it has answered since an instant."""
        return self._answered.get(uuid, Seconds(-1.0)) >= since
