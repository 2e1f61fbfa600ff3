"""A host whose ticks a test tells, and what a recorder makes of them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import count

import msgspec

from policer.contracts.contract import Contract
from policer.contracts.host import Host
from policer.decide.telemetry import HostTelemetry
from policer.fleet.live import HostLive
from policer.history.chunks import POINTS
from policer.history.packing import packed, unpacked
from policer.history.point import Point, merged
from policer.recording.recorder import Cut
from xtc.modes import Finding, Mode
from xtc.wire import Report

BEGAN = 1_790_002_800.0
"""A time of day, seconds since 1970, which begins an hour; the day goes on for hours."""
HOST = Host("gold", "ipc:///run/a", "ipc:///run/b", 100e3)


def report(vr: str, offered: float | None, throughput: float | None, **more: object) -> Report:
    """Return what a daemon says of a router that nothing holds, but for what is given."""
    plain = Report(
        vr=vr,
        active=False,
        mode=Mode.RELEASED,
        finding=Finding.NONE,
        setpoint_pps=None,
        throughput_pps=throughput,
        offered_pps=offered,
        cap=None,
        used=None,
        binding=None,
        lease_remaining_s=None,
        sample_age_s=None,
        interfaces=(),
    )
    return msgspec.structs.replace(plain, **more)


class ToldHost:
    """One host; its clock began long ago."""

    def __init__(
        self,
        hears: Callable[[HostLive, HostTelemetry, float], None],
        contracts: Mapping[str, Contract] | None = None,
        *,
        name: str = "gold",
        wall: float = BEGAN,
        period_s: float = 1.0,
    ) -> None:
        self._hears, self.period_s = hears, period_s
        self.wall, self.clock = wall, 5000.0
        self._ticks = count(7)
        self.live = HostLive(msgspec.structs.replace(HOST, name=name), contracts or {})
        self.hear()  # the first tick tells of no period

    def hear(self, *reports: Report, late_s: float = 0.0, lost: int = 0) -> None:
        """Let a period pass and its tick come, later than it should, or after some were lost."""
        for _ in range(1 + lost):
            tick = next(self._ticks)
        self.wall += self.period_s * (1 + lost)
        self.clock += self.period_s * (1 + lost)
        now = HostTelemetry(
            heard_at=self.clock,
            host_clock=self.clock,
            tick=tick,
            routers={one.vr: one for one in reports},
        )
        self._hears(self.live, now, self.wall + late_s)
        self.live = replace(self.live, telemetry=now)


def points(cuts: Sequence[Cut], vr: str, span: int = 1, host: str = "gold") -> dict[int, Point]:
    """Return a router's points as they would be read, each chunk's last version alone."""
    latest = {chunk.key: chunk for cut in cuts for chunk in cut.chunks}
    series = []
    for chunk in latest.values():
        if (chunk.host, chunk.span) == (host, span):
            found = unpacked(packed(chunk.routers), vr, POINTS[span])
            series.append({chunk.at + span * place: point for place, point in found.items()})
    return merged(series, span)
