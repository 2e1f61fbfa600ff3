"""Commands of the check end its findings, whatever the endpoint: on a model of tc and ethtool."""

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from zovn.check.demand import SOCKETS, demand
from zovn.check.facts import ROOT, Facts, Interface, Offloads, Qdisc, Settings, Socket
from zovn.check.judge import judge
from zovn.check.queues import DROP_EARLY, HOLD_BYTES, HOLD_PACKETS

KINDS = sorted(HOLD_PACKETS | HOLD_BYTES | set(DROP_EARLY) | {"noqueue", "unknown"})
ROOT_HANDLE = 0x80010000
VLAN = Interface(name="e0.7", kind="vlan")
maybe = st.one_of(st.none(), st.booleans())
limits = st.one_of(st.none(), st.integers(0, 1 << 31))
leaf_kinds = st.sampled_from(KINDS)


@st.composite
def trees(draw: st.DrawFn) -> tuple[Qdisc, ...]:
    """Return a queue at the root, or one with classes."""
    if draw(st.booleans()):
        return (Qdisc(kind=draw(leaf_kinds), handle=ROOT_HANDLE, limit=draw(limits)),)
    root = Qdisc(kind=draw(st.sampled_from(["htb", "mq"])), handle=ROOT_HANDLE)
    inner = draw(st.lists(st.tuples(leaf_kinds, limits), min_size=1, max_size=4))
    leaves = (
        Qdisc(kind=kind, handle=0x90000000 + (n << 16), parent=ROOT_HANDLE + n, limit=limit)
        for n, (kind, limit) in enumerate(inner, 1)
    )
    return (root, *leaves)


interfaces = st.builds(
    Interface,
    name=st.just("e0"),
    kind=st.sampled_from(["veth", "virtio_net", "e1000"]),
    txqueuelen=st.integers(0, 100_000),
    qdiscs=trees(),
    offloads=st.builds(Offloads, tx_checksum=maybe, tso=maybe, gro=maybe, tx_vlan=maybe),
)
sockets = st.builds(
    Socket,
    protocol=st.sampled_from(["tcp", "udp"]),
    send_buffer=st.integers(2304, 1 << 24),
    receive_buffer=st.just(1 << 23),
)
endpoints = st.builds(
    Facts,
    kernel=st.just((6, 18)),
    interfaces=st.one_of(st.tuples(interfaces), st.tuples(interfaces, st.just(VLAN))),
    sockets=st.lists(sockets, max_size=20).map(tuple),
    settings=st.builds(Settings, send_largest=st.integers(4608, 1 << 26)),
)


def after(command: str, interface: Interface) -> Interface:
    """Return an interface after a command of tc or ethtool."""
    words = command.split()
    if words[0] == "ethtool":
        assert words[:3] == ["ethtool", "-K", "e0"]
        pairs = dict(zip(words[3::2], words[4::2], strict=True))
        names = {"tx": "tx_checksum", "tso": "tso", "gro": "gro", "txvlan": "tx_vlan"}
        changed = {names[key]: value == "on" for key, value in pairs.items()}
        return msgspec.structs.replace(
            interface, offloads=msgspec.structs.replace(interface.offloads, **changed)
        )
    return msgspec.structs.replace(interface, qdiscs=replaced(words, interface.qdiscs))


def replaced(words: list[str], qdiscs: tuple[Qdisc, ...]) -> tuple[Qdisc, ...]:
    assert words[:5] == ["tc", "qdisc", "replace", "dev", "e0"]
    assert words[-3:-1] == ["pfifo", "limit"]
    made = Qdisc(kind="pfifo", handle=0xA0000000, limit=int(words[-1]))
    if words[5] == "root":
        return (made,)
    major, minor = (int(part, 16) for part in words[6].split(":"))
    parent = (major << 16) + minor
    made = msgspec.structs.replace(made, parent=parent, handle=0xA0000000 + (parent & 0xFFFF0000))
    return (*(each for each in qdiscs if each.parent != parent), made)


@given(endpoints)
def test_the_commands_end_the_findings(facts: Facts) -> None:
    interface, *others = facts.interfaces
    for finding in judge(facts):
        assert finding.fix, finding
        interface = after(finding.fix, interface)
    fixed = msgspec.structs.replace(facts, interfaces=(interface, *others))
    assert judge(fixed) == []


@given(endpoints, st.integers(1, 64), st.integers(0, 64))
def test_more_sockets_never_need_less(facts: Facts, few: int, more: int) -> None:
    assert demand(facts, few).packets <= demand(facts, few + more).packets
    assert demand(facts, few).bytes <= demand(facts, few + more).bytes


@given(endpoints)
def test_a_pfifo_is_a_finding_exactly_when_it_is_too_short(facts: Facts) -> None:
    needed = demand(facts, SOCKETS).packets
    for limit, count in ((needed - 1, 1), (needed, 0)):
        queue = Qdisc(kind="pfifo", parent=ROOT, limit=limit)
        single = Interface(name="e0", kind="e1000", qdiscs=(queue,))
        assert len(judge(msgspec.structs.replace(facts, interfaces=(single,)))) == count
