"""The link with simulated hosts: it hears, asks, and is not deceived, blocked or drowned."""

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from fleet_rig import FleetKeys, FleetRig, lying
from link_rig import PATIENCE_S, REASON_S, Listener, listening

from policer.contracts.host import Host
from policer.errors import LinkError, LinkTimeout
from policer.link import Link
from policer.link.sockets import MAX_TELEMETRY
from policer.link.stream import GAP_S
from xtc.wire import MAX_BATCH, Activate, Change, Deactivate, Kind, Limit, Telemetry


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[FleetRig]:
    with FleetRig(tmp_path, hosts=2) as fleet:
        yield fleet


@pytest.fixture
def keys(tmp_path: Path) -> FleetKeys:
    return FleetKeys(tmp_path / "keys")


@pytest.fixture
def remote(tmp_path: Path, keys: FleetKeys) -> Iterator[FleetRig]:
    with FleetRig(tmp_path, keys=keys) as fleet:
        yield fleet


def leases(count: int, *vrs: str, first: int = 1) -> list[Change]:
    return [
        Activate(vr, 20e3, 1, first + number, 30.0, Kind.NORMAL)
        for number in range(count)
        for vr in vrs
    ]


# Hearing and asking


def test_a_host_is_heard_and_asked(rig: FleetRig) -> None:
    async def story() -> None:
        async with listening(rig["h0"].entry()) as one:
            await one.until(lambda: one.heard, rig.tick)
            assert [report.vr for report in one.heard[-1].routers] == ["a0", "a1"]
            assert await one.link.send(leases(1, "a0"), PATIENCE_S) == (None,)
            await one.until(lambda: one.heard[-1].routers[0].setpoint_pps == 20e3, rig.tick)
            assert not one.troubles

    asyncio.run(story())


def test_a_host_on_tcp_is_heard_and_asked_with_keys(remote: FleetRig, keys: FleetKeys) -> None:
    async def story() -> None:
        async with listening(remote["h0"].entry(), keys.policer) as one:
            await one.until(lambda: one.heard, remote.tick)
            assert await one.link.send(leases(1, "a0"), PATIENCE_S) == (None,)

    asyncio.run(story())


def test_outcomes_come_in_the_order_of_the_requests(rig: FleetRig) -> None:
    async def story() -> None:
        async with listening(rig["h0"].entry()) as one:
            wrong = Activate("nobody", 20e3, 1, 1)
            changes = [wrong, *leases(1, "a0"), Deactivate("nobody")]
            outcomes = await one.link.send(changes, PATIENCE_S)
            codes = [refusal and refusal.code for refusal in outcomes]
            assert codes == ["unknown_router", None, "unknown_router"]

    asyncio.run(story())


def test_more_than_a_message_holds_goes_in_several(rig: FleetRig) -> None:
    async def story() -> None:
        async with listening(rig["h0"].entry()) as one:
            outcomes = await one.link.send(leases(2 * MAX_BATCH + 1, "a0"), PATIENCE_S)
            assert outcomes == (None,) * (2 * MAX_BATCH + 1)

    asyncio.run(story())
    assert rig["h0"].messages == 3


def test_nothing_to_ask_is_not_asked(rig: FleetRig) -> None:
    async def story() -> None:
        async with listening(rig["h0"].entry()) as one:
            assert await one.link.send([]) == ()

    asyncio.run(story())
    assert rig["h0"].messages == 0


# Hosts that hang, die and come back


def test_a_host_that_hangs_keeps_nobody_else_waiting(rig: FleetRig) -> None:
    async def story() -> None:
        async with listening(rig["h0"].entry()) as hung, listening(rig["h1"].entry()) as other:
            await hung.until(lambda: hung.heard and other.heard, rig.tick)
            rig.do(lambda: setattr(rig["h0"], "frozen", True))
            waiting = asyncio.create_task(hung.link.send(leases(1, "a0"), 5.0))
            sending = asyncio.create_task(other.link.send(leases(1, "a0"), PATIENCE_S))
            first, _ = await asyncio.wait({waiting, sending}, return_when=asyncio.FIRST_COMPLETED)
            assert first == {sending}
            assert await sending == (None,)
            with pytest.raises(LinkTimeout, match="no answer within 5 s"):
                await waiting

    asyncio.run(story())


def test_an_answer_that_comes_too_late_is_not_taken_for_another(rig: FleetRig) -> None:
    async def story() -> None:
        async with listening(rig["h0"].entry()) as one:
            await one.until(lambda: one.heard, rig.tick)
            rig.do(lambda: setattr(rig["h0"], "frozen", True))
            with pytest.raises(LinkTimeout):
                await one.link.send([Deactivate("nobody")], 0.2)
            rig.do(lambda: setattr(rig["h0"], "frozen", False))
            assert await one.link.send(leases(1, "a0"), PATIENCE_S) == (None,)

    asyncio.run(story())
    assert rig["h0"].messages == 2


def test_an_order_for_a_host_that_is_away_does_not_reach_it_when_it_is_back(rig: FleetRig) -> None:
    async def story() -> None:
        rig.do(rig["h0"].kill)
        async with listening(rig["h0"].entry()) as one:
            with pytest.raises(LinkTimeout, match="no process listens there"):
                await one.link.send(leases(1, "a0"), REASON_S)
            rig.do(rig["h0"].revive)
            await one.until(lambda: one.heard, rig.tick)
            assert await one.link.send([Deactivate("a1")], PATIENCE_S) == (None,)
            assert not rig.do(lambda: rig["h0"].rig.report("a0")).active

    asyncio.run(story())
    assert rig["h0"].messages == 1


def test_a_host_that_died_is_heard_when_it_is_back(remote: FleetRig, keys: FleetKeys) -> None:
    async def story() -> None:
        async with listening(remote["h0"].entry(), keys.policer) as one:
            await one.until(lambda: one.heard, remote.tick)
            remote.do(remote["h0"].kill)
            remote.do(remote["h0"].revive)
            before = len(one.heard)
            await one.until(lambda: len(one.heard) > before, remote.tick)
            assert await one.link.send(leases(1, "a0"), PATIENCE_S) == (None,)

    asyncio.run(story())


def test_a_silent_host_is_told_of_once(rig: FleetRig) -> None:
    async def story() -> None:
        async with listening(rig["h0"].entry(), silence_s=REASON_S) as one:
            await one.until(lambda: one.troubles)
            await one.until(lambda: one.heard, rig.tick)
            assert one.troubles == ["no telemetry for 5 s: the daemon is connected but silent"]

    asyncio.run(story())


def test_requests_wait_for_each_other(rig: FleetRig) -> None:
    async def story() -> None:
        async with listening(rig["h0"].entry()) as one:
            asked = [one.link.send(leases(1, "a0", first=n), PATIENCE_S) for n in range(1, 20)]
            assert await asyncio.gather(*asked) == [(None,)] * 19

    asyncio.run(story())


def test_a_link_that_is_closed_answers_with_an_error(rig: FleetRig) -> None:
    async def story() -> None:
        rig.do(lambda: setattr(rig["h0"], "frozen", True))
        listener = Listener(rig["h0"].entry(), None, PATIENCE_S)
        running = asyncio.create_task(listener.link.run())
        asking = asyncio.create_task(listener.link.send(leases(1, "a0"), PATIENCE_S))
        await listener.until(lambda: listener.link._requests._line is not None)
        running.cancel()
        with pytest.raises(LinkError, match="the link was closed"):
            await asking

    asyncio.run(story())


# Keys


def test_an_unknown_key_is_not_admitted_and_said_to_be(remote: FleetRig, keys: FleetKeys) -> None:
    async def story() -> None:
        reason = "does not admit this policer's key"
        async with listening(remote["h0"].entry(), keys.stranger, silence_s=REASON_S) as one:
            with pytest.raises(LinkTimeout, match=reason):
                await one.link.send(leases(1, "a0"), REASON_S)
            await one.until(lambda: any(reason in words for words in one.troubles), remote.tick)
            assert not one.heard

    asyncio.run(story())
    assert remote["h0"].messages == 0


def test_a_host_with_another_key_than_entered_is_not_obeyed_to(
    remote: FleetRig, keys: FleetKeys
) -> None:
    """Whoever took the daemon's address does not know its secret key."""

    async def story() -> None:
        true = remote["h0"].entry()
        other = Host(
            name=true.name,
            requests=true.requests,
            telemetry=true.telemetry,
            capacity_pps=true.capacity_pps,
            server_key=keys.stranger.public.decode(),
        )
        async with listening(other, keys.policer, silence_s=1.0) as one:
            await one.until(lambda: one.troubles, remote.tick)
            assert not one.heard
            with pytest.raises(LinkTimeout):
                await one.link.send(leases(1, "a0"), 0.5)

    asyncio.run(story())
    assert remote["h0"].messages == 0


def test_tcp_without_keys_is_not_dialled(remote: FleetRig) -> None:
    async def story() -> None:
        async with listening(remote["h0"].entry()) as one:
            await one.until(lambda: one.troubles)
            assert "link.secret_key_file" in one.troubles[0]
            with pytest.raises(LinkError, match=r"link\.secret_key_file"):
                await one.link.send(leases(1, "a0"))

    asyncio.run(story())


# Hosts that mean harm


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"no telemetry",
        b"\xff" * 100,
        b"[" * 100_000,
        b'{"at":1,"tick":1,"routers":[],"version":2}',
        b'{"at":NaN,"tick":1,"routers":[],"version":1}',
    ],
    ids=["empty", "words", "bytes", "nested", "version", "nan"],
)
def test_bad_bytes_are_told_of_once_and_the_next_tick_is_heard(rig: FleetRig, raw: bytes) -> None:
    async def story() -> None:
        async with listening(rig["h0"].entry()) as one:
            await one.until(lambda: one.link.bad >= 3, lambda: rig.do(lambda: say(rig, raw)))
            await one.until(lambda: one.heard, rig.tick)
            (trouble,) = one.troubles
            assert trouble.startswith("its telemetry is malformed: ")

    asyncio.run(story())


def say(rig: FleetRig, raw: bytes) -> None:
    rig["h0"].publish(raw)


def test_a_message_that_is_too_large_is_dropped_and_the_host_heard_again(rig: FleetRig) -> None:
    async def story() -> None:
        async with listening(rig["h0"].entry(), silence_s=0.3) as one:
            await one.until(lambda: one.heard, rig.tick)
            rig.do(lambda: say(rig, b"x" * (MAX_TELEMETRY + 1)))
            await one.until(lambda: one.troubles)
            before = len(one.heard)
            await one.until(lambda: len(one.heard) > before, rig.tick)
            assert one.link.bad == 0

    asyncio.run(story())


def test_of_a_flood_only_the_newest_are_read(rig: FleetRig) -> None:
    async def story() -> None:
        async with listening(rig["h0"].entry()) as one, listening(rig["h1"].entry()) as other:
            await one.until(lambda: one.heard and other.heard, rig.tick)
            before, of_other = len(one.heard), len(other.heard)
            rig.do(lambda: rig["h0"].flood(600))
            flooded = rig["h0"].ticks
            await one.until(lambda: one.heard[-1].tick == flooded)
            await other.until(lambda: len(other.heard) > of_other, rig.tick)
            read = len(one.heard) - before
            assert one.link.dropped + read >= 600
            assert read <= 60
            assert any("more than 20 ticks a second" in words for words in one.troubles)
            assert not other.troubles

    asyncio.run(story())


def test_a_flood_that_goes_on_is_read_ten_times_a_second(rig: FleetRig) -> None:
    async def story() -> None:
        async with listening(rig["h0"].entry()) as one:
            await one.until(lambda: one.heard, rig.tick)
            before, began = len(one.heard), time.monotonic()
            for _ in range(300):
                await asyncio.to_thread(rig.do, lambda: rig["h0"].flood(5))
            read, seconds = len(one.heard) - before, time.monotonic() - began
            assert read <= seconds / GAP_S + 2

    asyncio.run(story())


def test_a_lie_is_handed_on_as_it_was_told(rig: FleetRig) -> None:
    """`policer.decide.telemetry` sees what cannot be; the link reads, and does not judge."""

    async def story() -> None:
        rig.do(lambda: setattr(rig["h0"], "alter", lying(throughput_pps=1e12)))
        async with listening(rig["h0"].entry()) as one:
            await one.until(lambda: one.heard, rig.tick)
            assert one.heard[-1].routers[0].throughput_pps == 1e12

    asyncio.run(story())


def test_a_name_that_no_router_can_have_is_no_telemetry(rig: FleetRig) -> None:
    async def story() -> None:
        rig.do(lambda: setattr(rig["h0"], "alter", lying(vr="<script>")))
        async with listening(rig["h0"].entry()) as one:
            await one.until(lambda: one.troubles, rig.tick)
            assert not one.heard

    asyncio.run(story())


def test_a_listener_that_trips_does_not_make_the_link_deaf(rig: FleetRig) -> None:
    heard: list[int] = []

    def trip(_host: str, telemetry: Telemetry) -> None:
        heard.append(telemetry.tick)
        raise ZeroDivisionError

    async def story() -> None:
        link = Link(rig["h0"].entry(), None, trip)
        running = asyncio.create_task(link.run())
        async with asyncio.timeout(PATIENCE_S):
            while len(heard) < 2:
                await asyncio.to_thread(rig.tick)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    asyncio.run(story())


def test_a_limit_with_an_end_is_carried_out_and_ends(rig: FleetRig) -> None:
    async def story() -> None:
        async with listening(rig["h0"].entry()) as one:
            await one.until(lambda: one.heard, rig.tick)
            await asyncio.to_thread(rig.tick)
            assert await one.link.send([Limit("a0", 5e3, ttl_s=3.0)], PATIENCE_S) == (None,)
            assert rig.do(lambda: rig["h0"].rig.report("a0")).limit_pps == 5e3
            await asyncio.to_thread(rig.tick, 3)
            assert rig.do(lambda: rig["h0"].rig.report("a0")).limit_pps is None

    asyncio.run(story())
