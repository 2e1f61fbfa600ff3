"""Quotas and periods of CFS, by hand: on both sides of every bound."""

import pytest

from common.units import CapFraction
from xtc.kernel.quota import (
    Quota,
    controller_mount,
    format_cpu_max,
    ideal_period_us,
    parse_cpu_max,
    parse_cpu_stat,
    parse_v1,
    quota_for,
    v1_writes,
)


@pytest.mark.parametrize(
    ("cap", "period_us"),
    [
        (256.0, 10_000),
        (0.21, 10_000),
        (0.20, 10_000),
        (0.16, 12_500),
        (0.10, 20_000),
        (0.04, 50_000),
        (0.02, 100_000),
        (0.016, 100_000),
        (0.01, 100_000),
        (0.008, 125_000),
        (0.007, 142_858),
        (0.002, 500_000),
        (0.001, 1_000_000),
        (0.0005, 1_000_000),
    ],
)
def test_a_quota_aims_at_2_ms_in_10_to_100_ms(cap: float, period_us: int) -> None:
    assert ideal_period_us(CapFraction(cap)) == period_us


@pytest.mark.parametrize(
    ("cap", "current_us", "period_us"),
    [
        (0.05, 19_999, 40_000),
        (0.05, 20_000, 20_000),
        (0.05, 33_000, 33_000),
        (0.05, 80_000, 80_000),
        (0.05, 80_001, 40_000),
        (0.20, 9_999, 10_000),  # legal, and near the ideal, but too short to be held well
        (0.20, 20_000, 20_000),
        (0.20, 20_001, 10_000),
        (0.02, 50_000, 50_000),  # a quota of 1 ms, the kernel's smallest
        (0.012, 83_333, 100_000),
        (0.012, 83_334, 83_334),
        (0.0015, 1_000_000, 1_000_000),
        (0.0015, 1_000_001, 666_667),  # longer than the kernel takes
    ],
)
def test_a_period_is_kept_while_it_is_legal_and_within_twice_the_ideal(
    cap: float, current_us: int, period_us: int
) -> None:
    quota = quota_for(CapFraction(cap), current_us)
    assert quota == Quota(round(cap * period_us), period_us)


def test_a_cap_that_no_quota_expresses_gives_the_smallest() -> None:
    assert quota_for(CapFraction(1e-6), 100_000) == Quota(1_000, 1_000_000)


@pytest.mark.parametrize(
    ("old", "new", "writes"),
    [
        (Quota(2, 10), Quota(2, 10), []),
        (Quota(2, 10), Quota(3, 10), [("quota", 3)]),
        (Quota(2, 10), Quota(2, 20), [("period", 20)]),
        (Quota(2, 10), Quota(2, 5), [("period", 5)]),
        (Quota(2, 10), Quota(3, 20), [("period", 20), ("quota", 3)]),
        (Quota(3, 20), Quota(2, 10), [("quota", 2), ("period", 10)]),
        (Quota(2, 10), Quota(None, 20), [("quota", -1), ("period", 20)]),
        (Quota(2, 20), Quota(None, 10), [("quota", -1), ("period", 10)]),
        (Quota(None, 10), Quota(2, 20), [("period", 20), ("quota", 2)]),
        (Quota(None, 20), Quota(2, 10), [("quota", 2), ("period", 10)]),
        (Quota(None, 10), Quota(None, 20), [("period", 20)]),
    ],
)
def test_the_order_of_v1_writes(old: Quota, new: Quota, writes: list[tuple[str, int]]) -> None:
    expected = [(f"cpu.cfs_{name}_us", value) for name, value in writes]
    assert list(v1_writes(old, new)) == expected


@pytest.mark.parametrize(
    ("text", "quota"),
    [("2000 10000\n", Quota(2000, 10000)), ("max 100000\n", Quota(None, 100000))],
)
def test_cpu_max(text: str, quota: Quota) -> None:
    assert parse_cpu_max(text) == quota
    assert format_cpu_max(quota) == text


@pytest.mark.parametrize(
    ("texts", "quota", "cap"),
    [
        (("2000\n", "10000\n"), Quota(2000, 10000), 0.2),
        (("1\n", "10000\n"), Quota(1, 10000), 1e-4),
        (("-1\n", "100000\n"), Quota(None, 100000), None),
    ],
)
def test_v1_files(texts: tuple[str, str], quota: Quota, cap: float | None) -> None:
    assert parse_v1(*texts) == quota
    assert quota.cap == cap


def test_counters_of_cpu_stat() -> None:
    text = "nr_periods 7\nnr_throttled 3\n"
    assert parse_cpu_stat(text) == {"nr_periods": 7, "nr_throttled": 3}


@pytest.mark.parametrize("text", ["nr_periods\n", "nr_periods x\n", "nr periods 7\n"])
def test_what_is_no_cpu_stat_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"shorter|invalid"):
        parse_cpu_stat(text)


def test_a_controller_is_found_where_v1_mounts_it() -> None:
    mounts = [
        "cgroup2 /sys/fs/cgroup/cpu2 cgroup2 rw,cpu 0 0",
        "cgroup /sys/fs/cgroup/cpuset cgroup rw,cpuset 0 0",
        "cgroup /sys/fs/cgroup/cpu cgroup rw,cpu,cpuacct 0 0",
    ]
    assert controller_mount(mounts, "cpu") == "/sys/fs/cgroup/cpu"
    assert controller_mount(mounts, "memory") is None
