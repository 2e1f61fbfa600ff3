"""Limits: they end by themselves, a former leader sets none, and what they drop was offered."""

import errno
from pathlib import Path

import pytest
from manager_rig import PAPER, PERIOD
from simulated_rig import Rig, configured_rig, plan

from common.units import PacketsPerSecond
from xtc.errors import Denied, Transient
from xtc.manager.cap import MAX_BACKOFF
from xtc.manager.limits import _passed
from xtc.measure.collector import Binding, Reading, Side
from xtc.shield.tbf import explain
from xtc.state import journal as journal_module
from xtc.wire import Activate, Deactivate, Limit

FLOOD = PAPER.offered


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    rig = configured_rig(tmp_path, a=None, b=None)
    rig.tick(2)
    return rig


def limited(rig: Rig) -> dict[str, float]:
    return rig.limiter.limits


# Their end


def test_a_limit_ends_to_the_period(rig: Rig) -> None:
    rig.ask(Limit("a", 30e3, ttl_s=10.0))
    rig.tick(9)
    assert (limited(rig), rig.report("a").limit_pps) == ({"a.0": 30e3}, 30e3)
    rig.tick(1)
    assert (limited(rig), rig.report("a").limit_pps) == ({}, None)
    assert not rig.journal.ledger.limits


def test_a_limit_without_a_time_to_live_has_no_end(rig: Rig) -> None:
    rig.ask(Limit("a", 30e3))
    rig.tick(1000)
    assert limited(rig) == {"a.0": 30e3}


def test_a_limit_that_is_renewed_goes_on(rig: Rig) -> None:
    for _ in range(5):
        rig.ask(Limit("a", 30e3, ttl_s=3.0))
        rig.tick(2)
    assert limited(rig) == {"a.0": 30e3}
    rig.tick(1)
    assert not limited(rig)


def test_the_last_word_says_when_it_ends(rig: Rig) -> None:
    rig.ask(Limit("a", 30e3, ttl_s=3.0))
    rig.ask(Limit("a", 30e3))
    rig.tick(10)
    assert limited(rig)
    rig.ask(Limit("a", 30e3, ttl_s=1.0))
    rig.tick(1)
    assert not limited(rig)


def test_one_limit_ends_without_the_other(rig: Rig) -> None:
    rig.ask(Limit("a", 30e3, ttl_s=2.0))
    rig.ask(Limit("b", 40e3, ttl_s=4.0))
    rig.tick(2)
    assert limited(rig) == {"b.0": 40e3}


def test_an_end_that_fails_is_tried_until_it_is_done_and_delays_nobody(rig: Rig) -> None:
    rig.hold("b", 20e3)
    rig.ask(Limit("a", 30e3, ttl_s=2.0))
    rig.limiter.error = Denied("a.0", "not allowed")
    rig.tick(3)
    assert limited(rig)
    assert rig.journal.ledger.limits == {"'": ("a.0",)}
    assert rig.holds("b", 20e3)
    rig.limiter.error = None
    rig.tick(MAX_BACKOFF)
    assert not limited(rig)
    assert not rig.journal.ledger.limits


def test_a_daemon_that_starts_again_lifts_a_limit_before_its_end(rig: Rig) -> None:
    rig.ask(Limit("a", 30e3, ttl_s=60.0))
    rig.restart()
    rig.tick(1)
    assert not limited(rig)
    assert not rig.journal.ledger.limits


def test_a_release_ends_a_limit_before_its_time(rig: Rig) -> None:
    rig.hold("a", 20e3)
    rig.ask(Limit("a", 30e3, ttl_s=60.0))
    rig.ask(Deactivate("a"))
    assert not limited(rig)


# What is renewed, and what is set again


def test_a_renewal_only_moves_the_end(rig: Rig) -> None:
    """Setting a limit anew empties its queue, and costs a request to the kernel."""
    rig.ask(Limit("a", 30e3, ttl_s=10.0))
    rig.tick(1)
    limited(rig)["a.0"] = -1.0
    rig.ask(Limit("a", 30e3, ttl_s=10.0))
    assert limited(rig) == {"a.0": -1.0}
    rig.ask(Limit("a", 31e3, ttl_s=10.0))
    assert limited(rig) == {"a.0": 31e3}


def test_a_renewal_sets_a_limit_again_that_somebody_took_away(rig: Rig) -> None:
    rig.ask(Limit("a", 30e3, ttl_s=10.0))
    limited(rig).clear()
    rig.tick(1)
    rig.ask(Limit("a", 30e3, ttl_s=10.0))
    assert limited(rig) == {"a.0": 30e3}


def test_a_limit_that_could_not_be_lifted_and_is_set_again_stays(rig: Rig) -> None:
    rig.ask(Limit("a", 30e3))
    rig.limiter.error = Transient("a.0", "busy")
    rig.refused(Limit("a", None))
    rig.limiter.error = None
    rig.ask(Limit("a", 40e3))
    rig.tick(MAX_BACKOFF)
    assert limited(rig) == {"a.0": 40e3}


def test_a_limit_that_fails_leaves_none_where_there_was_none(rig: Rig) -> None:
    rig.limiter.error = Transient("a.0", "busy")
    assert rig.refused(Limit("a", 30e3)).code == "transient"
    rig.limiter.error = None
    rig.tick(MAX_BACKOFF)
    assert rig.report("a").limit_pps is None
    assert not rig.journal.ledger.limits


def test_a_limit_that_fails_leaves_the_one_that_stood_and_its_end(rig: Rig) -> None:
    rig.ask(Limit("a", 30e3, ttl_s=5.0))
    rig.limiter.error = Transient("a.0", "busy")
    rig.refused(Limit("a", 10e3))
    rig.limiter.error = None
    assert limited(rig) == {"a.0": 30e3}
    rig.tick(5)
    assert not limited(rig)


# Former leaders


@pytest.mark.parametrize("rate", [1e3, None])
def test_a_former_leader_neither_limits_nor_lifts(rig: Rig, rate: float | None) -> None:
    rig.ask(Activate("a", 20e3, epoch=5, sequence=1))
    rig.ask(Limit("a", 30e3, epoch=5))
    assert rig.refused(Limit("a", rate, epoch=4)).code == "stale_epoch"
    assert limited(rig) == {"a.0": 30e3}
    rig.restart()
    rig.tick(1)
    assert rig.refused(Limit("a", 1e3, epoch=4)).code == "stale_epoch"


def test_an_operator_needs_no_epoch(rig: Rig) -> None:
    rig.ask(Activate("a", 20e3, epoch=5, sequence=1))
    rig.ask(Limit("a", 30e3))
    assert limited(rig) == {"a.0": 30e3}


# What they drop


def dropping(rig: Rig, packets: int, periods: int = 1) -> None:
    """Let periods pass in which the limit of a.0 drops so many packets each."""
    for _ in range(periods):
        rig.limiter.drops["a.0"] = rig.limiter.drops.get("a.0", 0) + packets
        rig.tick(1)


def test_what_a_limit_drops_was_offered(rig: Rig) -> None:
    rig.ask(Limit("a", 30e3))
    dropping(rig, 70_000, 2)
    assert rig.report("a").offered_pps == pytest.approx(FLOOD + 70e3)
    dropping(rig, 0)
    assert rig.report("a").offered_pps == pytest.approx(FLOOD)
    assert rig.report("b").offered_pps == pytest.approx(FLOOD)


def test_the_loop_is_told_what_reached_the_router(rig: Rig) -> None:
    """Else it would take a router that forwards all that it gets for one that is held back."""
    rig.hold("a", 20e3)
    rig.ask(Limit("a", 30e3))
    dropping(rig, 900_000, 20)
    assert rig.holds("a", 20e3)
    sample = rig.manager.routers["a"].sample
    assert sample is not None
    assert sample.offered == pytest.approx(FLOOD)


def test_in_the_first_period_of_a_limit_it_is_not_known(rig: Rig) -> None:
    rig.ask(Limit("a", 30e3))
    rig.limiter.drops["a.0"] = 1_000_000  # of a limit that was there before, for all one knows
    rig.tick(1)
    assert rig.report("a").offered_pps is None
    rig.tick(1)
    assert rig.report("a").offered_pps == pytest.approx(FLOOD)


def test_while_it_cannot_be_read_it_is_not_known(rig: Rig) -> None:
    rig.ask(Limit("a", 30e3))
    dropping(rig, 70_000, 2)
    rig.limiter.error = explain("its qdiscs", errno.ENOBUFS)
    dropping(rig, 70_000)
    assert rig.report("a").offered_pps is None
    assert rig.report("b").offered_pps == pytest.approx(FLOOD)
    rig.limiter.error = None
    dropping(rig, 70_000, 2)
    assert rig.report("a").offered_pps == pytest.approx(FLOOD + 70e3)


def test_while_somebody_has_taken_the_limit_away_it_is_not_known(rig: Rig) -> None:
    rig.ask(Limit("a", 30e3))
    rig.ask(Limit("b", 30e3))
    dropping(rig, 70_000, 2)
    limited(rig).pop("a.0")
    rig.tick(1)
    assert rig.report("a").offered_pps is None
    assert rig.report("b").offered_pps == pytest.approx(FLOOD)


def see(rig: Rig, interfaces: tuple[str, ...]) -> None:
    """Let a period pass in which router a has these interfaces."""
    rig.clock.sleep(PERIOD)
    rig.manager.tick({"a": Reading(FLOOD, FLOOD, interfaces)}, rig.clock.now())


@pytest.mark.parametrize(
    ("before", "after"),
    [(("a.0",), ("a.0", "a.1")), (("a.0", "a.1"), ("a.0",))],
    ids=["one more", "one less"],
)
def test_interfaces_that_come_or_go_hide_no_drops_of_the_others(
    rig: Rig, before: tuple[str, ...], after: tuple[str, ...]
) -> None:
    """The limit is on those that were there when it was set."""
    see(rig, before)
    rig.ask(Limit("a", 30e3))
    if "a.1" not in after:
        limited(rig).pop("a.1")  # the kernel removes it with the interface
    see(rig, after)
    see(rig, after)  # one that came was limited in the period before
    rig.limiter.drops["a.0"] = 70_000
    see(rig, after)
    assert rig.report("a").offered_pps == pytest.approx(FLOOD + 70e3)


def test_after_a_limit_only_what_comes_counts(rig: Rig) -> None:
    rig.ask(Limit("a", 30e3))
    dropping(rig, 70_000, 2)
    rig.ask(Limit("a", None))
    rig.tick(1)
    assert rig.report("a").offered_pps == pytest.approx(FLOOD)


def test_with_no_limit_nothing_is_asked_of_the_kernel(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[list[str]] = []
    monkeypatch.setattr(rig.limiter, "dropped", lambda names: asked.append(sorted(names)) or {})
    rig.tick(5)
    assert not asked
    rig.ask(Limit("a", 30e3))
    rig.ask(Limit("b", 30e3))
    rig.tick(5)
    assert asked == [["a.0", "b.0"]] * 5


def test_at_its_own_end_a_routers_drops_were_sent_by_it(tmp_path: Path) -> None:
    inner = plan("a")
    object.__setattr__(inner, "binding", Binding(("a.0",), side=Side.ROUTER))
    rig = Rig(tmp_path, {"a": inner})
    rig.tick(2)
    before = rig.report("a").offered_pps
    rig.ask(Limit("a", 30e3))
    dropping(rig, 70_000, 2)
    assert rig.report("a").offered_pps == pytest.approx(before)


def test_a_blind_period_knows_of_no_offered_load(rig: Rig) -> None:
    rig.ask(Limit("a", 30e3))
    dropping(rig, 70_000, 2)
    rig.blind = True
    dropping(rig, 70_000)
    assert rig.report("a").offered_pps is None


@pytest.mark.parametrize(
    ("old", "new", "passed"),
    [(5, 9, 4), (5, 5, 0), (2**32 - 2, 3, 5), (2**31, 100, 100), (900, 0, 0)],
    ids=["risen", "still", "wrapped", "begun anew", "begun anew at nothing"],
)
def test_a_count_that_fell_has_wrapped_or_begun_anew(old: int, new: int, passed: int) -> None:
    assert _passed(old, new, 1.0) == passed


@pytest.mark.parametrize(("new", "passed"), [(29_999_999, 30_000_000), (30_000_000, 30_000_000)])
def test_in_two_seconds_a_count_wraps_with_up_to_30_million_packets(new: int, passed: int) -> None:
    """From the largest count on; with one packet more it has started from 0."""
    assert _passed(2**32 - 1, new, 2.0) == passed


# Durable first


def _full(*_: object) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize("rate", [30e3, 0.5])
def test_on_a_full_disk_a_limit_is_refused(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, rate: float
) -> None:
    """A daemon that starts after a crash would not know what to lift."""
    with monkeypatch.context() as disk:
        disk.setattr(journal_module, "_write_durably", _full)
        refusal = rig.refused(Limit("a", rate))
        assert (refusal.code, refusal.field) == ("journal", "vr")
        assert "No space left" in refusal.problem
        assert not limited(rig)
        assert rig.report("a").limit_pps is None
        rig.tick(2)
        assert rig.report("a").offered_pps == FLOOD
    rig.ask(Limit("a", rate))
    assert limited(rig) == {"a.0": rate}
    assert rig.journal.ledger.limits == {"a": ("a.0",)}


def test_the_journal_knows_of_a_limit_before_the_kernel_does(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = []
    limit = rig.limiter.limit

    def limiting(interface: str, rate: PacketsPerSecond) -> None:
        known.append(rig.journal.ledger.limits.get("a"))
        limit(interface, rate)

    monkeypatch.setattr(rig.limiter, "limit", limiting)
    rig.ask(Limit("a", 30e3))
    assert known == [("a.0",)]


def test_on_a_full_disk_a_limit_is_lifted_all_the_same(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig.ask(Limit("a", 30e3))
    monkeypatch.setattr(journal_module, "_write_durably", _full)
    rig.ask(Limit("a", None))
    assert not limited(rig)


def test_a_lift_that_fails_is_said(rig: Rig) -> None:
    rig.ask(Limit("a", 30e3))
    rig.limiter.error = Transient("a.0", "busy")
    assert rig.refused(Limit("a", None)).code == "not_lifted"


def test_a_limit_of_the_present_epoch_is_taken(rig: Rig) -> None:
    rig.ask(Activate("a", 20e3, epoch=5, sequence=1))
    for epoch in (5, 6):
        rig.ask(Limit("a", 1e3 * epoch, epoch=epoch))
        assert limited(rig) == {"a.0": 1e3 * epoch}
