"""Collects what each tick tells of routers, until it is written; no clock and no store in here."""

import math
import secrets
from collections.abc import Callable
from typing import NamedTuple

from policer.decide.telemetry import HostTelemetry
from policer.fleet.live import HostLive
from policer.history.chunks import RawChunk
from policer.recording.counted import Counted
from policer.recording.host_track import HostTrack
from policer.recording.stretch import went_back
from policer.store import DayRow


class Cut(NamedTuple):
    """What is to be written."""

    chunks: list[RawChunk]
    days: list[DayRow]


def new_part() -> int:
    """Return a number that nothing else has, of 62 bits."""
    return secrets.randbits(62)


class Recorder:
    """What was seen of all hosts; one thread uses it.

    Each host's rows have a number of their own (`part`) and are written as a whole again and again:
    to write one twice changes nothing. Rows of several leaders are added up when they are read.
    """

    def __init__(self, part: Callable[[], int] = new_part) -> None:
        self._part = part
        self._hosts: dict[str, HostTrack] = {}
        self._counted = Counted()
        self._left = Cut([], [])
        """Of hosts that ended."""

    def restart(self) -> None:
        """Begin again; what was not written is lost."""
        self._hosts, self._counted, self._left = {}, Counted(), Cut([], [])

    def heard(self, live: HostLive, telemetry: HostTelemetry, wall: float) -> None:
        """Take over a tick that is believed.

        Args:
            live: the host before the tick: the orders in it were in force meanwhile.
            telemetry: the host with it.
            wall: seconds since 1970.
        """
        name = live.host.name
        track = self._hosts.get(name)
        if track is not None and went_back(track.time, wall):
            self.end(name)  # else its chunks would come a second time
            track = None
        if track is None:
            track = self._hosts[name] = HostTrack(name, self._part(), wall, self._counted)
        track.heard(live, telemetry, wall)

    def end(self, host: str) -> None:
        """Record a host no longer; what was seen of it is still written."""
        track = self._hosts.pop(host, None)
        if track is not None:
            chunks, days = track.cut(math.inf)
            self._left.chunks.extend(chunks)
            self._left.days.extend(days)

    def cut(self, wall: float) -> Cut:
        """Return what is complete at an instant, and at times what grows; all of it at infinity."""
        cut, self._left = self._left, Cut([], [])
        self._counted.forget_old(wall)
        for track in self._hosts.values():
            chunks, days = track.cut(wall)
            cut.chunks.extend(chunks)
            cut.days.extend(days)
        return cut
