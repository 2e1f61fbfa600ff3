"""Engagement: held before a guarantee suffers, let go when calm, and never in vain for long."""

from collections.abc import Mapping, Sequence

import pytest

from policer.decide.allocation import Claim
from policer.decide.engagement import EngagementRules, EngagementState, decide

ENGAGEMENT = EngagementRules()
CAPACITY = 100e3


def settle(
    claims: Sequence[Claim],
    forwarded: Mapping[str, float] | None = None,
    *,
    rounds: int = 1,
    last: EngagementState | None = None,
) -> EngagementState:
    """Let the same go on for some rounds; by default all forward what they can use."""
    standing = last or EngagementState()
    seen = {c.vr: c.useful for c in claims} if forwarded is None else forwarded
    for _ in range(rounds):
        standing = decide(claims, seen, CAPACITY, standing, ENGAGEMENT)
    return standing


def two(a: float, b: float, *, guarantee: float = 20e3) -> list[Claim]:
    return [Claim("a", a, guarantee=guarantee), Claim("b", b)]


def test_an_uncontended_host_runs_uncapped() -> None:
    standing = settle(two(40e3, 44e3), rounds=100)
    assert not standing.engaged
    assert standing.setpoints == {}


def test_a_host_is_engaged_before_it_is_full() -> None:
    standing = settle(two(40e3, 46e3))
    assert standing.engaged
    assert set(standing.setpoints) == {"a", "b"}


def test_it_is_let_go_after_so_many_calm_rounds_in_a_row() -> None:
    busy = settle(two(40e3, 50e3))
    calm = settle(two(30e3, 30e3), rounds=ENGAGEMENT.calm_rounds - 1, last=busy)
    assert calm.engaged
    interrupted = settle(two(40e3, 31e3), last=calm)
    still = settle(two(30e3, 30e3), rounds=ENGAGEMENT.calm_rounds - 1, last=interrupted)
    assert still.engaged
    assert not settle(two(30e3, 30e3), last=still).engaged


def test_one_router_alone_contends_with_nobody() -> None:
    assert not settle([Claim("a", 1e6)], rounds=10).engaged


def test_a_router_is_held_at_its_ceiling_on_an_idle_host() -> None:
    claims = [Claim("a", 30e3, ceiling=10e3), Claim("b", 0)]
    standing = settle(claims)
    assert not standing.engaged
    assert standing.setpoints == {"a": 10e3}
    below = settle([Claim("a", 8e3, ceiling=10e3), Claim("b", 0)], last=standing)
    assert below.setpoints == {"a": 10e3}
    far = settle([Claim("a", 6e3, ceiling=10e3), Claim("b", 0)], last=below)
    assert far.setpoints == {}


def test_a_setpoint_that_would_hardly_change_stays() -> None:
    first = settle(two(1e6, 1e6))
    assert settle([Claim("a", 1e6, guarantee=20.5e3), Claim("b", 1e6)], last=first) == first


def test_but_never_below_a_guarantee() -> None:
    first = settle([Claim("a", 1e6, guarantee=94e3), Claim("b", 1e6)])
    second = settle([Claim("a", 1e6, guarantee=96e3), Claim("b", 1e6)], last=first)
    assert second.setpoints["a"] >= 96e3


def test_nor_above_a_ceiling() -> None:
    first = settle([Claim("a", 1e6, ceiling=30e3), Claim("b", 1e6)])
    second = settle([Claim("a", 1e6, ceiling=29.5e3), Claim("b", 1e6)], last=first)
    assert second.setpoints["a"] == 29.5e3


def test_guarantees_that_fill_the_host_are_kept_to_the_packet() -> None:
    """What is held back for those that wake is lent, never promised."""
    claims = [Claim("a", 1e6, guarantee=60e3), Claim("b", 1e6, guarantee=40e3), Claim("c", 1e6)]
    standing = settle(claims, {"a": 60e3, "b": 40e3, "c": 0.0}, rounds=300)
    assert standing.setpoints["a"] == pytest.approx(60e3)
    assert standing.setpoints["b"] == pytest.approx(40e3)
    assert standing.harmed == ()


def test_a_starving_guarantee_engages_and_squeezes_what_is_lent() -> None:
    claims = two(20e3, 40e3)
    once = settle(claims, {"a": 5e3, "b": 40e3})
    assert once.engaged
    assert once.harmed == ("a",)
    later = settle(claims, {"a": 5e3, "b": 40e3}, rounds=5, last=once)
    assert later.shared == pytest.approx(ENGAGEMENT.squeeze**5)
    assert later.setpoints["a"] >= 20e3


def test_the_squeeze_never_touches_a_guarantee() -> None:
    claims = [Claim("a", 50e3, guarantee=50e3), Claim("b", 1e6, guarantee=40e3)]
    standing = settle(claims, {"a": 30e3, "b": 40e3}, rounds=11)
    assert standing.shared < 0.4
    assert standing.setpoints["a"] >= 50e3
    assert 40e3 <= standing.setpoints["b"] <= 43e3


def test_a_hiccup_is_no_suffering_and_a_small_lasting_lack_is() -> None:
    claims = two(20e3, 1e6)
    assert settle(claims, {"a": 14e3}).harmed == ()
    assert settle(claims, {"a": 18e3}, rounds=7).harmed == ()
    assert settle(claims, {"a": 18e3}, rounds=9).harmed == ("a",)


def test_less_than_a_twentieth_is_no_lack() -> None:
    assert settle(two(20e3, 1e6), {"a": 19.1e3}, rounds=1000).harmed == ()


def test_a_router_that_nobody_can_see_does_not_suffer() -> None:
    standing = settle(two(20e3, 1e6), {}, rounds=100)
    assert standing.harmed == ()
    assert standing.shared == 1.0


def test_what_was_squeezed_comes_back_but_not_at_once_to_where_it_hurt() -> None:
    claims = two(20e3, 1e6)
    hurt = settle(claims, {"a": 5e3, "b": 75e3}, rounds=6)
    shares = []
    standing = hurt
    for _ in range(200):
        standing = settle(claims, {"a": 20e3, "b": 60e3}, last=standing)
        shares.append(standing.shared)
    assert standing.harmed == ()
    assert shares == sorted(shares)
    assert shares[30] < 0.99
    assert shares[-1] > 0.99


def test_squeezing_in_vain_ends() -> None:
    """A router that drops by itself (a firewall) must not hold all others down for ever."""
    claims = two(20e3, 45e3)
    forwarded = {"a": 10e3, "b": 30e3}
    standing = settle(claims, forwarded, rounds=40)
    assert standing.yields == {"a": pytest.approx(0.5)}
    assert standing.harmed == ()
    later = settle(claims, forwarded, rounds=2000, last=standing)
    assert later.shared == 1.0
    assert not later.engaged  # and the host counts as calm again


def test_what_it_does_forward_is_defended_all_the_same() -> None:
    claims = two(20e3, 50e3)
    standing = settle(claims, {"a": 10e3, "b": 30e3}, rounds=100)
    assert settle(claims, {"a": 3e3, "b": 30e3}, last=standing).harmed == ("a",)


def test_a_firewall_that_begins_to_drop_more_is_no_victim_for_ever() -> None:
    claims = two(20e3, 45e3)
    standing = settle(claims, {"a": 10e3, "b": 30e3}, rounds=100)
    later = settle(claims, {"a": 4e3, "b": 30e3}, rounds=100, last=standing)
    assert later.yields == {"a": pytest.approx(0.2)}
    assert later.harmed == ()


def test_a_router_that_forwards_all_again_is_as_any_other() -> None:
    claims = two(20e3, 50e3)
    standing = settle(claims, {"a": 10e3, "b": 30e3}, rounds=40)
    assert settle(claims, last=standing).yields == {}


def test_noise_alone_engages_nobody_twice_in_a_calm_period() -> None:
    standing, changes = EngagementState(), []
    for second in range(1000):
        load = 68e3 if second % 7 else 86e3
        after = decide([Claim("a", load), Claim("b", 0)], {}, CAPACITY, standing, ENGAGEMENT)
        if after.engaged is not standing.engaged:
            changes.append(second)
        standing = after
    assert len(changes) == 1
