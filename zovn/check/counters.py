"""Reads the counters of losses that no switch sees: /proc/net."""

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from zovn.check.facts import Counters


def read_counters(net: Path) -> Counters:
    """Return the counters in a folder such as /proc/thread-self/net."""
    tables = parse_tables(_text(net / "snmp") + _text(net / "netstat"))
    six = parse_pairs(_text(net / "snmp6"))
    return Counters(
        udp_receive_buffer_errors=_udp(tables, six, "RcvbufErrors"),
        udp_send_buffer_errors=_udp(tables, six, "SndbufErrors"),
        tcp_retransmitted=tables.get("Tcp", {}).get("RetransSegs", 0),
        tcp_timeouts=tables.get("TcpExt", {}).get("TCPTimeouts", 0),
        softnet_dropped=parse_softnet(_text(net / "softnet_stat")),
    )


def parse_tables(text: str) -> dict[str, dict[str, int]]:
    """Return tables of /proc/net/snmp: for each a line of names, then one of values."""
    tables: dict[str, dict[str, int]] = {}
    lines = [line.split() for line in text.splitlines() if ":" in line]
    for names, values in zip(lines[::2], lines[1::2], strict=False):
        tables[names[0].rstrip(":")] = dict(zip(names[1:], map(int, values[1:]), strict=False))
    return tables


def parse_pairs(text: str) -> dict[str, int]:
    """Return the counters of /proc/net/snmp6: a name and a value on each line."""
    rows = (line.split() for line in text.splitlines())
    return {row[0]: int(row[1]) for row in rows if len(row) == 2}


def parse_softnet(text: str) -> int:
    """Return the drops of all CPUs: the second hexadecimal number of each line."""
    rows = (line.split() for line in text.splitlines())
    return sum(int(row[1], 16) for row in rows if len(row) > 1)


def _udp(tables: Mapping[str, Mapping[str, int]], six: Mapping[str, int], name: str) -> int:
    return tables.get("Udp", {}).get(name, 0) + six.get(f"Udp6{name}", 0)


def _text(path: Path) -> str:
    with suppress(OSError):  # a kernel without IPv6 has no snmp6
        return path.read_text()
    return ""
