"""Token buckets: so many at once, so many in the long run, and never too many of them."""

from policer.token_bucket import Buckets


def test_a_bucket_gives_its_burst_and_then_its_rate() -> None:
    buckets = Buckets(rate=0.5, burst=3.0)
    assert [buckets.wait(0.0, "a") for _ in range(4)] == [0.0, 0.0, 0.0, 2.0]
    assert buckets.wait(2.0, "a") == 0.0
    assert buckets.wait(2.0, "a") == 2.0
    assert buckets.wait(2.0, "b") == 0.0


def test_names_that_somebody_makes_up_fill_no_memory() -> None:
    buckets = Buckets(rate=1 / 600, burst=1.0, most=100)
    for number in range(10_000):
        buckets.wait(number * 1e-3, f"made up {number}")
    assert len(buckets._buckets) <= 100


def test_those_used_last_are_kept() -> None:
    buckets = Buckets(rate=1 / 600, burst=1.0, most=100)
    for number in range(1000):
        assert buckets.wait(float(number), f"made up {number}") == 0.0
        buckets.wait(float(number), "steady")
    assert buckets.wait(1000.0, "steady") > 0
    assert buckets.wait(1000.0, "made up 999") > 0


def test_full_buckets_are_forgotten_first() -> None:
    buckets = Buckets(rate=1.0, burst=1.0, most=10)
    for number in range(9):
        buckets.wait(0.0, f"old {number}")
    buckets.wait(5.0, "new")
    buckets.wait(5.0, "newer")
    assert set(buckets._buckets) == {"new", "newer"}
