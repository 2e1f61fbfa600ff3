"""Waiting time of a sweep after a change of cap, estimated from the first changes."""

import math
from collections.abc import Sequence
from itertools import groupby, pairwise, takewhile
from typing import TYPE_CHECKING, Final

from models.curve import MAX_RATE
from training.recording.recording import Sample
from training.recording.sweep_model import Visit, corrected_visits, visits_of

if TYPE_CHECKING:
    from training.fit.dynamics import Dynamics

VISIBLE: Final = 1.3
"""A change of throughput by less than this factor says little about the dynamics."""
LEFT: Final = 0.4
"""Remainder of a change to wait for: the fit subtracts it, since it knows the lag by then."""
NOTHING: Final = 0.002
"""Remainder of a change to wait for if the fit cannot subtract it, as it does not know the state
before."""
SLIGHT: Final = 0.05
"""A lag below this leaves nothing to subtract."""
USUAL: Final = 2
"""Samples that most hosts need."""
LONGEST: Final = 12
"""At most one in this many samples of a sweep is spent waiting after a change of cap."""
UNSURE: Final = 0.15
"""Half of the lag's interval above which the lag counts as unknown."""
LATEST: Final = 150
"""Number of samples to evaluate: enough for a dozen changes."""
AGAIN: Final = frozenset({1, 2, 3, 4, 6, 8, 12})
"""Numbers of visible changes at which the dynamics are estimated again."""


class Settling:
    """The number of samples to wait, updated from each of the first visible changes."""

    def __init__(self, probe: int, period: float, samples: int) -> None:
        """Take the initial wait in samples, their period, and the total number of samples."""
        self._probe, self._period = probe, period
        self._most = max(samples // LONGEST, probe)
        self._changes, self._needed = 0, probe
        self._host: Dynamics | None = None
        self._corrected: dict[int, Visit] = {}
        """By index, as long as lag and delay stay the same."""

    @property
    def expected(self) -> int:
        """Samples that later visits will wait, as far as known."""
        return min(self._needed, USUAL) if self._host is None else self._needed

    @property
    def whole(self) -> int:
        """Samples until nothing is left of an unrecorded cap (before an interruption)."""
        return self._most if self._host is None else self._host.settling(NOTHING)

    def needed(self, samples: Sequence[Sample]) -> int:
        """Return the samples to wait after the next change of cap, one at least."""
        changes = visible_changes(samples)
        if changes != self._changes and (changes in AGAIN or not self._changes):
            self._needed = self._learned(samples)
        self._changes = changes
        return self._needed

    def _learned(self, samples: Sequence[Sample]) -> int:
        from training.fit.dynamics import dynamics_of  # noqa: PLC0415  scipy takes a second to load

        self._corrected.clear()
        self._host = dynamics_of(samples[-LATEST:], self._period)
        if self._host is None:
            return self._probe
        lag = self._host.lag
        most = self._most if lag.high - lag.value < UNSURE else self._probe
        return min(self._host.settling(LEFT), most)

    def visits(self, samples: Sequence[Sample]) -> tuple[Visit, ...]:
        """Group samples by visit, without the transients of earlier caps.

        Only the latest are computed again, so that no sample is late in a long sweep.
        """
        if self._host is None or self._host.lag.value < SLIGHT:
            return visits_of(samples)
        return self._kept(samples, self._host)

    def latest(self, samples: Sequence[Sample]) -> Visit:
        """Return the last one of `visits`."""
        if self._host is None or self._host.lag.value < SLIGHT:
            number = samples[-1].visit
            own = takewhile(lambda sample: sample.visit == number, reversed(samples))
            return visits_of(reversed(list(own)))[0]
        return self.visits(samples)[-1]

    def _kept(self, samples: Sequence[Sample], host: "Dynamics") -> tuple[Visit, ...]:
        known = self._corrected
        missing = {sample.visit for sample in samples[:-LATEST]} - known.keys()
        recent = samples if missing else samples[-LATEST:]
        for number, visit in enumerate(self._without_transients(recent, host)):
            # The cap before the first of them is unknown, unless it is the first of all.
            if number or len(recent) == len(samples) or visit.number not in known:
                known[visit.number] = visit
        return tuple(known[number] for number in dict.fromkeys(s.visit for s in samples))

    def _without_transients(self, samples: Sequence[Sample], host: "Dynamics") -> tuple[Visit, ...]:
        import numpy as np  # noqa: PLC0415  as above

        from training.fit.dynamics import settled_of  # noqa: PLC0415  as above

        steady = np.array([sample.phase != "settling" for sample in samples])
        rates = settled_of(samples, self._period, host, steady).rates
        return corrected_visits(zip(samples, np.clip(rates, 0.0, MAX_RATE).tolist(), strict=True))


def visible_changes(samples: Sequence[Sample]) -> int:
    """Return the number of changes of cap that changed the throughput visibly."""
    ends = [
        list(group)[-1].throughput_pps
        for _, group in groupby(samples, lambda sample: (sample.visit, sample.cap))
    ]
    return sum(_apart(before, after) >= VISIBLE for before, after in pairwise(ends))


def _apart(one: float, other: float) -> float:
    low, high = sorted((one, other))
    return high / low if low > 0 else math.inf if high > 0 else 1.0
