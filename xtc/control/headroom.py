"""CPU headroom of a router with a shield that holds its rate.

The shield passes exactly the setpoint. The cap then need not hold the rate: it bounds the CPU, and
must not delay packets. So the law aims at `Bounds.headroom` setpoints, and learns from the router's
usage, which behind a shield is what its packets need:

- A router that forwards less than arrives and uses all of its cap needs a larger one. The law
  learns from the cap, as without a shield, and raises it immediately.
- A router that leaves CPU unused shows its need. The cap becomes `Bounds.headroom` times the
  largest need of late, and stays while it is close to that: what a packet costs may change from
  one second to the next, and each second with too small a cap leaves packets in a queue.
- A router that forwards its setpoint and uses all of its cap, or has unknown usage, may need less:
  it polls, or its cap just fits. The cap is lowered gently until the router just falls short. If it
  leaves CPU unused slightly above that cap, it is known to sleep, and its usage is trusted.

The first cap waits for a period that was all behind the shield: in the one before, packets came
faster, and cost less each.

Where a shield drops nothing, too little is offered, and nothing is learned.
"""

from typing import Final, TypeVar

import msgspec
from msgspec.structs import replace

from common.units import CapFraction
from xtc.control.adaptive import is_binding
from xtc.control.law import Bounds, Decision, Law, PaperLaw, Reason, Sample

S = TypeVar("S")

FITTING: Final = 0.1
"""A cap fits if its headroom differs from the target by less than this."""
SPENT: Final = 0.95
"""A router that uses at least this share of its cap may need more, or poll."""
FULL: Final = 0.99
"""From this share of what it could forward, a router counts as forwarding all."""
STEADY: Final = 1.02
"""A router that forwards more than this multiple of its setpoint drains its queue."""
EXCESS: Final = 1.5
"""No queue drains for long beyond this multiple: the cap then holds it, as without a shield."""
IN_A_ROW: Final = 2
"""Periods required where one is not conclusive."""
TELLING: Final = 0.5
"""Minimum share of its setpoint at which a router's usage shows the setpoint's need."""
TOO_LITTLE: Final = 0.9
"""A router that forwards less than this share of the wanted rate lacks a resource."""
EASE: Final = 0.01
"""A cap is lowered by this share; twice as much each time while the need is unknown ..."""
FASTEST_EASE: Final = 0.1
NEAR: Final = 1.3
"""... and the cap is above this multiple of the last cap that was too small."""
MOST_CPUS: Final = 1e6
"""More than any machine has."""
UNASKED: Final = 1.2
"""Maximum rise of a cap in a period in which the setpoint is not wanted."""
FADING: Final = 0.99
"""What is left of the largest need after a period; half after 69."""
ALIKE: Final = 0.98
"""A router whose use falls to no less than this when its shield is set may poll, ..."""
POLLING: Final = 0.5
"""... if that is more than this many CPUs: a loop that polls takes all of one that it can get."""
SWING: Final = 2.0
"""Where the need stays below the largest by more than this, other packets have come."""
PASSED: Final = 0.9
"""Below this share of the cap that was too small before, that mark is obsolete."""
LEAST_SHOWN: Final = 0.1
"""A law raises a cap tenfold at most in a period: it must see at least this share of its aim."""


class Headroom(msgspec.Struct, frozen=True, gc=False):
    """Memory of a router behind its shield."""

    setpoint: float | None = None
    short: float | None = None
    """The cap at which it fell short when it was lowered."""
    need: float | None = None
    """Its apparent need when it last left CPU unused."""
    peak: float | None = None
    """The largest need of late, which fades."""
    cheaper: int = 0
    """Periods in a row in which the need was far below that."""
    first_use: float | None = None
    """What it used in the period in which its shield was set."""
    ease: float = EASE
    """The next step down."""
    eased: bool = False
    """Whether the cap was lowered in the last period to find the need."""
    shorts: int = 0
    """Periods in a row in which it forwarded less than the shield passed."""
    excesses: int = 0
    """Consecutive periods in which it forwarded far more than a shield can have passed."""
    enough: float | None = None
    """The cap at which it forwarded its setpoint while the shield dropped."""
    steady: int = 0
    """Periods in a row in which it forwarded its setpoint."""
    sleeps: bool = False
    """Whether it is known to use only what it needs."""


def stepped(
    law: Law[S], memory: tuple[S, Headroom], setpoint: float, sample: Sample, bounds: Bounds
) -> tuple[tuple[S, Headroom], Decision]:
    """Return a loop's next memory and next cap; the router may be behind a shield."""
    if not isinstance(law, PaperLaw) and _began_before(memory[1], sample, setpoint):
        need, used = _need(sample, setpoint), _known_use(sample)
        headroom = replace(memory[1], setpoint=setpoint, need=need, first_use=used)
        return (memory[0], headroom), Decision(bounds.ceiling, Reason.NOT_BINDING)
    headroom, seen = prepared(memory[1], sample, setpoint, bounds)
    if isinstance(law, PaperLaw):  # its dead zone is as wide as the margin, and it knows its caps
        state, decision = law.step(memory[0], setpoint, sample, bounds)
        return (state, headroom), decision
    held = sample.guarded and headroom.excesses < IN_A_ROW
    aim = bounds.headroom * setpoint if held else setpoint
    state, decision = law.step(memory[0], aim, seen, bounds)
    return (state, headroom), _gently_raised(headroom, setpoint, sample, decision)


def _began_before(headroom: Headroom, sample: Sample, setpoint: float) -> bool:
    """Whether this is the period in which the shield was set, and the next one tells more.

    Packets that come faster cost less each. A cap from their cost is too small for the setpoint,
    and the queue that it leaves takes seconds to drain; meanwhile the shield holds the rate.
    """
    first = headroom.setpoint is None and sample.cap is None and sample.shielded
    return first and _known_use(sample) is not None and sample.throughput > STEADY * setpoint


def _gently_raised(
    headroom: Headroom, setpoint: float, sample: Sample, decision: Decision
) -> Decision:
    """Raise a cap that was enough for the setpoint gradually, while no packets wait for it.

    A flood that begins or ends within a period makes a polling router look short of CPU: it uses
    its whole cap, and forwards part of its setpoint. But it forwards all that reaches it.
    """
    waits = is_short(sample, setpoint, TOO_LITTLE)
    asked = sample.shielded and wanted(sample, setpoint) >= TELLING * setpoint
    if (waits and asked) or not sample.guarded or sample.cap is None or headroom.enough is None:
        return decision
    most = CapFraction(UNASKED * sample.cap)
    # This period may be the first after the cap was lowered, with no result yet.
    lowered = (1 - FASTEST_EASE) * headroom.enough
    if sample.cap < PASSED * lowered or decision.cap <= most:
        return decision
    return Decision(most, decision.reason)


def prepared(
    headroom: Headroom, sample: Sample, setpoint: float, bounds: Bounds
) -> tuple[Headroom, Sample]:
    """Return the memory, and the sample as the law should see it to aim at the headroom.

    A sample that neither binds nor has a `needed` adds nothing, and the cap is kept.
    """
    times = setpoint / (headroom.setpoint or setpoint)
    headroom = _rescaled(headroom, setpoint, times)
    if not sample.guarded or _flows_past(headroom, sample, setpoint):
        return headroom, sample  # the law itself has followed the setpoint
    was_eased = headroom.eased
    headroom = _counted(replace(headroom, setpoint=setpoint, eased=False), sample, setpoint)
    if times != 1 and sample.cap is not None:  # also where nothing is dropped: the next load may be
        return headroom, _scaled(headroom, sample, setpoint, times, bounds)
    if sample.late or not sample.shielded:
        spent = is_spent(sample) and sample.throughput < FULL * setpoint
        telling = spent or is_short(sample, setpoint)
        return headroom, sample if telling else _held(sample)
    if sample.cap is None:
        return _started(headroom, sample, setpoint, bounds)
    headroom = _remembering(headroom, sample, setpoint)
    # A router that sends more than it receives may forward all that arrives, and still too little.
    if is_short(sample, setpoint) or (was_eased and sample.throughput < FULL * setpoint):
        return _fallen_short(headroom, sample, setpoint, bounds, eased=was_eased)
    return _forwarding_all(headroom, sample, setpoint, bounds)


def _remembering(headroom: Headroom, sample: Sample, setpoint: float) -> Headroom:
    """Update the largest need of late; a router that uses its cap and is not short may poll."""
    need = _need(sample, setpoint)
    if need is None or (is_spent(sample) and not is_short(sample, setpoint)):
        return headroom
    faded = FADING * (headroom.peak or 0.0)
    cheaper = headroom.cheaper + 1 if faded > SWING * need else 0
    peak = need if cheaper >= IN_A_ROW else max(need, faded)
    return replace(headroom, peak=peak, cheaper=cheaper)


def _flows_past(headroom: Headroom, sample: Sample, setpoint: float) -> bool:
    """Whether a router has forwarded for some periods more than its shield can have passed."""
    return headroom.excesses >= IN_A_ROW and sample.throughput > EXCESS * setpoint


def is_short(sample: Sample, setpoint: float, share: float = FULL) -> bool:
    """Whether a router forwards less than a share of what arrives and is wanted."""
    return sample.throughput < share * wanted(sample, setpoint)


def wanted(sample: Sample, setpoint: float) -> float:
    """Return the rate that a router should forward of what reaches it."""
    return setpoint if sample.offered is None else min(sample.offered, setpoint)


def is_held(sample: Sample, setpoint: float) -> bool:
    """Whether the shield limits a router: it drops, and all that it passes is forwarded."""
    return sample.shielded and not is_short(sample, setpoint, TOO_LITTLE)


def _counted(headroom: Headroom, sample: Sample, setpoint: float) -> Headroom:
    """Count consecutive periods: a queue that fills in one period drains in the next."""
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
    """Learn from a router that forwards less than the shield passes.

    A single such period with less than the cap used had the cap exhausted for a part of it.
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


def _started(
    headroom: Headroom, sample: Sample, setpoint: float, bounds: Bounds
) -> tuple[Headroom, Sample]:
    """Cap a router for the first time: by its usage, or at its maximum.

    One that uses as much as before its shield polls, and needs about what a packet cost then.
    """
    need, used = _need(sample, setpoint), _known_use(sample)
    if used is None:
        return headroom, _needing(sample, bounds.ceiling)
    if need is None:
        return headroom, _held(sample)
    if headroom.first_use is not None and used > max(POLLING, ALIKE * headroom.first_use):
        before = (headroom.need or need) * sample.throughput / setpoint
        return replace(headroom, need=None), _needing(sample, before)
    return replace(headroom, peak=need), _needing(sample, used)


def _rescaled(headroom: Headroom, setpoint: float, times: float) -> Headroom:
    """Carry what is known over to another setpoint."""
    if headroom.setpoint is None or times == 1:
        return headroom
    short, need, enough, peak = (
        None if mark is None else mark * times
        for mark in (headroom.short, headroom.need, headroom.enough, headroom.peak)
    )
    return replace(headroom, setpoint=setpoint, short=short, need=need, enough=enough, peak=peak)


def _scaled(
    headroom: Headroom, sample: Sample, setpoint: float, times: float, bounds: Bounds
) -> Sample:
    """Scale the cap with the setpoint; a ceiling may have kept it below what was needed."""
    assert sample.cap is not None  # prepared() has checked
    cap = max(sample.cap * times, (headroom.peak or 0.0) / SPENT)
    return _with_cap(sample, cap, setpoint, bounds)


def _forwarding_all(
    headroom: Headroom, sample: Sample, setpoint: float, bounds: Bounds
) -> tuple[Headroom, Sample]:
    """Learn from a router that forwards all that the shield passes."""
    steady = headroom.steady >= IN_A_ROW
    assert sample.cap is not None  # prepared() has checked
    if not is_spent(sample):
        raised = (bounds.headroom + 2 * FITTING) * (headroom.short or 0.0)
        sleeps = headroom.sleeps or sample.cap <= raised
        headroom = replace(headroom, sleeps=sleeps, need=_need(sample, setpoint))
        learned = _by_use(headroom, sample, setpoint, bounds)
        if learned.needed is None and steady and not headroom.sleeps:
            return _eased(headroom, sample, setpoint, bounds)
        return headroom, learned
    if sample.throughput < FULL * setpoint:
        return headroom, sample  # the cap may be limiting adaptive senders
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
    """Lower the cap a little; faster if far from where the router fell short before."""
    cap, step = sample.cap or 0.0, headroom.ease
    short, need = _still_ahead(headroom.short, cap), _still_ahead(headroom.need, cap)
    if cap * (1 - step) < NEAR * max(short or 0.0, need or 0.0):
        step = following = EASE
    else:
        following = min(2 * step, FASTEST_EASE)
    headroom = replace(headroom, short=short, need=need, ease=following, eased=True)
    return headroom, _with_cap(sample, cap * (1 - step), setpoint, bounds)


def _still_ahead(mark: float | None, cap: float) -> float | None:
    """Return the mark where a router fell short, unless its cap is well below that."""
    return None if mark is None or cap < PASSED * mark else mark


def _needing(sample: Sample, cpu: float) -> Sample:
    return replace(sample, binding=False, needed=CapFraction(min(cpu, MOST_CPUS)))


def _held(sample: Sample) -> Sample:
    return replace(sample, binding=False, needed=None)


def _by_use(headroom: Headroom, sample: Sample, setpoint: float, bounds: Bounds) -> Sample:
    """Learn from a router's usage, unless the cap is already close to its need.

    The cap of a router not yet known to sleep stays where easing has brought it.
    """
    need = _need(sample, setpoint)
    if need is None:
        return _held(sample)
    need = max(need, headroom.peak or 0.0)
    least = max(1 / SPENT, bounds.headroom - FITTING) if headroom.sleeps else 1 / SPENT
    most = bounds.headroom + FITTING
    fits = sample.cap is not None and least * need <= sample.cap <= most * need
    return _held(sample) if fits else _needing(sample, need * sample.throughput / setpoint)


def _need(sample: Sample, setpoint: float) -> float | None:
    """Return the need of the setpoint from a router's usage; None where it is inconclusive."""
    used = _known_use(sample)
    if used is None or not _tells(sample, setpoint):
        return None
    return used * setpoint / sample.throughput


def _tells(sample: Sample, setpoint: float) -> bool:
    """Whether throughput was high enough for its usage to show the setpoint's need."""
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
    """Return the sample to which a law responds with this cap, however little was forwarded."""
    aim = bounds.headroom * setpoint
    shown = max(sample.throughput, LEAST_SHOWN * aim)
    return replace(_needing(sample, cap * shown / aim), throughput=shown)
