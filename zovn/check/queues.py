"""What the kinds of queueing disciplines do with packets when they are full, or earlier."""

from shlex import quote
from types import MappingProxyType
from typing import Final

from zovn.check.facts import ROOT, Interface, Qdisc

HOLD_PACKETS: Final = frozenset({"pfifo", "pfifo_fast", "pfifo_head_drop"})
"""They drop only at a limit in packets."""
HOLD_BYTES: Final = frozenset({"bfifo", "tbf"})
"""They drop only at a limit in bytes."""
CLASSFUL: Final = frozenset(
    {"mq", "mqprio", "prio", "multiq", "htb", "hfsc", "drr", "qfq", "ets", "taprio", "cbq"}
)
"""They hold no packets themselves: their leaves do."""
IGNORED: Final = frozenset({"ingress", "clsact", "noop"})
"""They do not queue what this end sends."""
DROP_EARLY: Final = MappingProxyType(
    {
        "fq_codel": "drops packets that waited longer than its target",
        "codel": "drops packets that waited longer than its target",
        "cake": "drops packets that waited longer than its target",
        "pie": "drops at random when packets wait longer than its target",
        "fq_pie": "drops at random when packets wait longer than its target",
        "dualpi2": "drops at random when packets wait longer than its target",
        "fq": "drops the packets of a flow beyond its flow_limit",
        "sfq": "drops packets of the longest flow beyond 127 in all",
        "red": "drops at random before it is full",
        "gred": "drops at random before it is full",
        "choke": "drops at random before it is full",
        "sfb": "drops at random before it is full",
        "hhf": "drops packets of large flows",
        "netem": "no longer charges packets to their sockets, so that these do not stop",
    }
)
"""They drop although send buffers are bounded: why."""


def leaves(interface: Interface) -> tuple[Qdisc, ...]:
    """Return the queueing disciplines of an interface in which its packets wait."""
    parents = {qdisc.parent & 0xFFFF0000 for qdisc in interface.qdiscs if qdisc.parent != ROOT}
    return tuple(
        qdisc
        for qdisc in interface.qdiscs
        if qdisc.kind not in IGNORED | CLASSFUL
        and not (qdisc.handle and qdisc.handle & 0xFFFF0000 in parents)
    )


def limit_of(qdisc: Qdisc, interface: Interface) -> int | None:
    """Return the limit of a queue; pfifo_fast has that of its interface."""
    return interface.txqueuelen if qdisc.kind == "pfifo_fast" else qdisc.limit


def replace_command(interface: Interface, qdisc: Qdisc, packets: int) -> str:
    """Return the command that puts a pfifo of so many packets where a queue is.

    A TBF keeps its rate: the pfifo becomes its inner queue. Names are quoted for a shell, since
    tenants choose them.
    """
    place = "root"
    if qdisc.kind == "tbf":
        place = f"parent {qdisc.handle >> 16:x}:1"
    elif qdisc.parent != ROOT and qdisc.parent >> 16:  # mq's own leaves have no address
        place = f"parent {qdisc.parent >> 16:x}:{qdisc.parent & 0xFFFF:x}"
    return f"tc qdisc replace dev {quote(interface.name)} {place} pfifo limit {packets}"
