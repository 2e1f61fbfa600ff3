"""Interface of a scheduler: grants, and the events that cause them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from xco.errors import ControllerError


@dataclass(frozen=True, slots=True)
class Grant:
    """What a host may do now: send to one destination at a rate, or nothing (None, 0).

    It is the content of a transmission directive (paper, section 3.2.1: D_s), plus the rate in
    bits/s.
    """

    host: int
    destination: int | None
    rate_bps: int


class Scheduler(Protocol):
    """Events in, grants out. Time is in ns; each call returns the grants that changed, in order.

    A host appears at most once in an answer. A grant that restarts is included even if it is the
    same as before, since it starts a new timeslice. All calls raise `ControllerError` for an
    unknown host.
    """

    def backlogged(self, now: int, host: int, destinations: Sequence[int]) -> list[Grant]:
        """Event 3: the whole backlog group of a host, new or changed.

        A current destination that is no longer in the group keeps its grant to the end.
        """
        ...

    def expired(self, now: int, host: int) -> list[Grant]:
        """Event 1: the timeslice of a host has ended; no effect if it has none."""
        ...

    def gave_up(self, now: int, host: int) -> list[Grant]:
        """Event 2, work conservation: a host has nothing left for its destination."""
        ...

    def leave(self, now: int, host: int) -> list[Grant]:
        """End the grant of a host that left, and drop its backlog."""
        ...


def check_host(host: int, hosts: int, field: str = "host") -> None:
    """Return if this is the number of a host.

    Raises:
        ControllerError: it is not.
    """
    if not 0 <= host < hosts:
        fix = f"a number from 0 to {hosts - 1}, in the topology's order"
        raise ControllerError(field, f"{host} is no host", fix)


def check_group(host: int, destinations: Sequence[int], hosts: int) -> None:
    """Return if the host can have these destinations.

    Raises:
        ControllerError: one is unknown, or is the host itself.
    """
    check_host(host, hosts)
    for destination in destinations:
        check_host(destination, hosts, "destination")
        if destination == host:
            fix = "leave out what stays on the host"
            raise ControllerError("destination", f"host {host} is backlogged to itself", fix)
