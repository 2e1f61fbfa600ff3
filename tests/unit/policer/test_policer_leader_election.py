"""Who leads, as the service knows it: how long it is sure, what it shows, when it gives it back."""

import asyncio

import pytest

from policer.errors import StoreBusy
from policer.fleet.live import Fleet, Leadership
from policer.service.leadership import PATIENCE_S, LeaderElection

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    """Run tests of coroutines by asyncio."""
    return "asyncio"


class Rig:
    """A lead over a lock that says what a test likes, as long after it was asked as it likes."""

    def __init__(self) -> None:
        self.now = 100.0
        self.takes_s = 0.0
        self.answer: bool | StoreBusy = True
        self.since = 7
        self.released = 0
        self.fleet = Fleet()
        self.lead = LeaderElection(self, self.fleet, "me", lambda: self.now)

    def acquire(self, above: int = 0) -> int | None:
        return max(7, above + 1) if self._asked() else None

    def still(self) -> bool:
        return self._asked()

    def holder(self) -> tuple[str, int]:
        return "other", 6

    def release(self) -> None:
        assert not self.fleet.leadership.leading  # nobody orders when another may
        self.released += 1

    def _asked(self) -> bool:
        self.now += self.takes_s
        if isinstance(self.answer, StoreBusy):
            raise self.answer
        return self.answer

    @property
    def leads(self) -> bool:
        return self.fleet.leadership.leading


@pytest.fixture
def rig() -> Rig:
    return Rig()


async def test_a_lead_that_is_taken_says_since_when_nobody_else_led(rig: Rig) -> None:
    rig.since = 5
    await rig.lead.look()
    assert rig.fleet.leadership == Leadership(leading=True, epoch=7, holder="me", since=5)


async def test_a_leader_goes_above_an_epoch_that_a_host_obeys(rig: Rig) -> None:
    await rig.lead.look()
    rig.lead.raise_above(900)
    await rig.lead.look()
    assert rig.fleet.leadership == Leadership(leading=True, epoch=901, holder="me", since=7)
    await rig.lead.look()
    assert rig.fleet.leadership.epoch == 901  # once


async def test_who_is_not_sure_to_lead_raises_nothing(rig: Rig) -> None:
    await rig.lead.look()
    rig.lead.raise_above(900)
    rig.answer = False
    await rig.lead.look()
    assert rig.fleet.leadership == Leadership()


async def test_a_database_that_answers_again_is_no_problem_any_more(rig: Rig) -> None:
    await rig.lead.look()
    rig.answer = StoreBusy("locked")
    await rig.lead.look()
    assert (rig.leads, rig.fleet.leadership.problem) == (True, "locked")
    rig.answer = True
    await rig.lead.look()
    assert rig.fleet.leadership == Leadership(leading=True, epoch=7, holder="me", since=7)


async def test_a_leader_is_sure_from_when_it_asked_and_not_from_the_answer(rig: Rig) -> None:
    rig.takes_s = 2.5
    await rig.lead.look()
    assert rig.leads
    rig.takes_s, rig.answer = 0.0, StoreBusy("locked")
    rig.now = 100.0 + PATIENCE_S - 0.01
    await rig.lead.look()
    assert rig.leads
    rig.now = 100.0 + PATIENCE_S
    await rig.lead.look()
    assert not rig.leads


async def test_what_is_left_of_the_three_seconds_is_all_that_a_silent_database_gets(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[float | None] = []
    timeout = asyncio.timeout

    def noted(delay: float | None) -> asyncio.Timeout:
        waits.append(delay)
        return timeout(delay)

    monkeypatch.setattr(asyncio, "timeout", noted)
    await rig.lead.look()
    rig.now += 2.0
    await rig.lead.look()
    rig.answer = StoreBusy("locked")
    rig.now += 2.75
    await rig.lead.look()
    assert waits == [PATIENCE_S, PATIENCE_S - 2.0, PATIENCE_S - 2.75]


async def test_a_leader_stops_three_seconds_after_it_was_sure_and_no_later(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It looks again at that moment, and not a whole second after the last look."""

    async def sleep(seconds: float) -> None:
        assert seconds > 0
        rig.now += seconds
        if not rig.leads:
            raise asyncio.CancelledError

    await rig.lead.look()
    rig.answer, rig.takes_s = StoreBusy("locked"), 0.7
    monkeypatch.setattr(asyncio, "sleep", sleep)
    ended: list[float] = []
    doubt = rig.lead._doubt

    def noted(problem: str) -> None:
        doubt(problem)
        ended.extend([rig.now] if not rig.leads and not ended else [])

    monkeypatch.setattr(rig.lead, "_doubt", noted)
    with pytest.raises(asyncio.CancelledError):
        await rig.lead.run()
    assert ended == [pytest.approx(100.0 + PATIENCE_S)]


async def test_the_lead_is_given_back_when_no_order_can_follow(rig: Rig) -> None:
    await rig.lead.look()
    await rig.lead.release()
    assert rig.released == 1
    assert rig.fleet.leadership == Leadership()


async def test_a_lead_that_is_cancelled_is_kept_until_it_is_given_back(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def cancelled(_: float) -> None:
        raise asyncio.CancelledError

    monkeypatch.setattr(asyncio, "sleep", cancelled)
    with pytest.raises(asyncio.CancelledError):
        await rig.lead.run()
    assert (rig.leads, rig.released) == (True, 0)
