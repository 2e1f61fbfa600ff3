"""Choose the next measurement of a sweep from those so far; pure.

The order is: first the uncapped router, then caps in geometric steps, then caps where a straight
line between neighbours may be most wrong. On a concave curve the truth is between the chord of an
interval and the extended lines of its neighbours, so that their distance bounds the error. It is
zero where the curve is straight, and largest at the knee; on a hinge those lines meet in the knee
itself. Then come steps between two caps, for the dynamics, and held-out caps, for testing the
curve. The remaining time goes to caps with differing visits, since a host's speed drifts and a
visit samples it at one time. Last come a few caps at each further offered rate and packet size, for
their effect on the curve.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, pairwise

from training.recording.recording import Phase
from training.recording.sweep_model import (
    LOAD_SAMPLES,
    Known,
    Point,
    Traffic,
    Visit,
    cap_of,
    mean_of,
    spread_of,
)

LOWEST = 0.02
"""The smallest cap of the first ones, as a share of the largest."""
FEWEST = 6
"""Caps that a curve needs before any other measurement."""
SECOND = 0.45
SLOW_SECOND = 0.15
"""Shares of the samples reserved for second visits; if settling takes long, caps come first."""
ROOM = 1.1
"""The largest cap above what the uncapped router used."""
SATURATED = 0.98
"""Share of the top throughput from which on a cap no longer matters."""
SHOWN = 0.15
"""The smallest cap should show a throughput below this share of the top."""
STEP_SHARES = (0.35, 0.75)
"""Throughputs between which the cap steps, as shares of the top."""
BENT = 0.95
"""Share of the top throughput from which on a cap hardly shows in it."""
SLOW = 3
"""Samples to wait after a change of cap; with longer waits, every visit shows the response."""
FEW_STEPS = 3
STEP_RISE = 1.3
"""Smaller steps say nothing about the dynamics."""
LOAD_SHARES = (0.35, 0.75)
"""Throughputs at which another offered rate is tried, as shares of its maximum; the largest cap is
added."""
LEAST_SCALE = 0.03
"""Throughputs below this share of the top are raised to it to compute relative errors."""
CERTAIN = 2.0
"""Standard errors on either side of a mean."""


@dataclass(frozen=True, slots=True)
class Request:
    """The next measurement."""

    phase: Phase
    cap: float | None
    """None is the uncapped router, as found."""
    at_least: int
    at_most: int
    interval: float = 0.0
    """The visit ends early when its mean is known to this share; 0 is never."""
    settles: bool = True
    """Whether samples are discarded until the router has settled; a step keeps every one."""
    traffic: Traffic | None = None
    """The traffic to send; None is that of the whole curve."""


def enough(values: Sequence[float], request: Request, noise: float) -> bool:
    """Whether a visit has reached its purpose."""
    if len(values) < request.at_least:
        return False
    if len(values) >= request.at_most:
        return True
    mean = mean_of(values)
    spread = max(spread_of(values) if len(values) > 1 else 0.0, 0.5 * noise * mean)
    return CERTAIN * spread <= request.interval * mean * math.sqrt(len(values))


def next_request(known: Known, left: int) -> Request | None:
    """Return what to measure next with the samples that are left; None when the sweep is done."""
    whole = (_uncapped, _curve, _steps, _held_out, _again, _loads)
    for stage in (_uncapped, _given) if known.aims.only else whole:
        request = stage(known, left)
        if request is not None:
            return request if cost(request, known.waits) <= left else None
    return None


def cost(request: Request, settling: int) -> float:
    """Return the fewest samples that a request takes."""
    return request.at_least + (settling if request.settles else 0)


def most_left(known: Known, left: int) -> int:
    """Return the maximum number of samples still to come."""
    if known.aims.only:
        return left
    curve_is_done = bool(known.visits) and _curve(known, left) is None
    if not curve_is_done:
        return left
    again = len(_doubtful(known)) * (known.aims.at_least + known.settling)
    return min(left, math.ceil(_reserve(known) + again))


def _mean_of(known: Known, phase: Phase, cap: float | None) -> Request:
    aims = known.aims
    return Request(phase, cap, aims.at_least, aims.at_most, aims.interval)


def _uncapped(known: Known, _left: int) -> Request | None:
    if known.of("uncapped", known.aims.at_least):
        return None
    return _mean_of(known, "uncapped", None)


def _given(known: Known, _left: int) -> Request | None:
    """Return the next of the given caps, up and down in turn; None when all are done.

    A drift of the host's speed then does not look like a difference between small and large caps.
    """
    caps = [known.span.nearest(cap) for cap in known.aims.only]
    done = [cap_of(v) for v in known.of("steady", known.aims.at_least) if v.cap is not None]
    for number in range(known.aims.visits):
        for cap in caps if number % 2 == 0 else reversed(caps):
            if sum(known.same(cap, seen) for seen in done) <= number:
                return _mean_of(known, "steady", cap)
    return None


def _curve(known: Known, left: int) -> Request | None:
    """Return the next cap of the curve; once the steps have begun it is no longer refined."""
    if any(v.phase in {"step", "held_out", "load"} for v in known.visits):
        return None
    aims = known.aims
    second = (len(known.points) + aims.held_out) * (aims.at_least + known.settling)
    most = (SECOND if known.settling <= SLOW else SLOW_SECOND) * aims.samples
    reserve = _reserve(known) + (min(second, most) if aims.visits > 1 else 0.0)
    if left - reserve < aims.at_least + known.settling and len(known.points) >= FEWEST:
        return None
    cap = next((c for c in _coarse(known) if not known.has(c)), None)
    if cap is None:
        cap = _extreme(known) or _worst(known)
    return None if cap is None else _mean_of(known, "steady", cap)


def _largest(known: Known) -> float:
    """Return a cap a little above the uncapped router's CPU use.

    If the platform does not count that, the first cap that is too large serves.
    """
    free = SATURATED * known.top
    used = [v.used for v in known.visits if v.phase == "uncapped" and v.used] or [
        v.used for v in known.visits if v.phase == "steady" and v.used and v.mean >= free
    ]
    return known.span.nearest(ROOM * used[0]) if used else known.span.ceiling


def _coarse(known: Known) -> list[float]:
    """Return caps in geometric steps, ends first, then always the middle of the widest gap."""
    high, count = _largest(known), known.aims.coarse
    low = max(known.span.floor, known.span.quantum, LOWEST * high)
    if low >= high:
        return [high]
    ratio = (high / low) ** (1 / (count - 1))
    return [known.span.nearest(low * ratio**index) for index in _halving(count)]


def _halving(count: int) -> list[int]:
    """Return 0 to count - 1 in an order in which every prefix is evenly spread."""
    order = [count - 1, 0]
    while len(order) < count:
        ends = sorted(order)
        low, high = max(pairwise(ends), key=lambda pair: pair[1] - pair[0])
        order.append((low + high) // 2)
    return order


def _extreme(known: Known) -> float | None:
    """Return a cap beyond the measured ones if they do not show the top or the bottom."""
    first, last = known.points[0], known.points[-1]
    if last.throughput < SATURATED * known.top:
        beyond = known.span.nearest(1.3 * last.cap)
        if not known.has(beyond):
            return beyond
    if first.throughput > SHOWN * known.top:
        below = known.span.nearest(first.cap / 4)
        if not known.has(below):
            return below
    return None


def _worst(known: Known) -> float | None:
    """Return the cap with the largest possible interpolation error; None if all are small."""
    found = [guess for guess in _guesses(known) if not known.has(guess[1])]
    error, cap = max(found, default=(0.0, 0.0))
    return cap if error > known.aims.error else None


def _guesses(known: Known) -> Iterator[tuple[float, float]]:
    """Yield for each interval the possible error of the chord, noise subtracted, and its cap."""
    first, last = known.points[0], known.points[-1]
    ends = (Point(0.0, 0.0, 0.0), *known.points, Point(2 * last.cap, last.throughput, last.error))
    for left, low, high, right in zip(ends, ends[1:], ends[2:], ends[3:], strict=False):
        cap = _meeting(left, low, high, right)
        chord = _line(low, high, cap)
        if left.cap == 0.0 and low is first:  # the line from the origin is an assumption
            bounds = [_line(high, right, cap)]
        else:
            bounds = [_line(left, low, cap), _line(high, right, cap)]
        gap, sigma = min(
            (abs(b - chord[0]), math.hypot(b_error, chord[1])) for b, b_error in bounds
        )
        scale = max(chord[0], LEAST_SCALE * known.top)
        yield (gap - CERTAIN * sigma) / scale, known.span.nearest(cap)


def _meeting(left: Point, low: Point, high: Point, right: Point) -> float:
    """Return the cap at which the neighbours' lines meet, well within the interval."""
    rise = (low.throughput - left.throughput) / (low.cap - left.cap)
    flat = (right.throughput - high.throughput) / (right.cap - high.cap)
    middle = math.sqrt(low.cap * high.cap)
    if abs(rise - flat) * high.cap < 1e-9 * max(high.throughput, 1.0):
        return middle
    meeting = (high.throughput - low.throughput + rise * low.cap - flat * high.cap) / (rise - flat)
    width = high.cap - low.cap
    if not low.cap < meeting < high.cap:
        return middle
    return min(max(meeting, low.cap + 0.15 * width), high.cap - 0.15 * width)


def _line(one: Point, other: Point, cap: float) -> tuple[float, float]:
    """Return the line through two points at a cap, and its standard error there."""
    share = (cap - one.cap) / (other.cap - one.cap)
    value = one.throughput + share * (other.throughput - one.throughput)
    return value, math.hypot((1 - share) * one.error, share * other.error)


def _pair(known: Known) -> tuple[float, float] | None:
    """Return the caps between which to step; None if no two are informative."""
    top = max((p.throughput for p in known.points), default=0.0)
    held = [p for p in known.points if 0 < p.throughput < BENT * top]
    pairs = [
        (low, high)
        for low, high in combinations(held, 2)
        if high.throughput >= STEP_RISE * low.throughput
    ]
    if not pairs:
        return None
    low, high = min(pairs, key=lambda pair: _unlike(pair, top))
    return low.cap, high.cap


def _unlike(pair: tuple[Point, Point], top: float) -> float:
    """Return how far a pair of caps is from the most informative one."""
    shares = zip(pair, STEP_SHARES, strict=True)
    return sum(abs(point.throughput / top - share) for point, share in shares)


def _steps(known: Known, _left: int) -> Request | None:
    """Return the next step; before the first, and after a break, the cap to step from."""
    pair, last, aims = _pair(known), known.last, known.aims
    if pair is None or len(known.of("step", aims.step_samples)) >= _steps_wanted(known):
        return None
    if any(v.phase in {"held_out", "load"} for v in known.visits):
        return None
    low, high = map(known.span.nearest, pair)
    stands = last is not None and last.cap is not None and last.phase in {"step", "steady"}
    if last is None or not stands or not any(known.same(cap_of(last), c) for c in (low, high)):
        return Request("steady", low, aims.at_least, aims.at_least)
    cap = low if known.same(cap_of(last), high) else high
    return Request("step", cap, aims.step_samples, aims.step_samples, settles=False)


def _steps_wanted(known: Known) -> int:
    """Return the useful number of steps: if a cap takes long to show, each visit is one."""
    aims = known.aims
    return aims.steps if known.settling <= SLOW else min(aims.steps, FEW_STEPS)


def _held_out(known: Known, _left: int) -> Request | None:
    if any(len(visits) > 1 for visits in known.by_cap("held_out")):
        return None  # further visits do not change which caps are held out
    done = [cap_of(v) for v in known.of("held_out", known.aims.at_least) if v.cap is not None]
    if len(done) >= known.aims.held_out:
        return None
    for cap in _unseen(known):
        if not any(known.same(cap, seen) for seen in done):
            return _mean_of(known, "held_out", cap)
    return None


def _unseen(known: Known) -> list[float]:
    """Return caps in the middle of gaps between those measured, spread over all that bind."""
    pairs = pairwise(known.points)
    binding = [(a.cap, b.cap) for a, b in pairs if a.throughput < SATURATED * known.top]
    middles = [known.span.nearest(math.sqrt(low * high)) for low, high in binding]
    free = [cap for cap in middles if not known.has(cap)]
    count = min(known.aims.held_out, len(free))
    return [free[int((index + 0.5) * len(free) / count)] for index in range(count)]


def _again(known: Known, left: int) -> Request | None:
    """Return the cap to visit again: the doubtful one visited least, then longest ago."""
    aims = known.aims
    least = aims.at_least + known.settling + LOAD_SAMPLES * len(aims.loads)
    if left < least or any(v.phase == "load" for v in known.visits):
        return None
    doubtful = _doubtful(known)
    if not doubtful:
        return None
    visits = min(doubtful, key=lambda visits: (len(visits), visits[-1].number))
    return Request(visits[0].phase, cap_of(visits[0]), aims.at_least, aims.at_least)


def _doubtful(known: Known) -> list[list[Visit]]:
    """Return the visits of each cap that further visits may make clearer."""
    aims = known.aims
    groups = (*known.by_cap("steady"), *known.by_cap("held_out"))
    possible = [visits for visits in groups if cap_of(visits[0]) <= known.span.ceiling]
    few = [visits for visits in possible if len(visits) < aims.visits]
    return [visits for visits in few if len(visits) < 2 or _differ(visits, aims.interval)]


def _differ(visits: Sequence[Visit], interval: float) -> bool:
    """Whether the differences of visits leave their mean uncertain by more than a share."""
    means = [visit.mean for visit in visits]
    return spread_of(means) > interval * mean_of(means) * math.sqrt(len(means))


def _loads(known: Known, _left: int) -> Request | None:
    """Return the next cap under a further load; all caps of one load before the next."""
    for traffic in known.aims.loads:
        done = known.loaded(traffic)
        for cap in _caps_under(known, traffic.offered):
            if not any(known.same(cap, seen) for seen in done):
                return replace(_mean_of(known, "load", cap), traffic=traffic)
    return None


def _caps_under(known: Known, rate: float) -> list[float]:
    """Return caps of the curve where it rises, up to what the rate lets through, and the largest.

    They are the curve's own caps, so that only the load differs.
    """
    held = {point.throughput: point.cap for point in known.points if point.throughput > 0}
    if not held:
        return []
    most = min(known.top, rate)
    rising = [held[_nearest(share * most, held)] for share in LOAD_SHARES]
    largest = known.points[-1].cap
    given = [cap_of(v) for v in known.visits if v.phase == "steady" and v.cap is not None]
    caps = (_nearest(cap, given) for cap in dict.fromkeys((*rising, largest)))
    return [cap for cap in caps if cap <= known.span.ceiling]


def _nearest(goal: float, values: Iterable[float]) -> float:
    return min(values, key=lambda value: abs(value - goal))


def _reserve(known: Known) -> float:
    """Return the number of samples for steps, held-out caps and further rates."""
    aims = known.aims
    steps = max(0, _steps_wanted(known) - len(known.of("step", aims.step_samples)))
    unseen = max(0, aims.held_out - len(known.of("held_out", aims.at_least)))
    before = aims.at_least + known.settling if steps else 0.0
    typical = (aims.at_least + aims.at_most) / 2 + known.settling
    tried = sum(len(known.loaded(traffic)) for traffic in set(aims.loads))
    loaded = max(0, (len(LOAD_SHARES) + 1) * len(set(aims.loads)) - tried)
    judged = unseen * (aims.at_most + known.settling)
    return before + steps * aims.step_samples + judged + loaded * typical
