"""Leases: which one may follow which."""

import math

import msgspec
import pytest

from common.setpoint import Setpoint, Unit
from common.units import Seconds
from xtc.errors import Refused
from xtc.lease import Kind, Lease, check_successor

NOW = Seconds(100.0)
PUNISHMENT = Lease(1e3, expires_at=160.0, kind=Kind.PUNISHMENT)


def refusal(current: Lease | None, offer: Lease, *, highest_epoch: int = 0) -> str:
    with pytest.raises(Refused) as caught:
        check_successor(current, offer, NOW, highest_epoch=highest_epoch)
    return caught.value.code


def test_a_lease_ends_at_its_instant_and_not_before() -> None:
    lease = Lease(1e3, expires_at=160.0)
    assert not lease.expired(Seconds(159.999))
    assert lease.expired(Seconds(160.0))
    assert lease.remaining(NOW) == 60
    assert lease.remaining(Seconds(200.0)) == 0


def test_a_lease_without_end_never_ends() -> None:
    lease = Lease(1e3)
    assert not lease.expired(Seconds(1e12))
    assert lease.remaining(NOW) == math.inf
    assert lease.ended().expired(Seconds(0.0))


def test_a_lease_says_by_itself_only_what_it_was_given() -> None:
    lease = Lease(1e3)
    assert (lease.epoch, lease.sequence) == (0, 0)
    assert (lease.expires_at, lease.kind, lease.configured) == (None, Kind.NORMAL, False)


def test_a_lower_epoch_is_refused_even_with_no_lease_in_force() -> None:
    assert refusal(None, Lease(1e3, epoch=4), highest_epoch=5) == "stale_epoch"


@pytest.mark.parametrize("epoch", [1, 5])
@pytest.mark.parametrize("sequence", [6, 7])
def test_what_came_before_in_the_same_epoch_is_refused(sequence: int, epoch: int) -> None:
    current = Lease(1e3, epoch=epoch, sequence=7)
    assert refusal(current, Lease(2e3, epoch=epoch, sequence=sequence)) == "stale_sequence"


def test_the_next_sequence_and_the_next_epoch_are_taken() -> None:
    current = Lease(1e3, epoch=5, sequence=7)
    check_successor(current, Lease(2e3, epoch=5, sequence=8), NOW, highest_epoch=5)
    check_successor(current, Lease(2e3, epoch=6, sequence=0), NOW, highest_epoch=5)


def test_operators_without_epochs_need_no_sequence() -> None:
    check_successor(Lease(1e3), Lease(2e3), NOW, highest_epoch=0)


def test_only_a_punishment_follows_a_punishment_that_runs() -> None:
    assert refusal(PUNISHMENT, Lease(9e3)) == "punished"
    check_successor(PUNISHMENT, Lease(2e3, kind=Kind.PUNISHMENT), NOW, highest_epoch=0)


def test_a_punishment_that_is_over_stands_in_nobodys_way() -> None:
    check_successor(PUNISHMENT, Lease(9e3), Seconds(160.0), highest_epoch=0)


def test_falling_back_to_the_configuration_makes_no_old_order_new() -> None:
    fallen = Lease(1e3, epoch=5, sequence=7, expires_at=1.0).configured_as(Setpoint(9e3))
    assert (fallen.setpoint, fallen.configured, fallen.expires_at) == (Setpoint(9e3), True, None)
    assert refusal(fallen, Lease(1e3, epoch=5, sequence=7)) == "stale_sequence"


def test_a_lease_is_in_one_unit() -> None:
    packets, bits = Lease(2e4), Lease(setpoint_bps=5e7)
    assert (packets.unit, packets.target) == (Unit.PACKETS, 2e4)
    assert (bits.unit, bits.target) == (Unit.BITS, 5e4)  # kilobits
    assert (packets.setpoint, bits.setpoint) == (Setpoint(2e4), Setpoint(5e7, Unit.BITS))
    assert packets.setpoint != Lease(setpoint_bps=2e4).setpoint


@pytest.mark.parametrize("given", [{}, {"setpoint_pps": 2e4, "setpoint_bps": 5e7}])
def test_a_lease_in_no_unit_or_two_is_none(given: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="give setpoint_pps or setpoint_bps, and not both"):
        Lease(**given)


def test_what_an_older_daemon_wrote_of_a_lease_is_read_and_written_as_it_was() -> None:
    raw = (
        b'{"setpoint_pps":30000.0,"epoch":7,"sequence":2,"expires_at":null,"kind":"normal",'
        b'"configured":false}'
    )
    lease = msgspec.json.decode(raw, type=Lease)
    assert lease == Lease(3e4, epoch=7, sequence=2)
    assert msgspec.json.encode(lease) == raw
