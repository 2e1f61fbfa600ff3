"""The simpler tools: their parameters follow from the rate, and the XDP program compiles."""

import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.evaluation.simpler import realtime, tools
from benchmarks.evaluation.simpler.simpler import EXPERIMENT, POINTS


def test_a_tbf_has_the_rate_of_the_floods_packets_in_bits() -> None:
    words = tools.tbf_words(20e3)
    assert words[words.index("rate") + 1] == "10240000bit"
    assert int(words[words.index("burst") + 1]) == 12_800


@given(st.floats(0.1, 99.0))
def test_a_weight_gives_its_share_next_to_one_other_group(percent: float) -> None:
    weight = tools.weight_of(percent, 10_000)
    assert weight / (weight + 10_000) == pytest.approx(percent / 100, abs=2e-4)


def test_the_limit_of_packets_is_of_10_ms() -> None:
    words = tools.compile_words(20e3, Path("limit.o"))
    assert "-DLIMIT=200" in words
    assert "-DLIMIT=1" in tools.compile_words(3.0, Path("limit.o"))


def test_the_limit_compiles(tmp_path: Path) -> None:
    if shutil.which("clang") is None:
        pytest.skip("no clang")
    done = subprocess.run(
        tools.compile_words(20e3, tmp_path / "limit.o"), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "limit.o").stat().st_size > 0


def test_ours_is_measured_at_every_point() -> None:
    assert all("ours" in ways for ways in POINTS.values())
    assert EXPERIMENT.published == {}


@given(st.floats(0.1, 100.0), st.integers(10_000, 1_000_000))
def test_real_time_bandwidth_is_never_less_than_the_share(percent: float, period: int) -> None:
    runtime = realtime.runtime_us(percent, period)
    assert percent / 100 * period <= runtime < percent / 100 * period + 1
