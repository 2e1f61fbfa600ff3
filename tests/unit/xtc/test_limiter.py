"""What of the limiter is pure: the token bucket's numbers, and refusals."""

import errno
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.units import PacketsPerSecond
from xtc.errors import Denied, Gone, Permanent, Transient, Unsupported
from xtc.shield.tbf import Limiter, _token_bucket, explain

rates = st.floats(min_value=1.0, max_value=1e9).map(PacketsPerSecond)


def parameters(rate: float, frame: int = 1514) -> dict[str, Any]:
    request = _token_bucket(5, PacketsPerSecond(rate), frame)
    options = dict(request["attrs"])["TCA_OPTIONS"]
    bucket: dict[str, Any] = dict(options["attrs"])["TCA_TBF_PARMS"]
    return bucket


@given(rates, st.integers(min_value=82, max_value=65_550))
def test_every_rate_fits_the_kernels_fields(rate: PacketsPerSecond, frame: int) -> None:
    bucket = parameters(rate, frame)
    assert 1 <= bucket["rate"] < 2**32
    assert 1 <= bucket["rate_mpu"] < 2**16
    assert 0 < bucket["buffer"] < 2**32
    assert 0 < bucket["limit"] < 2**32


@given(rates)
def test_the_rate_is_in_packets_whatever_their_size(rate: PacketsPerSecond) -> None:
    bucket = parameters(rate)
    assert bucket["rate"] / bucket["rate_mpu"] == pytest.approx(
        rate, rel=0.3 if rate > 1e8 else 1e-3
    )


def test_a_frame_costs_as_much_as_the_largest_one() -> None:
    assert parameters(5_000)["rate_mpu"] == 1514
    assert parameters(5_000)["rate"] == 5_000 * 1514


@pytest.mark.parametrize("rate", [float("nan"), 0.0, -5.0])
def test_what_is_no_rate_is_refused_before_anything_is_touched(rate: float) -> None:
    with pytest.raises(Permanent, match="rate"):
        Limiter().limit("v0", PacketsPerSecond(rate))


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (errno.ENODEV, Gone),
        (errno.EPERM, Denied),
        (errno.ENOENT, Unsupported),
        (errno.ENOBUFS, Transient),
    ],
)
def test_each_refusal_has_its_kind(code: int, kind: type[Exception]) -> None:
    assert type(explain("v0", code)) is kind
