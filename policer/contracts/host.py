"""A host as the operator entered it: the addresses of its daemon, and its capacity."""

from collections.abc import Iterable, Iterator
from typing import Annotated, Literal

import msgspec

from policer.contracts.contract import Rate
from policer.errors import Problem

HostName = Annotated[
    str, msgspec.Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9.-]{0,63}$(?!\n)", description="host name")
]
Endpoint = Annotated[
    str,
    msgspec.Meta(
        pattern=r"^(tcp://[^\s/]{1,255}:[0-9]{1,5}|ipc:///[^\x00\n]{1,200})$(?!\n)",
        description="tcp://address:port, or ipc:///path",
    ),
]
PublicKey = Annotated[
    str, msgspec.Meta(pattern=r"^[0-9a-zA-Z.\-:+=^!/*?&<>()\[\]{}@%$#]{40}$(?!\n)")
]


class Host(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A physical router: one machine, one daemon."""

    name: HostName
    requests: Endpoint
    """Where its manager accepts requests (`server.tcp`, or the local socket)."""
    telemetry: Endpoint
    """Where it streams telemetry (`server.tcp_telemetry`)."""
    capacity_pps: Rate
    """Total throughput of its routers, packets/s: measured by `xtc-train`."""
    server_key: PublicKey | None = None
    """The daemon's public CURVE key, as `xtc config keys` prints it; TCP needs it."""
    overcommit: bool = False
    """Whether guarantees may exceed the capacity."""
    capacity_source: Literal["operator", "model"] = "operator"
    """Source of the capacity."""


def way_to(host: Host) -> tuple[str, str, str | None]:
    """Return the addresses and key of its daemon."""
    return host.requests, host.telemetry, host.server_key


def clashes(host: Host, others: Iterable[Host]) -> Iterator[Problem]:
    """Yield other hosts with the same daemon: two sets of contracts would conflict there."""
    for other in others:
        if other.name == host.name:
            continue
        for name in ("requests", "telemetry", "server_key"):
            value = getattr(host, name)
            if value is not None and value == getattr(other, name):
                yield Problem(
                    name,
                    f"{other.name} has the same",
                    "each daemon is one host: change or remove one",
                )


def contradictions(host: Host) -> Iterator[Problem]:
    """Yield the contradictions in an entry, by field."""
    for name in ("requests", "telemetry"):
        if getattr(host, name).startswith("tcp:") and host.server_key is None:
            yield Problem(
                "server_key",
                f"{name} is on TCP, which takes the daemon's public key",
                "give what `xtc config keys` printed on the host",
            )
            return
