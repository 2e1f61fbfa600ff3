"""Leases, for any order of messages: epochs never fall, and nothing repeated is obeyed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.units import Seconds
from xtc.errors import Refused
from xtc.lease import Kind, Lease, check_successor

leases = st.builds(
    Lease,
    setpoint_pps=st.floats(1, 1e9),
    epoch=st.integers(0, 4),
    sequence=st.integers(0, 4),
    expires_at=st.none() | st.floats(0, 50),
    kind=st.sampled_from(Kind),
)


@given(offers=st.lists(leases, max_size=20))
def test_the_accepted_order_only_ever_rises(offers: list[Lease]) -> None:
    current: Lease | None = None
    highest, accepted = 0, []
    for instant, offer in enumerate(offers):
        try:
            check_successor(current, offer, Seconds(float(instant)), highest_epoch=highest)
        except Refused:
            continue
        current, highest = offer, max(highest, offer.epoch)
        accepted.append((offer.epoch, offer.sequence))
    ordered = [pair for pair in accepted if pair[0] > 0]
    assert [epoch for epoch, _ in accepted] == sorted(epoch for epoch, _ in accepted)
    assert len(set(ordered)) == len(ordered)
    assert ordered == sorted(ordered)


@given(offer=leases, sentence=st.floats(1, 100), passed=st.floats(0, 99))
def test_no_ordinary_lease_lifts_a_punishment(offer: Lease, sentence: float, passed: float) -> None:
    punished = Lease(1e3, expires_at=sentence, kind=Kind.PUNISHMENT)
    now = Seconds(min(passed, sentence * 0.999))
    if offer.kind is Kind.PUNISHMENT:
        check_successor(punished, offer, now, highest_epoch=0)
        return
    with pytest.raises(Refused) as caught:
        check_successor(punished, offer, now, highest_epoch=0)
    assert caught.value.code == "punished"
