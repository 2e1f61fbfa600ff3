"""Makes the readers of the configured ports: one for each switch, one for this machine."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from xco.ports.config import AgentPort
from xco.ports.linux import LinuxReader
from xco.ports.openflow import OpenFlowReader, PortNumber
from xco.ports.port_tables import GnmiPortTable, LinuxPort, OpenFlowPort
from xco.ports.reader import PortReader

_GNMI_BACKOFF_S: Final = 8.0
"""A handshake of TLS takes CPU that a switch may need."""


@dataclass(frozen=True, slots=True)
class Source:
    """Ports that are read together, by their place in the configuration."""

    name: str
    reader: PortReader
    ports: tuple[int, ...]
    backoff_max_s: float = 0.5
    """Longest time between attempts while the switch is away."""


def sources(ports: Sequence[AgentPort]) -> list[Source]:
    """Return the readers of all ports.

    Raises:
        ConfigError: pygnmi is not installed, or a file that gNMI needs cannot be used.
    """
    grouped: dict[tuple[str, ...], list[int]] = {}
    for index, port in enumerate(ports):
        grouped.setdefault(_group(port), []).append(index)
    return [_source(list(_chosen(ports, indices)), indices) for indices in grouped.values()]


def _chosen(ports: Sequence[AgentPort], indices: Sequence[int]) -> Iterator[AgentPort]:
    return (ports[index] for index in indices)


def _group(port: AgentPort) -> tuple[str, ...]:
    """Return what ports that are read together have in common."""
    match port.table:
        case LinuxPort():
            return ("linux",)
        case OpenFlowPort(switch=switch):
            return ("openflow", switch)
        case GnmiPortTable() as table:
            return ("gnmi", table.mode, table.sample_interval, repr(_target_keys(table)))


def _target_keys(table: GnmiPortTable) -> dict[str, Any]:
    return {
        "address": table.target,
        "username": table.username,
        "password_file": table.password_file,
        "ca_file": table.ca_file,
        "cert_file": table.cert_file,
        "cert_key_file": table.cert_key_file,
        "tls_name": table.tls_name,
        "insecure": table.insecure,
    }


def _source(ports: Sequence[AgentPort], indices: Sequence[int]) -> Source:
    tables = [port.table for port in ports]
    match tables[0]:
        case LinuxPort():
            names = [one.interface for one in tables if isinstance(one, LinuxPort)]
            return Source("this machine", LinuxReader(names), tuple(indices))
        case OpenFlowPort(switch=switch):
            numbers = [
                PortNumber(one.number, one.queue) for one in tables if isinstance(one, OpenFlowPort)
            ]
            return Source(switch, OpenFlowReader(switch, numbers), tuple(indices))
        case GnmiPortTable() as first:
            rows = [one for one in tables if isinstance(one, GnmiPortTable)]
            return Source(first.target, _gnmi(first, rows), tuple(indices), _GNMI_BACKOFF_S)


def _gnmi(first: GnmiPortTable, rows: Sequence[GnmiPortTable]) -> PortReader:
    # These take pygnmi, which is optional.
    from xco.ports.gnmi import GnmiReader  # noqa: PLC0415
    from xco.ports.gnmi_paths import GnmiPort  # noqa: PLC0415
    from xco.ports.gnmi_stream import GnmiStream  # noqa: PLC0415
    from xco.ports.gnmi_tls import GnmiTarget  # noqa: PLC0415

    target = GnmiTarget(**_target_keys(first))
    ports = [
        GnmiPort(row.interface or "", row.queue or "", row.marks or "", row.origin) for row in rows
    ]
    if first.mode == "get":
        return GnmiReader(target, ports)
    return GnmiStream(target, ports, first.sample_ns)
