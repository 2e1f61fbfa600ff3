"""Interfaces of one router share a limit on real veths: one bucket, adopted, renamed and lifted."""

import contextlib
import socket
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TypeVar

import pytest
from pyroute2 import IPRoute, netns
from support.frames import ethernet, ipv4, udp
from support.waiting import eventually

from common.setpoint import Setpoint, Unit
from common.units import PacketsPerSecond
from xtc.errors import ActuatorError
from xtc.kernel import bpf, clsact
from xtc.kernel.clsact import Direction
from xtc.kernel.namespaces import in_namespace
from xtc.measure.collector import Side
from xtc.shield import router as together
from xtc.shield.bucket import State
from xtc.shield.filters import LIMIT, OBJECT, PROGRAM, SHIELD
from xtc.shield.interface import EXEMPT_BURST_S, Shield
from xtc.shield.router import LEAST_EXEMPT, RouterShields

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(not OBJECT.exists(), reason="shield.bpf.o is not built (clang, libbpf-dev)"),
]
HOST, ROUTER = "xtcto-host", "xtcto-router"
BURST = 16
SLOW = Setpoint(1.0, burst=BURST)
PLAIN = ethernet(0x0800, ipv4(17, udp(5000, 9)))
OSPF = ethernet(0x0800, ipv4(89))
ENDS = ("v0", "v1")
Result = TypeVar("Result")


def on_host(work: Callable[[], Result]) -> Result:
    return in_namespace(f"/run/netns/{HOST}", work)


@pytest.fixture(autouse=True)
def veths() -> Iterator[None]:
    try:
        for name in (HOST, ROUTER):
            netns.create(name)
            in_namespace(f"/run/netns/{name}", silence)
        on_host(make_veths)
        yield
    finally:
        for name in (HOST, ROUTER):
            if Path(f"/run/netns/{name}").exists():
                netns.remove(name)


def silence() -> None:
    """Have the kernel send nothing by itself."""
    Path("/proc/sys/net/ipv6/conf/default/disable_ipv6").write_text("1")


def make_veths() -> None:
    for name in ENDS:
        make(name)


def make(name: str) -> None:
    with IPRoute() as route:
        peer = {"ifname": f"r{name}", "net_ns_fd": ROUTER}
        route.link("add", ifname=name, kind="veth", peer=peer)
        route.link("set", index=route.link_lookup(ifname=name)[0], state="up")
    in_namespace(f"/run/netns/{ROUTER}", partial(bring_up, f"r{name}"))


def bring_up(name: str) -> None:
    with IPRoute() as route:
        route.link("set", index=route.link_lookup(ifname=name)[0], state="up")


def rename(old: str, new: str) -> None:
    def work() -> None:
        with IPRoute() as route:
            route.link("set", index=route.link_lookup(ifname=old)[0], ifname=new)

    on_host(work)


def passed(*interfaces: str, frame: bytes = PLAIN, each: int = 50) -> int:
    """Send frames through the host's ends in turn; return how many left the host."""

    def send() -> int:
        before = counted(*interfaces)
        with contextlib.ExitStack() as stack:
            outs = [stack.enter_context(opened(name)) for name in interfaces]
            for _ in range(each):
                for out in outs:
                    with contextlib.suppress(OSError):  # ENOBUFS: it was dropped
                        out.send(frame)
        return counted(*interfaces) - before

    return on_host(send)


def opened(name: str) -> socket.socket:
    out = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
    out.bind((name, 0))
    return out


def counted(*interfaces: str) -> int:
    with IPRoute() as route:
        links = [route.get_links(ifname=name)[0] for name in interfaces]
        return sum(link.get_attr("IFLA_STATS64")["tx_packets"] for link in links)


def limit(
    shields: RouterShields, owner: str = "edge", side: Side = Side.HOST
) -> dict[str, ActuatorError]:
    return on_host(lambda: shields.limit(owner, ENDS, SLOW, side))


def places(interface: str) -> list[int]:
    def read() -> list[int]:
        index = socket.if_nametoindex(interface)
        every = [clsact.filters(index, direction) for direction in Direction]
        return [one.priority for found in every for one in found]

    return on_host(read)


def qdiscs(interface: str) -> list[str]:
    def read() -> list[str]:
        with IPRoute() as route:
            found = route.get_qdiscs(index=socket.if_nametoindex(interface))
            return [qdisc.get_attr("TCA_KIND") for qdisc in found]

    return on_host(read)


def test_all_interfaces_share_one_bucket() -> None:
    shields = RouterShields()
    assert limit(shields) == {}
    through = passed(*ENDS)
    assert through <= BURST + 3, "1 packet/s, as long as this takes"
    assert on_host(lambda: shields.dropped("edge")) == 2 * 50 - through


def test_routing_passes_a_full_bucket() -> None:
    limit(RouterShields())
    passed(*ENDS)
    assert passed("v1", frame=OSPF, each=12) == 12


def test_a_flood_by_one_interface_leaves_the_others_their_part() -> None:
    shields = RouterShields()
    on_host(lambda: shields.limit("edge", ENDS, Setpoint(10.0, burst=BURST)))
    before = time.monotonic()
    flood = passed("v0", each=200)
    assert flood <= BURST + 10 * (time.monotonic() - before) + 1
    assert passed("v1", each=4) == 4, "half of the depth is for the others"


def test_a_burst_that_changes_is_the_new_depth_at_once() -> None:
    shields = RouterShields()
    on_host(lambda: shields.limit("edge", ["v0"], Setpoint(1.0)))
    assert passed("v0") == 1
    on_host(lambda: shields.change("edge", Setpoint(1.0, burst=40)))
    assert 39 <= passed("v0") <= 42
    on_host(lambda: shields.change("edge", Setpoint(1.0, burst=60)))
    assert 20 <= passed("v0") <= 23


def test_single_packets_pass_by_one_of_several_interfaces_however_small_the_burst() -> None:
    shields = RouterShields()
    on_host(lambda: shields.limit("edge", ENDS, Setpoint(50.0, burst=0.1)))
    before, total = time.monotonic(), 0
    while total < 10:  # or the test times out
        total += passed("v0", each=20)
    assert total <= 50 * (time.monotonic() - before) + 2


def rate_of_flood(seconds: float, interface: str) -> float:
    """Flood through one of the host's ends; return how many left the host per second.

    The time is that of the flood alone, without what it takes to start it and to read counters.
    """

    def send() -> float:
        with opened(interface) as out:
            before, start = counted(interface), time.monotonic()
            while (elapsed := time.monotonic() - start) < seconds:
                with contextlib.suppress(OSError):  # ENOBUFS: it was dropped
                    out.send(PLAIN)
            return (counted(interface) - before) / elapsed

    return on_host(send)


def test_one_interface_alone_may_take_all_that_there_is() -> None:
    """Its half and the whole burst would be 7,000 packets in any second."""
    shields = RouterShields()
    on_host(lambda: shields.limit("edge", ENDS, Setpoint(1e4)))
    # A flood that stands still leaves unused what it may send.
    eventually(lambda: rate_of_flood(1.0, "v0") >= 0.9 * 1e4)


def test_a_flow_that_sends_little_finds_room_next_to_a_flood() -> None:
    """Each time right after the flood was dropped; one that begins may fill the whole bucket."""
    shields = RouterShields()
    on_host(lambda: shields.limit("edge", ENDS, Setpoint(1e4)))
    little = ethernet(0x0800, ipv4(17, udp(5001, 9)))

    def send() -> list[bool]:
        with opened("v0") as out:
            until, kept = time.monotonic() + 0.1, []
            while time.monotonic() < until or len(kept) < 20:
                while passes(out, PLAIN):
                    pass
                if time.monotonic() >= until:
                    kept.append(passes(out, little))
            return kept

    kept = on_host(send)
    assert sum(kept) >= 15, kept


def passes(out: socket.socket, frame: bytes) -> bool:
    """Send a frame; return whether it was not dropped."""
    try:
        return bool(out.send(frame))
    except OSError:  # ENOBUFS
        return False


def shares_of(interface: str, number: int) -> bytes:
    """Return what the shield on an interface holds of the interface with a number."""

    def read() -> bytes:
        found = clsact.attached(socket.if_nametoindex(interface), Direction.EGRESS, SHIELD)
        assert found is not None
        return bpf.by_id(found).maps["shares"].read(number)

    return on_host(read)


def test_an_interface_that_is_replaced_gets_its_part_and_the_old_one_is_forgotten() -> None:
    shields = RouterShields()
    limit(shields)
    old = on_host(lambda: socket.if_nametoindex("v0"))
    assert shares_of("v1", old)
    on_host(remove_v0)
    on_host(partial(make, "v0"))
    limit(shields)
    with pytest.raises(FileNotFoundError):
        shares_of("v1", old)
    passed("v1")
    assert passed("v0", each=3) == 3


def test_two_routers_have_two_buckets() -> None:
    shields = RouterShields()
    on_host(lambda: shields.limit("a", ["v0"], SLOW))
    on_host(lambda: shields.limit("b", ["v1"], SLOW))
    passed("v0")
    assert passed("v1", each=BURST) == BURST


def test_the_rate_is_changed_wherever_it_is() -> None:
    shields = RouterShields()
    limit(shields)
    on_host(lambda: shields.change("edge", Setpoint(1e6)))
    assert passed(*ENDS) == 100


def test_a_bucket_that_is_full_at_a_low_rate_does_not_keep_a_higher_one_waiting() -> None:
    shields = RouterShields()
    limit(shields)
    passed(*ENDS)
    on_host(lambda: shields.change("edge", Setpoint(1e6)))
    assert passed(*ENDS) == 100


def test_the_next_daemon_adopts_it_with_its_level() -> None:
    limit(RouterShields())
    passed(*ENDS)
    other = RouterShields()
    limit(other)
    assert passed(*ENDS) <= 3, "the bucket was still full"


def test_what_is_lifted_leaves_nothing() -> None:
    shields = RouterShields()
    limit(shields)
    for name in ENDS:
        on_host(lambda name=name: shields.lift(name))  # type: ignore[misc]
        assert (places(name), qdiscs(name)) == ([], ["noqueue"])
    assert passed(*ENDS) == 100


def test_an_interface_renamed_meanwhile_is_freed_all_the_same() -> None:
    shields = RouterShields()
    limit(shields)
    rename("v0", "w0")
    on_host(lambda: shields.lift("v0"))
    assert (places("w0"), qdiscs("w0")) == ([], ["noqueue"])


def test_an_interface_that_is_gone_is_nothing_to_lift() -> None:
    shields = RouterShields()
    limit(shields)
    on_host(remove_v0)
    on_host(lambda: shields.lift("v0"))
    assert list(limit(shields)) == ["v0"]


def remove_v0() -> None:
    with IPRoute() as route:
        route.link("del", ifname="v0")


def test_a_qdisc_that_another_made_meanwhile_stays() -> None:
    shields = RouterShields()
    limit(shields)
    on_host(lambda: shields.lift("v0"))
    on_host(lambda: clsact.make_qdisc(socket.if_nametoindex("v0")))
    limit(shields)
    on_host(lambda: shields.lift("v0"))
    assert "clsact" in qdiscs("v0")


def test_however_often_an_interface_is_replaced_its_qdisc_goes() -> None:
    shields = RouterShields()
    for _ in range(40):
        limit(shields)
        on_host(remove_v0)
        on_host(partial(make, "v0"))
    limit(shields)
    for name in ENDS:
        on_host(lambda name=name: shields.lift(name))  # type: ignore[misc]
        assert qdiscs(name) == ["noqueue"]


def test_a_limit_beside_it_outlives_it_and_the_last_one_removes_the_qdisc() -> None:
    shields, limits = RouterShields(), Shield()
    on_host(lambda: limits.limit("v0", PacketsPerSecond(1)))
    limit(shields)
    assert places("v0") == [LIMIT, SHIELD]
    on_host(lambda: limits.lift("v0"))
    assert places("v0") == [SHIELD]
    on_host(lambda: shields.lift("v0"))
    assert qdiscs("v0") == ["noqueue"]


def test_the_shield_first_and_the_limit_after_it_leave_nothing_either() -> None:
    shields, limits = RouterShields(), Shield()
    limit(shields)
    on_host(lambda: limits.limit("v0", PacketsPerSecond(1)))
    on_host(lambda: shields.lift("v0"))
    assert places("v0") == [LIMIT]
    on_host(lambda: limits.lift("v0"))
    assert qdiscs("v0") == ["noqueue"]


def test_another_owners_filter_stays_and_the_other_interface_bears_it() -> None:
    def other() -> None:
        index = socket.if_nametoindex("v0")
        clsact.make_qdisc(index)
        clsact.attach(index, Direction.EGRESS, bpf.load(OBJECT, PROGRAM), 1)

    on_host(other)
    shields = RouterShields()
    refused = limit(shields)
    assert list(refused) == ["v0"]
    assert "another owner" in str(refused["v0"])
    assert (places("v0"), places("v1")) == ([1], [SHIELD])
    assert passed("v1") <= BURST + 3


def test_a_look_that_finds_all_as_it_was_writes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    shields, rates = RouterShields(), []
    write = shields._bucket.change
    monkeypatch.setattr(
        shields._bucket,
        "change",
        lambda program, terms: (rates.append(terms), write(program, terms)),
    )

    def looked(rate: Setpoint = SLOW) -> int:
        rates.clear()
        assert on_host(lambda: shields.limit("edge", ENDS, rate)) == {}
        return len(rates)

    assert looked() == 2, "a new program, and its interfaces"
    assert looked() == 0
    assert looked(Setpoint(1e4)) == 1
    on_host(lambda: remake("v1"))
    assert looked(Setpoint(1e4)) == 1, "an interface made again has another number"
    assert looked(Setpoint(1e4)) == 0
    shields.forget("edge")
    assert looked(Setpoint(1e4)) > 0


def remake(name: str) -> None:
    with IPRoute() as route:
        route.link("del", ifname=name)
    make(name)


def test_a_filter_that_comes_before_ours_later_is_told() -> None:
    shields = RouterShields()
    limit(shields)
    assert on_host(lambda: shields.overruled(ENDS)) == ""
    program = on_host(lambda: bpf.load(OBJECT, PROGRAM))
    number = on_host(lambda: socket.if_nametoindex("v1"))
    on_host(lambda: clsact.attach(number, Direction.EGRESS, program, 1))
    assert "pref 1) decides before xtc's on v1" in on_host(lambda: shields.overruled(ENDS))


def test_a_shield_in_bits_counts_the_bytes_of_small_and_large_frames() -> None:
    most = 16 * 1518
    shields, rate = RouterShields(), Setpoint(8e3, Unit.BITS, 8 * most)
    on_host(lambda: shields.limit("edge", ENDS, rate))
    before = time.monotonic()
    small = passed("v0", frame=PLAIN.ljust(100, b"\0"), each=1_000)
    assert small * 100 <= most + 1_000 * (time.monotonic() - before)
    assert small >= (most - 1518) // 2 // 100 - 1, "half of the depth, by one interface"
    assert passed("v0", frame=PLAIN.ljust(1514, b"\0"), each=9) <= 1


def test_routing_gets_no_more_beside_a_small_setpoint_than_a_router_needs() -> None:
    shields = RouterShields()
    on_host(lambda: shields.limit("edge", ENDS, SLOW))
    before = time.monotonic()
    most = BURST + LEAST_EXEMPT * (EXEMPT_BURST_S + 1)
    assert passed("v0", frame=OSPF, each=1_000) <= most + 52 * (time.monotonic() - before)


def test_at_the_routers_own_end_it_limits_what_comes_in() -> None:
    limit(RouterShields(), side=Side.ROUTER)
    index = on_host(lambda: socket.if_nametoindex("v0"))
    assert on_host(lambda: clsact.attached(index, Direction.INGRESS, SHIELD)) is not None
    assert passed(*ENDS) == 100


def test_who_is_counted_at_the_other_end_is_not_limited_in_both_directions() -> None:
    limit(RouterShields())
    shields = RouterShields()
    limit(shields, side=Side.ROUTER)
    assert [places(name) for name in ENDS] == [[SHIELD], [SHIELD]]
    assert passed(*ENDS) == 100
    limit(shields, side=Side.HOST)
    assert [places(name) for name in ENDS] == [[SHIELD], [SHIELD]]
    assert passed(*ENDS) <= BURST + 3


def test_one_that_another_process_set_on_a_new_interface_of_the_name_is_lifted() -> None:
    shields = RouterShields()
    limit(shields)
    on_host(remove_v0)
    on_host(partial(make, "v0"))
    limit(RouterShields())
    on_host(lambda: shields.lift("v0"))
    assert places("v0") == []


def test_more_interfaces_than_have_a_share_bear_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(together, "SHARERS", 1)
    shields = RouterShields()
    assert limit(shields) == {}
    with pytest.raises(FileNotFoundError):
        shares_of("v0", on_host(lambda: socket.if_nametoindex("v1")))
    assert passed(*ENDS) <= BURST + 3


def test_as_many_interfaces_have_a_share_as_there_is_room_for() -> None:
    shares = bpf.load(OBJECT, PROGRAM).maps["shares"]
    for number in range(together.SHARERS):
        shares.add(number, State().pack())
    with pytest.raises(OSError, match="too long"):
        shares.add(together.SHARERS, State().pack())
