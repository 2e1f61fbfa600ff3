"""What a model knows of its own errors: what can be promised by it, and which caps fit it."""

import math
import random
from dataclasses import replace

import pytest

from models import HostModel, InvalidModelError, ThroughputCurve, Uncertainty, paper_host
from models.uncertainty import Limit

CURVE = ThroughputCurve(((0.1, 10e3), (0.5, 50e3), (0.9, 90e3), (1.2, 90e3)), 200e3)
KNOWN = Uncertainty(
    noise=0.03,
    speed_sd=0.02,
    trend=0.0,
    intervals=((0.1, 9.8e3, 10.2e3), (0.5, 49e3, 51e3), (0.9, 88e3, 92e3)),
    top=(88e3, 92e3),
    limited_by="host",
)


def test_the_host_forwards_what_it_can_be_promised_for_in_975_of_1000_times() -> None:
    known, chance = replace(KNOWN, speed_sd=0.05, trend=0.1), random.Random(3)
    draws = 20_000
    kept = 0
    for _ in range(draws):
        top = chance.gauss(90e3, 2e3 / 1.96)
        speed = 1 + chance.gauss(0, 0.05) + chance.uniform(-0.05, 0.05)
        kept += top * speed >= known.promise
    assert kept / draws == pytest.approx(0.975, abs=0.006)


def test_nobody_is_promised_more_than_the_curve_has_nor_less_than_nothing() -> None:
    host = HostModel(name="a", measured_curve=CURVE, uncertainty=replace(KNOWN, top=(93e3, 94e3)))
    assert host.promise <= CURVE.top
    with pytest.raises(InvalidModelError, match="the curve's top is 90000"):
        replace(host, uncertainty=replace(KNOWN, top=(99e3, 99e3)))
    assert replace(KNOWN, speed_sd=1.0).promise == 0.0
    assert replace(host, uncertainty=None).promise == CURVE.top
    assert paper_host().promise == paper_host().curve.top


@pytest.mark.parametrize("cap", [0.1, 0.3, 0.5, 0.7])
def test_samples_of_the_host_itself_lie_within_its_caps(cap: float) -> None:
    chance = random.Random(5)
    inside = 0
    for _ in range(1000):
        speed, noise = 1 + chance.gauss(0, 0.02), 1 + chance.gauss(0, 0.03)
        found = KNOWN.caps_for(CURVE, max(CURVE.throughput(cap) * speed * noise, 10e3))
        assert found is not None
        inside += found[0] <= cap <= found[1]
    assert inside >= 940


def test_a_host_that_is_a_fifth_slower_lies_outside_of_them() -> None:
    found = KNOWN.caps_for(CURVE, 40e3)
    assert found is not None
    assert 0.4 / 1.12 < found[0] < 0.4 < found[1] < 0.4 * 1.12
    assert found[1] < 0.4 * 1.2


@pytest.mark.parametrize(
    ("throughput", "limited_by", "caps"),
    [
        (9e3, "host", None),  # below what was measured
        (89e3, "load", None),  # a top that the load limits tells nothing of caps
        (89e3, None, None),
        (89e3, "host", (0.83, math.inf)),
        (150e3, "host", (0.9, math.inf)),
    ],
)
def test_where_a_throughput_tells_no_cap_none_is_made_up(
    throughput: float, limited_by: Limit | None, caps: tuple[float, float] | None
) -> None:
    found = replace(KNOWN, limited_by=limited_by).caps_for(CURVE, throughput)
    assert found == (None if caps is None else pytest.approx(caps, rel=0.05))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("noise", 1.1),
        ("noise", math.nan),
        ("speed_sd", -0.1),
        ("trend", -1.5),
        ("top", (92e3, 88e3)),
        ("top", (0.0, 0.0)),
        ("intervals", ()),
        ("intervals", ((0.5, 1.0, 2.0), (0.5, 1.0, 2.0))),
        ("intervals", ((0.5, 2.0, 1.0),)),
    ],
)
def test_what_no_sweep_can_have_found_is_refused_by_name(field: str, value: object) -> None:
    with pytest.raises(InvalidModelError) as caught:
        replace(KNOWN, **{field: value})  # type: ignore[arg-type]
    assert caught.value.field == f"uncertainty.{field}"
