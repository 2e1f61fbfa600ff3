"""What a soak takes for good, and for bad: each criterion on both sides."""

from dataclasses import replace

import msgspec
import pytest

from benchmarks.policer.soak_hosts import Seen
from benchmarks.policer.soak_judged import LONG_ENOUGH, Sample, Soak, judged, slope

FINE = Seen("h0", "", ticks=600, router_seconds=6000, orders=900, messages=600, prompt=600)
BAD = Seen("h1", "lies", ticks=600)


def samples(rss: float = 0.0, events: float = 0.0, count: int = LONG_ENOUGH) -> list[Sample]:
    """Return samples of 5 s; memory and events grow by so much with each."""
    return [Sample(5.0 * n, 100 + n * rss, 5.0, 1.0, round(500 + n * events)) for n in range(count)]


GOOD = Soak(
    minutes=5.0,
    hosts=2,
    routers=20,
    rounds=1200,
    seen=[FINE, BAD],
    samples=samples(),
    troubled={},
    shown={"lies": "distrusted"},
    refused=True,
    asked=300,
    unanswered=[],
    read_p99_ms=20.0,
    idle=1100,
    reopened=0,
    failures=[],
)


def failed(soak: Soak) -> list[str]:
    return [line.name for line in judged(soak) if line.holds is False]


def seen(**fields: int) -> list[Seen]:
    return [msgspec.structs.replace(FINE, **fields), BAD]


def test_a_good_run_holds_everything() -> None:
    assert [line.holds for line in judged(GOOD)] == [True] * 9


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("rounds in time", replace(GOOD, rounds=1171), replace(GOOD, rounds=1169)),
        (
            "orders in time",
            replace(GOOD, seen=seen(prompt=571)),
            replace(GOOD, seen=seen(prompt=569)),
        ),
        ("controlled", GOOD, replace(GOOD, troubled={"h0": "not heard"})),
        ("controlled", GOOD, replace(GOOD, seen=seen(lapsed=1))),
        ("promises kept", replace(GOOD, seen=seen(short=6)), replace(GOOD, seen=seen(short=7))),
        ("memory flat", replace(GOOD, samples=samples(0.06)), replace(GOOD, samples=samples(0.08))),
        (
            "disk bounded",
            replace(GOOD, samples=samples(events=1.6)),
            replace(GOOD, samples=samples(events=1.8)),
        ),
        ("answers", GOOD, replace(GOOD, unanswered=["/livez: ReadTimeout"])),
        ("bad hosts shown", GOOD, replace(GOOD, shown={"lies": ""})),
        ("bad hosts shown", GOOD, replace(GOOD, refused=False)),
        ("no defect", GOOD, replace(GOOD, failures=["Traceback"])),
    ],
)
def test_each_criterion_fails_by_itself(name: str, good: Soak, bad: Soak) -> None:
    assert failed(good) == []
    assert failed(bad) == [name]


def test_a_short_run_says_nothing_of_growth() -> None:
    short = replace(GOOD, samples=samples(9.0, 99.0, count=LONG_ENOUGH - 1))
    assert [line.name for line in judged(short) if line.holds is None] == [
        "memory flat",
        "disk bounded",
    ]
    assert failed(short) == []


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([3.0 * n for n in range(20)], 3.0),
        ([7.0] * 20, 0.0),
        ([1000.0 if n == 5 else 3.0 * n for n in range(20)], 3.0),
    ],
    ids=["line", "flat", "outlier"],
)
def test_a_slope_is_that_of_most(values: list[float], expected: float) -> None:
    assert slope(list(map(float, range(20))), values) == pytest.approx(expected)
