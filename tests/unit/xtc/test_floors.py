"""The law of floors: needs, weights that cover them together, and needs beyond the host."""

from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from common.units import CapFraction
from xtc.control.floors import (
    KEPT,
    MARGIN,
    REST,
    Claim,
    Grant,
    grants,
    need_of,
    noted,
    shortage,
    uncovered,
)
from xtc.spec import CGROUP_V1, CGROUP_V2, XEN, Scale

SCALES = [CGROUP_V1, CGROUP_V2, XEN]
ONE = CapFraction(1.0)


def cpus(value: float) -> CapFraction:
    return CapFraction(value)


def claims(**needs: float) -> dict[str, Claim]:
    return {name: Claim(cpus(need), CGROUP_V1.default) for name, need in needs.items()}


@pytest.mark.parametrize(
    ("used", "throughput", "target", "need"),
    [
        (0.3, 30e3, 30e3, 0.3),
        (0.05, 5e3, 30e3, 0.3),  # starved: what packets cost tells what the setpoint needs
        (0.6, 60e3, 30e3, 0.3),
        (0.3, 1e3, 30e3, None),  # too little to tell
        (0.0, 5e3, 30e3, None),
        (0.5, 3e3, 30e3, 1.0),  # no more than it can use
    ],
)
def test_what_a_setpoint_needs(
    used: float, throughput: float, target: float, need: float | None
) -> None:
    assert need_of(cpus(used), throughput, target, ONE) == (need and pytest.approx(need))


def test_a_need_is_kept_while_it_covers_and_is_near() -> None:
    first = noted(None, cpus(0.3))
    assert first == pytest.approx(0.3 * MARGIN)
    assert noted(first, cpus(0.32)) == first
    assert noted(first, cpus(first / KEPT * 1.01)) == first
    assert noted(first, cpus(0.34)) == pytest.approx(0.34 * MARGIN)
    assert noted(first, cpus(0.2)) == pytest.approx(0.2 * MARGIN)


def test_two_routers_and_a_hog_share_a_cpu_by_needs() -> None:
    found = grants(claims(gold=0.6, silver=0.2), CGROUP_V1.default, CGROUP_V1)
    total = CGROUP_V1.default + sum(grant.weight for grant in found.values())
    assert found["gold"].weight / total == pytest.approx(0.6, rel=0.01)
    assert found["silver"].weight / total >= 0.2
    assert found["gold"].covers == found["gold"].weight / total


def test_a_weight_that_covers_is_left_as_it_is() -> None:
    standing = Claim(cpus(0.1), 500)
    assert grants({"r": standing}, 100, CGROUP_V2)["r"].weight == 500


def test_without_rivals_nothing_is_to_be_changed_for_one() -> None:
    assert grants(claims(only=0.5), 0, CGROUP_V1)["only"].weight == CGROUP_V1.default


def test_floors_of_more_than_a_cpu_leave_others_a_little_of_each() -> None:
    found = grants(claims(a=0.8, b=0.8, c=0.8), CGROUP_V1.default, CGROUP_V1)
    weights = {grant.weight for grant in found.values()}
    assert len(weights) == 1
    alone = weights.pop()
    assert alone / (alone + CGROUP_V1.default) > 0.8
    assert CGROUP_V1.default / (alone + CGROUP_V1.default) > REST


needs = st.dictionaries(st.sampled_from("abcdef"), st.floats(1e-4, 0.95), max_size=6)


@given(needs, st.floats(0, 1e5), st.sampled_from(SCALES))
def test_weights_cover_every_need_that_fits_and_stay_in_range(
    found: dict[str, float], rivals: float, scale: Scale
) -> None:
    claimed = {name: Claim(cpus(need), scale.default) for name, need in found.items()}
    granted = grants(claimed, rivals, scale)
    assert granted.keys() == claimed.keys()
    for name, grant in granted.items():
        assert scale.least <= grant.weight <= scale.most
        limited = grant.weight < scale.default or any(
            one.weight == scale.most for one in granted.values()
        )
        if sum(found.values()) <= 1 - REST and not limited:
            assert grant.covers >= 0.98 * found[name]


@given(needs, st.floats(1, 1e4))
def test_who_needs_more_gets_no_less(found: dict[str, float], rivals: float) -> None:
    granted = grants(claims(**found), rivals, CGROUP_V1)
    for less, more in pairwise(sorted(found, key=found.__getitem__)):
        assert granted[less].weight <= granted[more].weight


@given(needs, st.floats(1, 1e4), st.floats(1, 1e4))
@example({"a": 0.5, "b": 0.5, "c": 0.125, "d": 0.015625}, 1.0, 1229.0)
def test_more_rivals_never_lower_a_weight(found: dict[str, float], one: float, two: float) -> None:
    few, many = (grants(claims(**found), rivals, CGROUP_V1) for rivals in sorted((one, two)))
    assert all(few[name].weight <= many[name].weight for name in found)


def test_the_host_is_short_where_needs_exceed_its_cpus() -> None:
    wanted = {"a": cpus(1.2), "b": cpus(0.9)}
    assert shortage("a", wanted, 4) == ""
    assert shortage("a", wanted, 2) == (
        "its setpoint needs 120% and 100% is left of 200%: lower setpoints, or move a router"
    )
    assert "needs 90% and 70% is left" in shortage("b", wanted, 2)
    assert shortage("other", wanted, 2) == ""


def test_needs_of_several_cpus_are_not_taken_for_needs_of_one() -> None:
    """Held routers that do not fit on one CPU run on others: none is called uncovered for that."""
    many = {f"r{number}": Claim(cpus(0.5), 100) for number in range(16)}
    for grant in grants(many, 500, CGROUP_V2).values():
        assert grant.weight < CGROUP_V2.most
        assert grant.covers >= 0.49


def test_a_weight_at_the_end_of_its_range_may_not_cover() -> None:
    rivals = 100 * CGROUP_V2.most
    found = grants({"r": Claim(cpus(0.5), 100)}, rivals, CGROUP_V2)["r"]
    assert found.weight == CGROUP_V2.most
    words = uncovered(cpus(0.5), found, CGROUP_V2)
    assert "cpu.weight 10000 covers" in words
    assert uncovered(cpus(0.5), Grant(10_000, cpus(0.5)), CGROUP_V2) == ""
    assert uncovered(cpus(0.5), Grant(9_999, cpus(0.1)), CGROUP_V2) == ""
