"""What moved between two reports of a switch, as rates."""

from collections.abc import Mapping
from itertools import zip_longest

import msgspec

from zovn.switch.control import PortReport, SwitchReport


class PortRates(msgspec.Struct, frozen=True, kw_only=True):
    """A port over the time between two reports."""

    port: PortReport
    """As it was at the end of that time."""
    in_per_s: float
    """Frames from the port."""
    in_bps: float
    out_per_s: float
    """Frames to the port."""
    out_bps: float
    held_per_s: float
    """Change of the frames that lie in its ring; below 0 while it empties."""
    blocked_share: float
    """Share of the time in which frames waited for it and it took none; 1 is all of it."""
    dropped_per_s: Mapping[str, float]
    """Of the frames from the port, by reason; only reasons with drops."""


class Rates(msgspec.Struct, frozen=True, kw_only=True):
    """A switch over the time between two reports."""

    seconds: float
    naps_per_s: float
    missed_per_s: float
    cpu_shares: tuple[float, ...]
    """Share of the time in which each forwarding thread ran; a busy one does not sleep."""
    ports: tuple[PortRates, ...]


def rates(before: SwitchReport, after: SwitchReport, seconds: float) -> Rates:
    """Return the rates between two reports; a counter that fell began at zero in between.

    Args:
        before: the first report.
        after: the second one; its ports are shown.
        seconds: the time between them, above 0.
    """
    known = {port.name: port for port in before.ports}
    used = zip_longest(before.cpu_ns[: len(after.cpu_ns)], after.cpu_ns, fillvalue=0)
    return Rates(
        seconds=seconds,
        naps_per_s=_grown(before.naps, after.naps) / seconds,
        missed_per_s=_grown(before.missed, after.missed) / seconds,
        cpu_shares=tuple(_grown(then, now) / 1e9 / seconds for then, now in used),
        ports=tuple(_port(known.get(port.name), port, seconds) for port in after.ports),
    )


def _port(before: PortReport | None, after: PortReport, seconds: float) -> PortRates:
    then: Mapping[str, int] = before.counters if before else {}
    dropped: Mapping[str, int] = before.drops if before else {}

    def per_second(key: str) -> float:
        return _grown(then.get(key, 0), after.counters[key]) / seconds

    return PortRates(
        port=after,
        in_per_s=per_second("in"),
        in_bps=8 * per_second("in_bytes"),
        out_per_s=per_second("out"),
        out_bps=8 * per_second("out_bytes"),
        held_per_s=(after.counters["held"] - then.get("held", 0)) / seconds,
        blocked_share=min(per_second("blocked_ns") / 1e9, 1.0),
        dropped_per_s={
            reason: grown / seconds
            for reason, count in after.drops.items()
            if (grown := _grown(dropped.get(reason, 0), count))
        },
    )


def _grown(before: int, after: int) -> int:
    return after - before if after >= before else after
