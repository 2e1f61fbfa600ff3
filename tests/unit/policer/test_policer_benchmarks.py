"""What the policer's benchmarks make of what they measure, on cases with a known answer."""

import json

import pytest

from benchmarks.policer import history
from benchmarks.policer.reaction import restored
from benchmarks.policer.scale import quantile
from benchmarks.policer.sharing import Price
from policer.decide.round import LEEWAY


def test_a_host_of_the_paper_s_proportions_collapses_as_the_paper_s_did() -> None:
    price = Price(arrive_us=0.0, enter_us=4.0, leave_us=6.0)
    assert price.collapsed(share=0.2) == pytest.approx(0.68)


def test_a_limiter_saves_all_but_the_leeway_and_what_comes_before_it() -> None:
    nothing_before = Price(arrive_us=0.0, enter_us=4.0, leave_us=6.0)
    all_before = Price(arrive_us=4.0, enter_us=0.0, leave_us=6.0)
    lost = (LEEWAY - 1) * 0.2 * 0.4
    assert nothing_before.limited(share=0.2) == pytest.approx(1 - lost)
    assert all_before.limited(share=0.2) == pytest.approx(all_before.collapsed(share=0.2))


def test_no_flood_leaves_nothing_to_lose() -> None:
    price = Price(arrive_us=1.0, enter_us=4.0, leave_us=6.0)
    assert price.collapsed(share=1.0) == pytest.approx(1.0)


def test_restored_is_the_first_of_five_seconds_that_are_right_in_the_mean() -> None:
    values = [1.0, 0.4, 0.5, 0.94, 0.97, 0.96, 0.95, 0.96, 0.99]
    samples = [(101.0 + second, value) for second, value in enumerate(values)]
    assert restored(samples, at=100.0) == 4.0
    assert restored(samples[:6], at=100.0) is None
    assert restored([(101.0 + n, 1.0) for n in range(5)], at=100.0) == 0.0


def test_a_quantile_is_a_value_that_was_seen() -> None:
    assert quantile([3.0, 1.0, 2.0], 0.5) == 2.0
    assert quantile([1.0], 0.99) == 1.0
    assert quantile(list(map(float, range(100))), 0.99) == 99.0


def test_the_cost_of_a_history_can_be_read_by_a_program(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = "history --hosts 1 --routers 2 --minutes 1 --json"
    monkeypatch.setattr("sys.argv", words.split())
    history.main()
    cost = json.loads(capsys.readouterr().out)
    assert (cost["hosts"], cost["routers"], cost["minutes"]) == (1, 2, 1)
    assert cost["hour_bytes"] == 360 * cost["chunk_bytes"]["1"] > 0
    assert cost["month_bytes"] is None  # a minute has no whole chunk of minutes
