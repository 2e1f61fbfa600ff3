"""What an endpoint's check finds for each kind of queue, driver, offload and socket."""

import pytest

from zovn.check.counters import parse_pairs, parse_softnet, parse_tables
from zovn.check.demand import demand
from zovn.check.facts import Facts, Interface, Offloads, Qdisc, Settings, Socket
from zovn.check.judge import RECEIVE_BUFFER, Finding, judge, placed
from zovn.check.links import limit_in
from zovn.check.queues import DROP_EARLY
from zovn.check.read import kernel_of

SETTINGS = Settings(send_default=212_992, send_largest=425_984)
NEEDED = 8 * 556
"""Packets of eight sockets: 425,984 / 768, rounded up, and one."""
DONE = Offloads(tx_checksum=False, tso=False, gro=True)
UDP = Socket(protocol="udp", send_buffer=212_992, receive_buffer=RECEIVE_BUFFER)
TCP = Socket(protocol="tcp", send_buffer=87_040, receive_buffer=131_072)


def facts(*qdiscs: Qdisc, kind: str = "veth", **more: object) -> Facts:
    options = {"offloads": DONE, "txqueuelen": 1000} | more
    interface = Interface(name="e0", kind=kind, qdiscs=qdiscs, **options)  # type: ignore[arg-type]
    return Facts(kernel=(6, 18), interfaces=(interface,), settings=SETTINGS)


def fixes(found: list[Finding]) -> list[str]:
    return [finding.fix for finding in found]


PFIFO = Qdisc(kind="pfifo", handle=0x10000, limit=NEEDED)


def test_an_endpoint_that_loses_nothing_has_no_finding() -> None:
    assert judge(facts(PFIFO)) == []
    assert judge(facts(PFIFO, kind="virtio_net", offloads=Offloads())) == []


def test_a_pfifo_needs_room_for_all_send_buffers() -> None:
    (found,) = judge(facts(Qdisc(kind="pfifo", limit=NEEDED - 1)))
    assert found.problem == (
        "pfifo has room for 4,447 packets; the send buffers of 8 sockets hold 4,448"
    )
    assert found.fix == "tc qdisc replace dev e0 root pfifo limit 10000"


def test_the_limit_that_is_recommended_is_twice_what_is_needed() -> None:
    many = Facts(
        kernel=(6, 18),
        interfaces=facts(Qdisc(kind="pfifo", limit=1000)).interfaces,
        sockets=(UDP,) * 100,
    )
    assert demand(many).packets == 100 * 279
    assert fixes(judge(many)) == ["tc qdisc replace dev e0 root pfifo limit 56000"]


@pytest.mark.parametrize("kind", [*DROP_EARLY, "a_kind_of_the_future", "noqueue"])
def test_a_queue_that_drops_early_is_replaced(kind: str) -> None:
    (found,) = judge(facts(Qdisc(kind=kind, limit=1 << 30)))
    assert found.check == "queue"
    assert found.problem.startswith(kind)
    assert found.fix == "tc qdisc replace dev e0 root pfifo limit 10000"


@pytest.mark.parametrize("kind", ["bfifo", "tbf"])
def test_limits_in_bytes_cover_all_bytes(kind: str) -> None:
    needed = demand(facts()).bytes
    enough = facts(Qdisc(kind=kind, handle=0x80010000, limit=needed))
    short = facts(Qdisc(kind=kind, handle=0x80010000, limit=needed - 1))
    assert judge(enough) == []
    assert len(judge(short)) == 1


@pytest.mark.parametrize(
    ("qdiscs", "place"),
    [
        ((Qdisc(kind="tbf", handle=0x80010000, limit=3000),), "parent 8001:1"),
        (
            (
                Qdisc(kind="tbf", handle=0x80010000, limit=3000),
                Qdisc(kind="pfifo", handle=0x80020000, parent=0x80010001, limit=5),
            ),
            "parent 8001:1",
        ),
        (
            (Qdisc(kind="htb", handle=0x10000), Qdisc(kind="pfifo", parent=0x1001A, limit=1)),
            "parent 1:1a",
        ),
        ((Qdisc(kind="mq"), Qdisc(kind="fq_codel", parent=1)), "root"),
        ((Qdisc(kind="mq", handle=0x10000), Qdisc(kind="fq", parent=0x10002)), "parent 1:2"),
    ],
    ids=["tbf", "inside tbf", "class", "mq of the kernel", "mq with a handle"],
)
def test_the_command_names_the_place_of_the_queue(qdiscs: tuple[Qdisc, ...], place: str) -> None:
    assert fixes(judge(facts(*qdiscs))) == [f"tc qdisc replace dev e0 {place} pfifo limit 10000"]


def test_the_queues_of_one_device_have_one_command() -> None:
    leaves = (Qdisc(kind="fq_codel", parent=number) for number in range(1, 9))
    assert len(judge(facts(Qdisc(kind="mq"), *leaves, kind="virtio_net"))) == 1


def test_what_does_not_queue_is_no_finding() -> None:
    assert judge(facts(PFIFO, Qdisc(kind="clsact", parent=0xFFFFFFF1))) == []
    assert judge(facts(Qdisc(kind="noqueue"), kind="bridge")) == []


def test_pfifo_fast_has_the_length_of_its_interface() -> None:
    assert judge(facts(Qdisc(kind="pfifo_fast"), txqueuelen=NEEDED)) == []
    (found,) = judge(facts(Qdisc(kind="pfifo_fast"), txqueuelen=NEEDED - 1))
    assert "4,447 packets" in found.problem


@pytest.mark.parametrize(
    ("offloads", "expected"),
    [
        (Offloads(tx_checksum=True, tso=True, gro=True), ["ethtool -K e0 tx off tso off"]),
        (Offloads(tx_checksum=False, tso=True, gro=True), ["ethtool -K e0 tx off tso off"]),
        (Offloads(tx_checksum=False, tso=False, gro=False), ["ethtool -K e0 gro on"]),
        (Offloads(), []),
    ],
)
def test_offloads_of_a_veth(offloads: Offloads, expected: list[str]) -> None:
    assert fixes(judge(facts(PFIFO, offloads=offloads))) == expected
    assert judge(facts(PFIFO, kind="virtio_net", offloads=offloads)) == []


@pytest.mark.parametrize(
    ("tx_vlan", "expected"), [(True, ["ethtool -K e0 txvlan off"]), (False, []), (None, [])]
)
def test_a_veth_below_a_vlan_writes_its_tags_into_packets(
    tx_vlan: bool | None, expected: list[str]
) -> None:
    veth = facts(PFIFO, offloads=Offloads(tx_vlan=tx_vlan))
    assert judge(veth) == []
    vlan = Interface(name="e0.7", kind="vlan", qdiscs=(Qdisc(kind="noqueue"),))
    both = Facts(kernel=(6, 18), interfaces=(*veth.interfaces, vlan), settings=SETTINGS)
    assert fixes(judge(both)) == expected


def test_a_tap_loses_whatever_its_queue() -> None:
    (found,) = judge(facts(PFIFO, kind="tun"))
    assert (found.check, found.fix) == ("driver", "")


@pytest.mark.parametrize(("kernel", "count"), [((6, 15), 1), ((6, 16), 0), ((7, 0), 0)])
def test_a_veth_stops_senders_from_linux_6_16_on(kernel: tuple[int, int], count: int) -> None:
    old = Facts(kernel=kernel, interfaces=facts(PFIFO).interfaces, settings=SETTINGS)
    assert len(judge(old)) == count


def test_udp_sockets_with_short_receive_buffers() -> None:
    short = Socket(protocol="udp", send_buffer=1, receive_buffer=212_992)
    (found,) = judge(Facts(kernel=(6, 18), sockets=(UDP, short, TCP)))
    assert (found.where, found.check) == ("udp", "receive-buffer")
    assert "1 of 2 sockets" in found.problem
    assert "277 small datagrams" in found.problem
    assert found.fix == "sysctl -w net.core.rmem_max=4194304 net.core.rmem_default=4194304"
    assert judge(Facts(kernel=(6, 18), sockets=(UDP, TCP))) == []


def test_a_router_is_a_note() -> None:
    (found,) = judge(Facts(kernel=(6, 18), settings=Settings(forwards=True)))
    assert (found.level, found.fix) == ("note", "")


def test_tcp_is_counted_by_what_it_leaves_in_queues() -> None:
    settings = Settings(tcp_limit=768_000)
    assert demand(Facts(kernel=(6, 18), sockets=(TCP,) * 8, settings=settings)).packets == 8 * 1001


def test_each_socket_may_exceed_its_buffer_by_the_largest_packet() -> None:
    found = demand(Facts(kernel=(6, 18), sockets=(UDP,) * 10, settings=SETTINGS))
    assert (found.sockets, found.bytes) == (10, 10 * (212_992 + 65_536))


def test_limits_in_netlink_options() -> None:
    assert limit_in("bfifo", "b8:0b:00:00") == 3000
    assert limit_in("pfifo", {"limit": 5}) == 5
    assert limit_in("fq_codel", {"limit": 5}) is None
    assert limit_in("pfifo", None) is None


def test_counters_in_proc() -> None:
    text = "Udp: InDatagrams RcvbufErrors\nUdp: 5 3\nTcp: RtoMax RetransSegs\nTcp: -1 9\n"
    assert parse_tables(text) == {
        "Udp": {"InDatagrams": 5, "RcvbufErrors": 3},
        "Tcp": {"RtoMax": -1, "RetransSegs": 9},
    }
    assert parse_pairs("Udp6RcvbufErrors \t 4\nodd\n") == {"Udp6RcvbufErrors": 4}
    assert parse_softnet("0a 00000002 0\n0b 00000010 0\n") == 18


@pytest.mark.parametrize(
    ("release", "kernel"),
    [("6.18.44-x", (6, 18)), ("6.1.0", (6, 1)), ("7.0-rc1", (7, 0)), ("odd", (0, 0))],
)
def test_kernels_by_release(release: str, kernel: tuple[int, int]) -> None:
    assert kernel_of(release) == kernel


def test_names_that_a_shell_would_run_are_quoted() -> None:
    veth = Interface(
        name="$(reboot)",
        kind="veth",
        qdiscs=(Qdisc(kind="noqueue"),),
        offloads=Offloads(tx_checksum=True, tso=True, gro=False),
    )
    found = judge(Facts(kernel=(6, 18), interfaces=(veth,)))
    assert len(found) == 3
    assert all("'$(reboot)'" in finding.fix for finding in found)


def test_commands_for_a_named_namespace_work_on_the_host() -> None:
    queue = Finding(where="e0", check="queue", problem="", fix="tc qdisc")
    buffers = Finding(where="udp", check="receive-buffer", problem="", fix="sysctl -w")
    tap = Finding(where="t0", check="driver", problem="")
    moved = [placed(each, "a b") for each in (queue, buffers, tap)]
    assert fixes(moved) == ["ip netns exec 'a b' tc qdisc", "sysctl -w", ""]
    assert placed(queue, None) == queue
