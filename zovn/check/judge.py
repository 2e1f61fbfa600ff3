"""Where an endpoint can lose packets, and what prevents it: a pure function of its facts."""

from collections.abc import Iterator
from shlex import quote
from typing import Final, Literal

import msgspec

from zovn.check.demand import SMALLEST_CHARGE, SOCKETS, Demand, demand
from zovn.check.facts import Facts, Interface, Qdisc
from zovn.check.queues import (
    DROP_EARLY,
    HOLD_BYTES,
    HOLD_PACKETS,
    leaves,
    limit_of,
    replace_command,
)

VETH_STOPS_SENDERS: Final = (6, 16)
"""The first Linux in which a veth with a full ring stops its queue."""
RECEIVE_BUFFER: Final = 4 << 20
"""Bytes: a process that does not run for 27 ms loses none of 200,000 small datagrams/s."""
SMALLEST_LIMIT: Final = 10_000
PASS_ON: Final = frozenset(
    {
        "bridge",
        "bond",
        "team",
        "vlan",
        "macvlan",
        "ipvlan",
        "vxlan",
        "geneve",
        "gre",
        "dummy",
        "vrf",
    }
)
"""Kinds without a queue of their own: packets wait at the link below."""


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One reason why packets can be lost."""

    where: str
    """The interface, or the protocol."""
    check: Literal["queue", "driver", "offload", "receive-buffer", "forwarding"]
    level: Literal["loss", "note"] = "loss"
    problem: str
    fix: str = ""
    """The command; empty if no command helps."""


def judge(facts: Facts, expected: int = SOCKETS) -> list[Finding]:
    """Return all findings of an endpoint, for so many sockets or those that exist."""
    needed = demand(facts, expected)
    found = [one for each in facts.interfaces for one in _interface(facts, each, needed)]
    return list(dict.fromkeys([*found, *_receive_buffers(facts), *_forwarding(facts)]))


def placed(finding: Finding, namespace: str | None) -> Finding:
    """Return a finding whose command works on the host, for a named namespace.

    Receive buffers are settings of the host anyway.
    """
    if namespace is None or not finding.fix or finding.check == "receive-buffer":
        return finding
    fix = f"ip netns exec {quote(namespace)} {finding.fix}"
    return msgspec.structs.replace(finding, fix=fix)


def _interface(facts: Facts, interface: Interface, needed: Demand) -> Iterator[Finding]:
    if interface.kind in PASS_ON:
        return
    if interface.kind == "tun":
        yield _tap(interface)
        return
    for qdisc in leaves(interface):
        if problem := _queue_problem(qdisc, interface, needed):
            fix = replace_command(interface, qdisc, limit_for(needed))
            yield Finding(where=interface.name, check="queue", problem=problem, fix=fix)
    if interface.kind == "veth":
        yield from _veth(facts, interface)


def limit_for(needed: Demand) -> int:
    """Return the limit to recommend: twice what is needed, in thousands.

    It costs no memory: send buffers bound what is in the queue.
    """
    return max(SMALLEST_LIMIT, -(-2 * needed.packets // 1000) * 1000)


def _queue_problem(qdisc: Qdisc, interface: Interface, needed: Demand) -> str:
    limit = limit_of(qdisc, interface)
    if qdisc.kind == "noqueue":
        return "noqueue: there is no queue, so packets are dropped while the device is full"
    if qdisc.kind in HOLD_PACKETS:
        return _short(qdisc.kind, limit, needed.packets, "packets", needed.sockets)
    if qdisc.kind in HOLD_BYTES:
        return _short(qdisc.kind, limit, needed.bytes, "bytes", needed.sockets)
    return f"{qdisc.kind} {DROP_EARLY.get(qdisc.kind, 'is unknown here: it may drop packets')}"


def _short(kind: str, limit: int | None, needed: int, unit: str, sockets: int) -> str:
    if limit is not None and limit >= needed:
        return ""
    has = "no known limit" if limit is None else f"room for {limit:,} {unit}"
    return f"{kind} has {has}; the send buffers of {sockets} sockets hold {needed:,}"


def _tap(interface: Interface) -> Finding:
    problem = "a TAP or TUN device drops packets when its ring is full, with any queue: use a veth"
    return Finding(where=interface.name, check="driver", problem=problem)


def _veth(facts: Facts, interface: Interface) -> Iterator[Finding]:
    name, offloads = interface.name, interface.offloads
    if facts.kernel < VETH_STOPS_SENDERS:
        release = ".".join(map(str, facts.kernel))
        problem = f"Linux {release} drops packets when the veth's ring is full; 6.16 stops senders"
        yield Finding(where=name, check="driver", problem=problem)
    if offloads.tx_checksum or offloads.tso:
        problem = "tx or tso is on: packets bypass the ring, or arrive at the switch unfinished"
        fix = f"ethtool -K {quote(name)} tx off tso off"
        yield Finding(where=name, check="offload", problem=problem, fix=fix)
    if offloads.gro is False:
        problem = "gro is off: packets arrive through the CPU's backlog, which drops when full"
        fix = f"ethtool -K {quote(name)} gro on"
        yield Finding(where=name, check="offload", problem=problem, fix=fix)
    if offloads.tx_vlan and any(each.kind == "vlan" for each in facts.interfaces):
        problem = "txvlan is on: packets of VLAN interfaces arrive at a switch without their tag"
        fix = f"ethtool -K {quote(name)} txvlan off"
        yield Finding(where=name, check="offload", problem=problem, fix=fix)


def _receive_buffers(facts: Facts) -> Iterator[Finding]:
    buffers = [each.receive_buffer for each in facts.sockets if each.protocol == "udp"]
    short = [size for size in buffers if size < RECEIVE_BUFFER]
    if not short:
        return
    least = min(short)
    yield Finding(
        where="udp",
        check="receive-buffer",
        problem=f"UDP has no flow control, and {len(short)} of {len(buffers)} sockets have receive "
        f"buffers for {least // SMALLEST_CHARGE:,} small datagrams or a little more; "
        "run the command on the host, then restart their programs",
        fix=f"sysctl -w net.core.rmem_max={RECEIVE_BUFFER} net.core.rmem_default={RECEIVE_BUFFER}",
    )


def _forwarding(facts: Facts) -> Iterator[Finding]:
    if facts.settings.forwards:
        problem = (
            "this end routes: queues drop packets of others that arrive faster than they leave"
        )
        yield Finding(where="ip", check="forwarding", level="note", problem=problem)
