"""A host as the operator entered it: where its daemon listens, and what it can forward."""

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
    """Where its manager hears requests (`server.tcp`, or the local socket)."""
    telemetry: Endpoint
    """Where it streams telemetry (`server.tcp_telemetry`)."""
    capacity_pps: Rate
    """What all its routers can forward together, packets/s: measured by `xtc-train`."""
    server_key: PublicKey | None = None
    """The daemon's public CURVE key, as `xtc config keys` prints it; TCP needs it."""
    overcommit: bool = False
    """Whether guarantees may exceed the capacity."""
    capacity_source: Literal["operator", "model"] = "operator"
    """Who says what it can forward."""


def way_to(host: Host) -> tuple[str, str, str | None]:
    """Return how its daemon is reached."""
    return host.requests, host.telemetry, host.server_key


def clashes(host: Host, others: Iterable[Host]) -> Iterator[Problem]:
    """Say which other host is the same daemon: two sets of contracts would fight over it."""
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
    """Say what in an entry contradicts itself, by field."""
    for name in ("requests", "telemetry"):
        if getattr(host, name).startswith("tcp:") and host.server_key is None:
            yield Problem(
                "server_key",
                f"{name} is on TCP, which takes the daemon's public key",
                "give what `xtc config keys` printed on the host",
            )
            return
