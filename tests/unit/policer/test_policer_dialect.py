"""Setpoints in bits/s and daemons that do not take them: held in packets/s all the same, and shown.

There are daemons that know neither bits nor bursts, that know bits alone, and that know both but
have a router whose law knows packets alone.
"""

from collections.abc import Callable, Sequence

import pytest
from hostloop_rig import HostRig, Message
from policer_plant import held_report, report_of

from policer.contracts.contract import Contract
from policer.decide.state import Order
from policer.errors import LinkRefused
from policer.link.connection import AGAIN_S
from policer.service import host_loop as hostloop
from xtc.wire import Activate, Refusal, Report

pytestmark = pytest.mark.anyio

LINE, BURSTY = Contract(ceiling_bps=80e6), Contract(ceiling_bps=80e6, burst=1e3)
PLAIN = Contract(ceiling_pps=5e3)
PACKETS = 10e3
SIZE = 1000.0
"""Of packets: a ceiling is 10,000 of them a second."""


@pytest.fixture
def anyio_backend() -> str:
    """Run tests of coroutines by asyncio."""
    return "asyncio"


@pytest.fixture(autouse=True)
def _no_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    """Time is the rig's: nothing is to be waited for between two rounds."""
    monkeypatch.setattr(hostloop, "SHORTEST_S", 0.0)


def fussy(*fields: str) -> Callable[[Sequence[Message]], None]:
    """Return how a daemon reads that does not know some fields of a lease."""

    def unread(messages: Sequence[Message]) -> None:
        for message in messages:
            for name in fields:
                if isinstance(message, Activate) and getattr(message, name) is not None:
                    raise LinkRefused("bad_message", "$", f"unknown field `{name}`")

    return unread


def no_bits(message: Message) -> Refusal | None:
    """Refuse as a daemon does for a router whose law is one of the paper's."""
    if isinstance(message, Activate) and message.setpoint_bps is not None and message.vr == "a":
        return Refusal("unit", "setpoint_bps", "law gains holds no bits/s", "give packets/s")
    return None


def report(rig: HostRig, vr: str) -> Report:
    """Return the report of a router that is sent more than its ceiling, and stands as ordered."""
    order = rig.live.orders.get(vr, Order())
    fields: dict[str, object] = {"offered_pps": 12e3, "throughput_bps": 96e6}
    if not order.holds:
        return report_of(vr, throughput_pps=12e3, **fields)
    pps = order.setpoint_pps or (order.setpoint_bps or 0.0) / 8 / SIZE
    held = {"throughput_pps": pps, "throughput_bps": 8 * SIZE * pps}
    units = {"setpoint_pps": order.setpoint_pps, "setpoint_bps": order.setpoint_bps}
    return held_report(vr, pps, **(fields | held | units))


async def seconds(rig: HostRig, number: int) -> None:
    for _ in range(number):
        await rig.round(report(rig, "a"), report(rig, "b"))


def leases(rig: HostRig, vr: str = "a") -> list[Activate]:
    return [m for m in rig.daemon.asked if isinstance(m, Activate) and m.vr == vr]


async def test_a_daemon_that_knows_bits_is_told_them() -> None:
    rig = HostRig({"a": BURSTY, "b": PLAIN})
    await seconds(rig, 20)
    assert {(m.setpoint_pps, m.setpoint_bps, m.burst) for m in leases(rig)} == {(None, 80e6, 2.8e6)}
    assert rig.live.refusals == {}
    assert len(leases(rig)) == 4  # three renewals in a lease's length


@pytest.mark.parametrize("contract", [LINE, BURSTY])
@pytest.mark.parametrize("unknown", [("setpoint_bps",), ("burst", "setpoint_bps")])
async def test_one_that_does_not_holds_its_routers_in_packets_and_is_shown(
    contract: Contract, unknown: tuple[str, ...]
) -> None:
    rig = HostRig({"a": contract, "b": PLAIN})
    rig.daemon.unread = fussy(*unknown)
    await seconds(rig, 30)
    assert {m.setpoint_bps for m in leases(rig)} == {None}
    assert leases(rig)[-1].setpoint_pps == pytest.approx(PACKETS)
    assert leases(rig, "b")[-1].setpoint_pps == 5e3
    assert "update xtc on this host" in rig.live.refusals["a"]
    assert rig.live.link_problem == ""
    assert rig.daemon.unheard <= 2  # neither is tried with each message


async def test_routers_in_packets_are_told_in_the_round_in_which_bits_are_refused() -> None:
    rig = HostRig({"a": LINE, "b": PLAIN})
    rig.daemon.unread = fussy("setpoint_bps")
    await seconds(rig, 1)
    assert [m.vr for m in rig.daemon.asked] == ["b"]
    await seconds(rig, 1)
    assert leases(rig)[0].setpoint_pps == pytest.approx(PACKETS)


async def test_a_daemon_that_knows_bits_and_no_bursts_is_told_bits() -> None:
    rig = HostRig({"a": BURSTY, "b": PLAIN})
    rig.daemon.unread = fussy("burst")
    await seconds(rig, 20)
    assert {(m.setpoint_bps, m.burst) for m in leases(rig)} == {(80e6, None)}
    assert "0.2 s of its setpoint" in rig.live.refusals["a"]


async def test_messages_that_go_again_without_bits_have_numbers_of_their_own() -> None:
    rig = HostRig({"a": BURSTY, "b": PLAIN})
    rig.daemon.unread = fussy("burst", "setpoint_bps")
    await seconds(rig, 20)
    numbers = [m.sequence for m in rig.daemon.asked if isinstance(m, Activate)]
    assert numbers == sorted(set(numbers))
    assert min(numbers) > 2


async def test_a_router_whose_law_knows_packets_alone_is_held_in_packets() -> None:
    rig = HostRig({"a": LINE, "b": LINE})
    rig.daemon.refuse = no_bits
    await seconds(rig, 30)
    assert leases(rig)[0].setpoint_bps == 80e6
    assert {m.setpoint_bps for m in leases(rig)[1:]} == {None}
    assert leases(rig)[-1].setpoint_pps == pytest.approx(PACKETS)
    assert {m.setpoint_bps for m in leases(rig, "b")} == {80e6}
    assert rig.live.refusals.keys() == {"a"}
    assert "law gains holds no bits/s; the router is held in packets/s" in rig.live.refusals["a"]


async def test_a_router_that_is_held_in_packets_climbs_its_ladder_as_any_other() -> None:
    """What was left out is no refusal of a step."""
    rig = HostRig({"a": LINE, "b": LINE})
    rig.daemon.refuse = no_bits
    await seconds(rig, 5)
    assert rig.live.refusals.keys() == {"a"}
    assert rig.loop._refused == frozenset()


@pytest.mark.parametrize("again", ["restarted", "later"])
async def test_bits_are_tried_again_on_a_new_daemon_and_after_ten_minutes(again: str) -> None:
    rig = HostRig({"a": LINE, "b": PLAIN})
    rig.daemon.unread = fussy("setpoint_bps")
    await seconds(rig, 5)
    rig.daemon.unread = lambda _: None
    if again == "restarted":
        rig.ticks = iter(range(1000))
    else:
        rig.now += AGAIN_S
    await seconds(rig, 8)
    assert leases(rig)[-1].setpoint_bps == 80e6
    assert rig.live.refusals == {}


async def test_a_message_that_is_refused_whatever_is_in_it_is_a_trouble_of_the_link() -> None:
    rig = HostRig({"a": LINE, "b": PLAIN})

    def deaf(_: Sequence[Message]) -> None:
        raise LinkRefused("bad_message", "$", "no word of it")

    rig.daemon.unread = deaf
    await seconds(rig, 5)
    assert rig.live.link_problem == "$: no word of it"


async def test_a_daemon_that_refuses_at_length_is_not_quoted_at_length() -> None:
    rig = HostRig({"a": LINE, "b": LINE})
    rig.daemon.refuse = lambda m: (
        Refusal("unit", "setpoint_bps", 9000 * "x") if isinstance(m, Activate) else None
    )
    await seconds(rig, 4)
    kept = rig.loop._dialect._in_packets
    assert all(len(why.problem) < 500 for _, why in kept.values())
