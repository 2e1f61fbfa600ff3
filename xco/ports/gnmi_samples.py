"""How the updates of a stream become readings: pure, with time as a parameter.

A sample of a port may come in several notifications. It is complete when what came in the sample
before has come again; it ends when its octets come a second time: targets may leave out what is
unchanged.
Instants are the agent's monotonic clock, in nanoseconds.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from xco.errors import PortError, PortGone, PortUncounted, SwitchGarbled
from xco.ports.gnmi_values import of_interface, of_queue
from xco.ports.reader import UNCOUNTED, Counters, Reading

MARKS: Final = "marks"
"""The name under which a sample has the vendor's counter."""
INTERFACE_OCTETS: Final = "out-octets"
QUEUE_OCTETS: Final = "transmit-octets"
_OCTETS: Final = (INTERFACE_OCTETS, QUEUE_OCTETS)
RELEVANT: Final = frozenset({
    *_OCTETS, "out-pkts", "out-unicast-pkts", "out-multicast-pkts", "out-broadcast-pkts",
    "out-discards", "transmit-pkts", "dropped-pkts", MARKS,
})  # fmt: skip
"""Names of the counters that a reading takes."""
STALE_SAMPLES: Final = 3
_STALE_AT_LEAST_NS: Final = 1_000_000_000
_OPENING_NS: Final = 2_000_000_000
"""Additional time for a connection, and for the first sample."""


@dataclass(frozen=True, slots=True)
class Sample:
    """What is known of a port, and what of it came since the last reading."""

    known: Mapping[str, int] = field(default_factory=dict)
    bad: frozenset[str] = frozenset()
    """Counters whose latest value is no number of 64 bits."""
    arrived: frozenset[str] = frozenset()
    awaited: frozenset[str] = frozenset()
    """What came in the sample before."""
    begun: bool = False
    """Whether the target has sent everything once; until then `awaited` is not known."""
    gone: bool = False
    heard_ns: int = 0
    """When the latest counter arrived here: staleness goes by this clock alone."""
    read_ns: int = 0
    """When the target read the octets."""


@dataclass(frozen=True, slots=True)
class Arrival:
    """When an update arrived, and the age of its values by the target's time stamp."""

    now_ns: int
    age_ns: int = 0


def stale_after_ns(sample_ns: int) -> int:
    """Return how long a port may be silent."""
    return max(STALE_SAMPLES * sample_ns, _STALE_AT_LEAST_NS)


def awaiting(opened_ns: int) -> Sample:
    """Return the state of a port whose stream was just opened."""
    return Sample(heard_ns=opened_ns + _OPENING_NS)


def read_at(arrival: Arrival, limit_ns: int, before_ns: int) -> int:
    """Return when values were read: by the target's clock if that is sane, never backwards."""
    sane = 0 <= arrival.age_ns <= limit_ns
    return max(arrival.now_ns - (arrival.age_ns if sane else 0), before_ns + 1)


def merged(
    sample: Sample, found: Mapping[str, int | None], arrival: Arrival, limit_ns: int
) -> Sample:
    """Return a sample with the counters of one update; None stands for what is no number."""
    new = {name: value for name, value in found.items() if name in RELEVANT}
    if not new:
        return sample
    wrong = {name for name, value in new.items() if value is None or value > UNCOUNTED}
    right = {name: value for name, value in new.items() if value is not None and name not in wrong}
    return replace(
        sample,
        known={**sample.known, **right},
        bad=sample.bad - new.keys() | wrong,
        arrived=sample.arrived | new.keys(),
        gone=False,
        heard_ns=arrival.now_ns,
        read_ns=read_at(arrival, limit_ns, sample.read_ns) if _octets(new) else sample.read_ns,
    )


def _octets(names: Iterable[str]) -> bool:
    return any(name in _OCTETS for name in names)


def repeats(sample: Sample, found: Iterable[str]) -> bool:
    """Whether an update belongs to the next sample already."""
    return _octets(found) and _octets(sample.arrived)


def is_complete(sample: Sample) -> bool:
    """Whether all of a sample has arrived."""
    return sample.begun and _octets(sample.arrived) and sample.arrived >= sample.awaited


def ended(sample: Sample) -> Sample:
    """Return what the next sample begins with: it will have what this one had."""
    return replace(sample, awaited=sample.arrived, arrived=frozenset(), begun=True)


def taken(sample: Sample) -> Sample:
    """Return what the next sample begins with after a complete one."""
    return ended(replace(sample, arrived=sample.awaited | sample.arrived))


def deleted(sample: Sample, now_ns: int) -> Sample:
    """Return the sample of a port that the target has deleted."""
    return Sample(begun=sample.begun, gone=True, heard_ns=now_ns, read_ns=sample.read_ns)


def is_stale(sample: Sample, now_ns: int, limit_ns: int) -> bool:
    """Whether a port has been silent for too long."""
    return now_ns - sample.heard_ns >= limit_ns


def reading(port: str, sample: Sample, *, queue: bool, marks: bool) -> Reading:
    """Return the reading of a sample."""
    if sample.gone:
        return PortGone(port, "the switch has deleted it", "correct `interface` or `queue`")
    if sample.bad:
        names = ", ".join(sorted(sample.bad))
        return SwitchGarbled(
            port, f"{names}: not a number of 64 bits", "check the path at the switch"
        )
    try:
        counted = (of_queue if queue else of_interface)(port, sample.known)
    except PortError as error:
        return error
    if marks and MARKS not in sample.known:
        return PortUncounted(port, "the switch does not report its marks", "correct `marks`")
    return _stamped(counted, sample, marks=marks)


def _stamped(counted: Counters, sample: Sample, *, marks: bool) -> Counters:
    read = replace(counted, read_ns=sample.read_ns)
    return replace(read, marks=sample.known[MARKS], counts_marks=True) if marks else read
