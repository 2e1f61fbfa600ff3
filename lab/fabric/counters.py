"""Counters of a fabric: drops of shallow ports, bytes on the wire, and TCP timeouts."""

from pathlib import Path
from typing import Any, NamedTuple

from lab.errors import LabError
from lab.system import namespaces
from lab.system.links import index_of


class PortCounts(NamedTuple):
    """Counters of a shaped port since it was shaped."""

    packets: int
    """Sent."""
    bytes: int
    """Sent, with Ethernet headers."""
    drops: int
    """Packets dropped because its buffer was full."""
    backlog_bytes: int
    """Waiting now."""


def port_counts(netns: str, interface: str) -> PortCounts:
    """Return the counts of an interface's root queueing discipline.

    Raises:
        LabError: it has none with counters.
    """
    return namespaces.configure(netns, lambda ip: _root_counts(ip, interface))


def wire_bytes(netns: str, interface: str) -> int:
    """Return the bytes that an interface has received, with Ethernet headers."""
    text = namespaces.inside(netns, Path("/proc/thread-self/net/dev").read_text)
    return parse_received(text)[interface]


def tcp_counts(netns: str) -> dict[str, int]:
    """Return TCP's extended counts of a namespace, such as TCPTimeouts (nstat: TcpExt...)."""
    return parse_extended(
        namespaces.inside(netns, Path("/proc/thread-self/net/netstat").read_text), "TcpExt"
    )


def tcp_retransmitted(netns: str) -> int:
    """Return the TCP segments that a namespace has sent again (nstat: TcpRetransSegs)."""
    text = namespaces.inside(netns, Path("/proc/thread-self/net/snmp").read_text)
    return parse_extended(text, "Tcp")["RetransSegs"]


def parse_received(text: str) -> dict[str, int]:
    """Return the bytes received by interface from the text of /proc/net/dev."""
    rows = (line.partition(":") for line in text.splitlines()[2:])
    return {name.strip(): int(values.split()[0]) for name, _, values in rows}


def parse_extended(text: str, table: str) -> dict[str, int]:
    """Return one table of /proc/net/netstat or snmp: a line of names, then one of values.

    Raises:
        LabError: the table is missing.
    """
    lines = [line.split() for line in text.splitlines() if line.startswith(f"{table}:")]
    if len(lines) < 2:
        raise LabError(f"the kernel has no counters of {table}")
    return {name: int(value) for name, value in zip(lines[0][1:], lines[1][1:], strict=True)}


def _root_counts(ip: Any, interface: str) -> PortCounts:
    for qdisc in ip.get_qdiscs(index=index_of(ip, interface)):
        counts = qdisc.get_attr("TCA_STATS2")
        if qdisc["parent"] == 0xFFFFFFFF and counts is not None:  # TC_H_ROOT
            basic, queue = (counts.get_attr(f"TCA_STATS_{part}") for part in ("BASIC", "QUEUE"))
            return PortCounts(basic["packets"], basic["bytes"], queue["drops"], queue["backlog"])
    raise LabError(f"{interface} has no queueing discipline that counts")
