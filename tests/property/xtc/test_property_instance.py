"""One loop, whatever it is shown: no cap out of bounds, no error, and the ladder only by age."""

import math

from hypothesis import given
from hypothesis import strategies as st

from common.setpoint import Setpoint, Unit
from common.units import CapFraction, PacketsPerSecond, Seconds
from xtc.actuator.base import CapLimits
from xtc.config.plan import RouterPlan
from xtc.control.dither import SLOTS
from xtc.control.instance import RELEASE_AFTER, Act, Instance, step
from xtc.control.law import InBits, Sample
from xtc.lease import Kind, Lease
from xtc.measure.collector import Binding
from xtc.modes import Mode
from xtc.spec import SimulatedSpec

laws = st.sampled_from(["default", "pi", "dead-beat", "dead-beat-min3"])
rates = st.just(0.0) | st.floats(0, 1.5e8)
caps = st.floats(1e-3, 64).map(CapFraction)
samples = st.none() | st.builds(
    Sample,
    throughput=rates,
    cap=st.none() | caps,
    offered=st.none() | rates,
    used=st.none() | st.floats(0, 64),
    binding=st.none() | st.booleans(),
    in_bits=st.none() | st.builds(InBits, st.floats(0, 1e9), st.none() | st.floats(0, 1e9)),
)
limits = st.builds(
    lambda floor, width, quantum: CapLimits(
        CapFraction(max(floor, quantum)), CapFraction(max(floor, quantum) * width), quantum
    ),
    st.floats(1e-3, 1),
    st.floats(1, 1000),
    st.sampled_from([0.0, 0.01]),
)


packets = st.floats(1, 1e9).map(Setpoint)
bits = st.builds(Setpoint, st.floats(1e3, 1e12), st.just(Unit.BITS))


@st.composite
def plans(draw: st.DrawFn) -> RouterPlan:
    bound = st.none() | caps
    return RouterPlan(
        name="r",
        spec=SimulatedSpec("r"),
        binding=Binding(("r.0",)),
        law=draw(laws),
        model=None,
        setpoint=draw(st.none() | packets | bits),
        floor=draw(bound),
        ceiling=draw(bound),
        safe_cap=draw(bound),
    )


@given(
    plan=plans(),
    limits=limits,
    setpoint=packets | bits,
    ttl=st.none() | st.floats(1, 50),
    seen=st.lists(st.tuples(samples, st.floats(0.01, 8)), max_size=25),
)
def test_no_cap_is_ever_out_of_bounds(
    plan: RouterPlan,
    limits: CapLimits,
    setpoint: Setpoint,
    ttl: float | None,
    seen: list[tuple[Sample | None, float]],
) -> None:
    profile = plan.profile(limits, Seconds(1.0))
    instance = Instance(Lease.of(setpoint, expires_at=ttl), Seconds(0.0))
    now = 0.0
    for sample, passed in seen:
        now += passed
        instance, command = step(instance, profile, Seconds(now), sample)
        if command.act is not Act.SET:
            continue
        assert command.period is not None
        assert len(command.period.caps) == SLOTS
        for cap in command.period.caps:
            assert profile.bounds.floor <= cap <= profile.bounds.ceiling
            if limits.quantum:
                assert math.isclose(cap / limits.quantum, round(cap / limits.quantum))


@given(
    punished=st.booleans(),
    gaps=st.lists(st.floats(0.1, 10), min_size=1, max_size=20),
)
def test_the_ladder_is_never_climbed_down_while_blind(punished: bool, gaps: list[float]) -> None:
    kind = Kind.PUNISHMENT if punished else Kind.NORMAL
    profile = _plan().profile(CapLimits(CapFraction(0.001), CapFraction(1.0)), Seconds(1.0))
    instance = Instance(Lease(2e4, kind=kind), Seconds(0.0), capped=True)
    order = [Mode.CLOSED_LOOP, Mode.HOLD, Mode.DEGRADED, Mode.RELEASED]
    now, rung, releases = 0.0, 0, 0
    for gap in gaps:
        now += gap
        instance, command = step(instance, profile, Seconds(now), None)
        assert order.index(instance.mode) >= rung
        rung = order.index(instance.mode)
        releases += command.act is Act.RELEASE
    assert releases == (now >= RELEASE_AFTER - 1e-6 and not punished)
    assert (instance.mode is Mode.HOLD or now < 2) if punished else True


def _plan() -> RouterPlan:
    return RouterPlan(
        "r", SimulatedSpec("r"), Binding(("r.0",)), "default", None, None, None, None, None
    )


@given(
    plan=plans(),
    limits=limits,
    throughputs=st.lists(rates, min_size=3, max_size=30),
    setpoint=st.floats(1, 1e9),
)
def test_every_law_takes_any_run_of_throughputs(
    plan: RouterPlan, limits: CapLimits, throughputs: list[float], setpoint: float
) -> None:
    """The cap that the loop asked for is the one it is shown next, as in a real run."""
    profile = plan.profile(limits, Seconds(1.0))
    instance = Instance(Lease(setpoint), Seconds(0.0))
    cap: CapFraction | None = None
    for second, throughput in enumerate(throughputs):
        sample = Sample(PacketsPerSecond(throughput), cap, binding=cap is not None)
        instance, command = step(instance, profile, Seconds(float(second)), sample)
        if command.period is not None:
            cap = command.period.mean
            assert math.isfinite(cap)
