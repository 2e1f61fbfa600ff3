"""How much more CPU than it needs a router gets whose rate is held by its shield.

The shield lets the setpoint by, exactly. The cap then need not hold the rate: it bounds the CPU,
and must not be what packets wait for. So the law aims at `Bounds.headroom` setpoints, and learns
from what the router uses, which behind a shield is what its packets need:

- A router that forwards less than arrives and uses what it is given has too small a cap. The law
  learns from the cap, as without a shield, and raises it at once.
- One that leaves CPU unused shows what it needs. The cap becomes `Bounds.headroom` times that, and
  is left alone while it is about that.
- One that forwards its setpoint and uses all of its cap, or whose use is not known, may need less:
  it polls, or its cap just fits. The cap is lowered gently until the router falls just short. If it
  leaves CPU unused a little above that, it is known to sleep, and is believed from then on.

Where a shield drops nothing, too little is offered, and nothing is learned.
"""

from typing import Final, TypeVar

import msgspec
from msgspec.structs import replace

from common.units import CapFraction
from xtc.control.adaptive import is_binding
from xtc.control.law import Bounds, Decision, Law, PaperLaw, Sample

S = TypeVar("S")

FITTING: Final = 0.1
"""A cap fits whose headroom differs from what it should be by less than this."""
SPENT: Final = 0.95
"""A router that uses this share of its cap may need more, or poll."""
FULL: Final = 0.99
"""At this share of what it could forward a router forwards all."""
STEADY: Final = 1.02
"""One that forwards more than this multiple of its setpoint drains its queue."""
EXCESS: Final = 1.5
"""Beyond this multiple no queue drains for long: then the cap holds it, as without a shield."""
IN_A_ROW: Final = 2
"""Periods that tell what one does not."""
TELLING: Final = 0.5
"""The share of its setpoint from which what a router uses tells what it needs for that."""
TOO_LITTLE: Final = 0.9
"""A router that forwards less than this share of what is wanted lacks something."""
EASE: Final = 0.01
"""By so much a cap is lowered; twice as much each time while it is not known what is needed ..."""
FASTEST_EASE: Final = 0.1
NEAR: Final = 1.3
"""... and the cap is above this multiple of where the router fell short before."""
MOST_CPUS: Final = 1e6
"""More than any machine has."""
UNASKED: Final = 1.2
"""By how much a cap rises in a period in which nobody asks for the setpoint."""
PASSED: Final = 0.9
"""At this share of where it fell short before, that tells nothing any more."""


class Headroom(msgspec.Struct, frozen=True, gc=False):
    """What is remembered of a router behind its shield."""

    setpoint: float | None = None
    short: float | None = None
    """The cap at which it fell short when that was lowered."""
    need: float | None = None
    """What it seemed to need when it last left CPU unused."""
    ease: float = EASE
    """The next step down."""
    eased: bool = False
    """Whether the cap was lowered in the last period to find out what is needed."""
    shorts: int = 0
    """Periods in a row in which it forwarded less than the shield let by."""
    excesses: int = 0
    """Periods in a row in which it forwarded far more, which no shield can have let by."""
    enough: float | None = None
    """The cap at which it forwarded its setpoint while the shield dropped."""
    steady: int = 0
    """Periods in a row in which it forwarded its setpoint."""
    sleeps: bool = False
    """Whether it is known to use no more than it needs."""


def stepped(
    law: Law[S], memory: tuple[S, Headroom], setpoint: float, sample: Sample, bounds: Bounds
) -> tuple[tuple[S, Headroom], Decision]:
    """Return the next memory of a loop, and its next cap; the router may be behind a shield."""
    headroom, seen = prepared(memory[1], sample, setpoint, bounds)
    if isinstance(law, PaperLaw):  # its dead zone is as wide as the margin, and it knows its caps
        state, decision = law.step(memory[0], setpoint, sample, bounds)
        return (state, headroom), decision
    held = sample.guarded and headroom.excesses < IN_A_ROW
    aim = bounds.headroom * setpoint if held else setpoint
    state, decision = law.step(memory[0], aim, seen, bounds)
    return (state, headroom), _gently_raised(headroom, setpoint, sample, decision)


def _gently_raised(
    headroom: Headroom, setpoint: float, sample: Sample, decision: Decision
) -> Decision:
    """Raise a cap that was enough for the setpoint little by little, while nothing waits for it.

    A flood that begins or ends within a period makes a router that polls seem short of its cap: it
    uses all of that, and forwards a part of its setpoint. But it forwards what reaches it.
    """
    waits = is_short(sample, setpoint, TOO_LITTLE)
    asked = sample.shielded and wanted(sample, setpoint) >= TELLING * setpoint
    if (waits and asked) or not sample.guarded or sample.cap is None or headroom.enough is None:
        return decision
    most = CapFraction(UNASKED * sample.cap)
    # This period may be the first one after the cap was lowered, which has not told yet.
    lowered = (1 - FASTEST_EASE) * headroom.enough
    if sample.cap < PASSED * lowered or decision.cap <= most:
        return decision
    return Decision(most, decision.reason)


def prepared(
    headroom: Headroom, sample: Sample, setpoint: float, bounds: Bounds
) -> tuple[Headroom, Sample]:
    """Return what is remembered, and the sample as a law that aims at the headroom is to see it.

    One that neither binds nor says what is `needed` teaches nothing, and the cap is kept.
    """
    if not sample.guarded or _flows_past(headroom, sample, setpoint):
        return headroom, sample
    before = headroom.setpoint or setpoint
    was_eased = headroom.eased
    headroom = _counted(replace(headroom, setpoint=setpoint, eased=False), sample, setpoint)
    if sample.late or not sample.shielded:
        spent = is_spent(sample) and sample.throughput < FULL * setpoint
        telling = spent or is_short(sample, setpoint)
        return headroom, sample if telling else _held(sample)
    if sample.cap is None:
        return headroom, _started(sample, setpoint, bounds)
    if before != setpoint:
        return _scaled(headroom, sample, setpoint, setpoint / before, bounds)
    # One that sends more than it receives may forward all that arrives, and too little.
    if is_short(sample, setpoint) or (was_eased and sample.throughput < FULL * setpoint):
        return _fallen_short(headroom, sample, setpoint, bounds, eased=was_eased)
    return _forwarding_all(headroom, sample, setpoint, bounds)


def _flows_past(headroom: Headroom, sample: Sample, setpoint: float) -> bool:
    """Whether a router has forwarded for periods what its shield cannot have let by."""
    return headroom.excesses >= IN_A_ROW and sample.throughput > EXCESS * setpoint


def is_short(sample: Sample, setpoint: float, share: float = FULL) -> bool:
    """Whether a router forwards less than a share of what arrives and is wanted."""
    return sample.throughput < share * wanted(sample, setpoint)


def wanted(sample: Sample, setpoint: float) -> float:
    """Return what a router is to forward of what reaches it."""
    return setpoint if sample.offered is None else min(sample.offered, setpoint)


def is_held(sample: Sample, setpoint: float) -> bool:
    """Whether a shield is what holds a router back: it drops, and what it lets by is forwarded."""
    return sample.shielded and not is_short(sample, setpoint, TOO_LITTLE)


def _counted(headroom: Headroom, sample: Sample, setpoint: float) -> Headroom:
    """Count periods in a row: what comes and goes within one fills queues that the next drains."""
    short = is_short(sample, setpoint)
    steady = FULL <= sample.throughput / setpoint <= STEADY
    enough = sample.cap if steady and sample.shielded else headroom.enough
    return replace(
        headroom,
        enough=enough,
        shorts=headroom.shorts + 1 if short else 0,
        excesses=headroom.excesses + 1 if sample.throughput > EXCESS * setpoint else 0,
        steady=headroom.steady + 1 if steady else 0,
    )


def _fallen_short(
    headroom: Headroom, sample: Sample, setpoint: float, bounds: Bounds, *, eased: bool
) -> tuple[Headroom, Sample]:
    """Return what a router teaches that forwards less than the shield lets by.

    One that used less than its cap and does so once had it spent for a part of the period.
    """
    used = _known_use(sample)
    if eased:
        headroom = replace(headroom, short=sample.cap, ease=EASE)
    if eased and used is not None and is_spent(sample):
        return headroom, _needing(sample, used)
    if is_spent(sample):
        binding = is_binding(sample) or used is None
    else:
        binding = is_binding(sample) and headroom.shorts >= IN_A_ROW
    if binding:
        return headroom, replace(sample, binding=True)
    return headroom, _by_use(headroom, sample, setpoint, bounds)


def _started(sample: Sample, setpoint: float, bounds: Bounds) -> Sample:
    """Cap a router for the first time: at what its use tells, or at the most that it may get."""
    used = _known_use(sample)
    if used is None:
        return _needing(sample, bounds.ceiling)
    return _needing(sample, used) if _tells(sample, setpoint) else _held(sample)


def _scaled(
    headroom: Headroom, sample: Sample, setpoint: float, times: float, bounds: Bounds
) -> tuple[Headroom, Sample]:
    """Have the cap follow the setpoint."""
    short = None if headroom.short is None else headroom.short * times
    need = None if headroom.need is None else headroom.need * times
    enough = None if headroom.enough is None else headroom.enough * times
    headroom = replace(headroom, short=short, need=need, enough=enough)
    assert sample.cap is not None  # prepared() has looked
    return headroom, _with_cap(sample, sample.cap * times, setpoint, bounds)


def _forwarding_all(
    headroom: Headroom, sample: Sample, setpoint: float, bounds: Bounds
) -> tuple[Headroom, Sample]:
    """Return what a router teaches that forwards all that the shield lets by."""
    steady = headroom.steady >= IN_A_ROW
    assert sample.cap is not None  # prepared() has looked
    if not is_spent(sample):
        raised = (bounds.headroom + 2 * FITTING) * (headroom.short or 0.0)
        sleeps = headroom.sleeps or sample.cap <= raised
        headroom = replace(headroom, sleeps=sleeps, need=_need(sample, setpoint))
        learned = _by_use(headroom, sample, setpoint, bounds)
        if learned.needed is None and steady and not headroom.sleeps:
            return _eased(headroom, sample, setpoint, bounds)
        return headroom, learned
    if sample.throughput < FULL * setpoint:
        return headroom, sample  # senders that adapt may be held by the cap
    if not steady:
        return headroom, _held(sample)
    used = _known_use(sample)
    if headroom.sleeps and used is not None:
        doubted = replace(headroom, sleeps=False, short=sample.cap, ease=EASE)
        return doubted, _needing(sample, used)
    return _eased(headroom, sample, setpoint, bounds)


def _eased(
    headroom: Headroom, sample: Sample, setpoint: float, bounds: Bounds
) -> tuple[Headroom, Sample]:
    """Lower the cap a little, and less gently far from where the router fell short before."""
    cap, step = sample.cap or 0.0, headroom.ease
    short, need = _still_ahead(headroom.short, cap), _still_ahead(headroom.need, cap)
    if cap * (1 - step) < NEAR * max(short or 0.0, need or 0.0):
        step = following = EASE
    else:
        following = min(2 * step, FASTEST_EASE)
    headroom = replace(headroom, short=short, need=need, ease=following, eased=True)
    return headroom, _with_cap(sample, cap * (1 - step), setpoint, bounds)


def _still_ahead(mark: float | None, cap: float) -> float | None:
    """Return where a router was to fall short, unless its cap is well below that."""
    return None if mark is None or cap < PASSED * mark else mark


def _needing(sample: Sample, cpu: float) -> Sample:
    return replace(sample, binding=False, needed=CapFraction(min(cpu, MOST_CPUS)))


def _held(sample: Sample) -> Sample:
    return replace(sample, binding=False, needed=None)


def _by_use(headroom: Headroom, sample: Sample, setpoint: float, bounds: Bounds) -> Sample:
    """Learn from what a router uses, if the cap is not about what it needs already.

    One that is not known to sleep yet is left where easing has brought it.
    """
    used, need = _known_use(sample), _need(sample, setpoint)
    if used is None or need is None:
        return _held(sample)
    least = max(1 / SPENT, bounds.headroom - FITTING) if headroom.sleeps else 1 / SPENT
    most = bounds.headroom + FITTING
    fits = sample.cap is not None and least * need <= sample.cap <= most * need
    return _held(sample) if fits else _needing(sample, used)


def _need(sample: Sample, setpoint: float) -> float | None:
    """Return what the setpoint takes, by what a router uses; None where that does not tell."""
    used = _known_use(sample)
    if used is None or not _tells(sample, setpoint):
        return None
    return used * setpoint / sample.throughput


def _tells(sample: Sample, setpoint: float) -> bool:
    """Whether so much was forwarded that what it took tells what the setpoint takes."""
    return sample.throughput >= TELLING * setpoint


def _known_use(sample: Sample) -> CapFraction | None:
    return None if sample.coarse else sample.used


def is_spent(sample: Sample) -> bool:
    """Whether a router may use all of its cap."""
    used = _known_use(sample)
    if sample.cap is None or used is None:
        return sample.cap is not None
    return used >= SPENT * sample.cap


def _with_cap(sample: Sample, cap: float, setpoint: float, bounds: Bounds) -> Sample:
    """Return the sample that a law answers with this cap."""
    if sample.throughput <= 0:
        return _held(sample)
    return _needing(sample, cap * sample.throughput / (bounds.headroom * setpoint))
