"""Guests with several pairs of rings on a running switch."""

from collections.abc import Iterator
from contextlib import closing

import pytest
from support.waiting import eventually
from zovn_front_end import GET_QUEUE_NUM, MQ, FrontEnd
from zovn_switch_rig import Guest, RunningSwitch, build_guest, running_switch, whole

pytestmark = pytest.mark.timeout(120)
FRAMES = 20_000


@pytest.fixture(scope="module", autouse=True)
def _built() -> None:
    build_guest()


@pytest.fixture
def switch() -> Iterator[RunningSwitch]:
    with running_switch(names="abc", stall="1min", each=[{"queues": 4}] * 3) as made:
        yield made


@pytest.mark.parametrize("queues", [2, 4])
def test_each_flow_keeps_its_order_and_its_queue(switch: RunningSwitch, queues: int) -> None:
    """Two senders to one slow receiver: each of their queues is a flow."""
    ports = (f"a=0:20:{FRAMES}", f"b=8:20:{FRAMES}", "c=20:0:0:40")
    with Guest(switch, *ports, queues=queues) as guest:
        assert guest.ready()
        eventually(lambda: all(f"{one}: {queues} pairs" in switch.log.read_text() for one in "abc"))
        guest.go()
        switch.wait_for(dict.fromkeys("ab", queues * (FRAMES + 1)))
        found = guest.result()["20"]["from"]
    senders = [str(first + queue) for first in (0, 8) for queue in range(queues)]
    assert sorted(found) == sorted(senders)
    assert all(whole(found[one], FRAMES) for one in senders), found
    assert len({found[one]["queue"] for one in senders}) > 1
    assert not any(any(port.drops.values()) for port in switch.report().ports)


def test_a_guest_may_use_fewer_queues_than_there_are(switch: RunningSwitch) -> None:
    with Guest(switch, f"a=0:20:{FRAMES}", "b=20") as guest:
        assert guest.ready()
        guest.go()
        switch.wait_for({"a": FRAMES + 1})
        assert whole(guest.result()["20"]["from"]["0"], FRAMES)


def test_a_front_end_learns_how_many_pairs_there_are(switch: RunningSwitch) -> None:
    with closing(FrontEnd(switch.socket("a"))) as front:
        assert front.offered >> MQ & 1
        assert front.protocol & 1
        assert front.ask(GET_QUEUE_NUM) == 4


def test_a_port_with_one_pair_offers_no_more() -> None:
    with (
        running_switch(names="a") as switch,
        closing(FrontEnd(switch.socket("a"))) as front,
    ):
        assert not front.offered >> MQ & 1
        assert not front.protocol & 1
        assert front.ask(GET_QUEUE_NUM) == 1
