"""Criteria of a soak, with their figures; pure."""

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from benchmarks.policer.soak_hosts import Seen

IN_TIME: Final = 0.95
"""Minimum share of the compliant hosts' ticks that have a round, and of orders within their
tick."""
FEW: Final = 1e-3
"""Allowed share of router-seconds below the contract."""
GROWTH: Final = 0.02
"""Allowed growth of memory over the second half, as a share."""
LONG_ENOUGH: Final = 60
"""Samples from which on growth is measured; before, the process still settles."""
EVENTS_PER_HOST: Final = 20.0
"""Rows of events a minute that one bad host may cause, of all kinds together, in the long run."""


@dataclass(frozen=True)
class Sample:
    """The policer from outside at one moment."""

    at: float
    rss_mib: float
    store_mib: float
    log_mib: float
    events: int
    """Stored so far."""


@dataclass(frozen=True)
class Soak:
    """One run."""

    minutes: float
    hosts: int
    routers: int
    rounds: int
    seen: Sequence[Seen]
    samples: Sequence[Sample]
    troubled: Mapping[str, str]
    """Compliant hosts that were not controlled at the end, and the reasons."""
    shown: Mapping[str, str]
    """The policer's message on each bad host, by its fault; "" is none."""
    refused: bool
    """Whether a second entry of a daemon with the same address and key was refused."""
    asked: int
    unanswered: Sequence[str]
    """The message of the refusal."""
    read_p99_ms: float
    idle: int
    reopened: int
    failures: Sequence[str]
    """Lines of the log that show a defect."""

    @property
    def compliant(self) -> list[Seen]:
        """Records of the compliant hosts."""
        return [seen for seen in self.seen if not seen.fault]


@dataclass(frozen=True)
class Line:
    """One criterion."""

    name: str
    holds: bool | None
    """None if the run was too short to tell."""
    words: str


def judged(soak: Soak) -> Iterator[Line]:
    """Yield every criterion."""
    yield _rounds(soak)
    yield _orders(soak)
    yield _controlled(soak)
    yield _promises(soak)
    yield _memory(soak)
    yield _disk(soak)
    yield _answers(soak)
    yield _shown(soak)
    yield Line("no defect", not soak.failures, "; ".join(soak.failures[:3]) or "none in the log")


def _rounds(soak: Soak) -> Line:
    """A round for each tick; bad hosts are assumed to have as many rounds as ticks."""
    ticks = sum(seen.ticks for seen in soak.compliant)
    of_others = sum(seen.ticks for seen in soak.seen if seen.fault)
    share = (soak.rounds - of_others) / ticks
    words = f"{soak.rounds} rounds, at least {share:.2%} of {ticks} ticks of compliant hosts"
    return Line("rounds in time", share >= IN_TIME, words)


def _orders(soak: Soak) -> Line:
    messages = sum(seen.messages for seen in soak.compliant)
    prompt = sum(seen.prompt for seen in soak.compliant)
    share = prompt / messages if messages else 0.0
    late = max(seen.late_s for seen in soak.seen)
    words = (
        f"{share:.2%} of {messages} came in their tick (a host's own tick: up to {late:.2f} s late)"
    )
    return Line("orders in time", share >= IN_TIME, words)


def _controlled(soak: Soak) -> Line:
    lapsed = sum(seen.lapsed for seen in soak.compliant)
    bad = [f"{name}: {why}" for name, why in soak.troubled.items()]
    words = f"{len(soak.compliant) - len(bad)} of {len(soak.compliant)} compliant hosts"
    words += f", {lapsed} leases lapsed" + "".join(f"; {one}" for one in bad[:3])
    return Line("controlled", not bad and not lapsed, words)


def _promises(soak: Soak) -> Line:
    short = sum(seen.short for seen in soak.compliant)
    seconds = sum(seen.router_seconds for seen in soak.compliant)
    words = f"{short} of {seconds} router-seconds below the guarantee"
    return Line("promises kept", short <= FEW * seconds, words)


def _memory(soak: Soak) -> Line:
    later = soak.samples[len(soak.samples) // 2 :]
    at, sizes = [sample.at for sample in later], [sample.rss_mib for sample in later]
    per_s, level = slope(at, sizes), statistics.median(sizes)
    grown = per_s * (at[-1] - at[0]) / level
    words = f"{level:.0f} MiB, {60 * per_s:+.2f} MiB a minute in the second half ({grown:+.1%})"
    return Line("memory flat", _if_long(soak, grown <= GROWTH), words)


def _disk(soak: Soak) -> Line:
    """The policer's files grow no faster than bad hosts may make them."""
    half, last = soak.samples[len(soak.samples) // 2], soak.samples[-1]
    minutes = (last.at - half.at) / 60
    rows = (last.events - half.events) / minutes
    store, log = (
        (b - a) / minutes
        for a, b in ((half.store_mib, last.store_mib), (half.log_mib, last.log_mib))
    )
    bad = sum(bool(seen.fault) for seen in soak.seen)
    words = (
        f"{last.store_mib:.1f} MiB; in the second half {rows:.0f} events, {store:+.2f} MiB of"
        f" database and {log:+.2f} MiB of log a minute"
    )
    return Line("disk bounded", _if_long(soak, rows <= EVENTS_PER_HOST * bad), words)


def _answers(soak: Soak) -> Line:
    words = (
        f"{soak.asked - len(soak.unanswered)} of {soak.asked} probes, p99 {soak.read_p99_ms:.0f}"
    )
    words += f" ms, beside {soak.idle} idle connections (opened again {soak.reopened} times)"
    words += "".join(f"; {one}" for one in soak.unanswered[:3])
    return Line("answers", not soak.unanswered, words)


def _shown(soak: Soak) -> Line:
    words = "; ".join(f"{fault}: {said or 'NOTHING'}" for fault, said in soak.shown.items())
    refused = "a second entry of one address is refused" if soak.refused else "was ENTERED"
    return Line("bad hosts shown", soak.refused and all(soak.shown.values()), f"{words}; {refused}")


def _if_long(soak: Soak, holds: bool) -> bool | None:
    return holds if len(soak.samples) >= LONG_ENOUGH else None


def slope(at: Sequence[float], values: Sequence[float]) -> float:
    """Return the growth per second, as the median over all pairs (Theil and Sen)."""
    pairs = [
        (values[later] - values[earlier]) / (at[later] - at[earlier])
        for later in range(len(at))
        for earlier in range(later)
    ]
    return statistics.median(pairs) if pairs else 0.0
