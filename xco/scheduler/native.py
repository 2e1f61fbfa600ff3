"""The compiled scheduler (core/scheduler/schedule.h) with the interface of the reference."""

import ctypes
import math
from collections.abc import Mapping, Sequence
from typing import Literal

from xco.core_files import library
from xco.errors import ControllerError
from xco.scheduler.grant import Grant, check_group, check_host
from xco.scheduler.native_library import (
    FOREVER,
    NONE,
    POLICIES,
    RawGrant,
    RawLink,
    RawOptions,
    loaded,
)
from xco.topology.graph import Topology


class NativeScheduler:
    """The compiled scheduler: same events, same grants, without walking contention groups.

    `policy` is "published" (longest wait first, with preemption beyond `threshold_ns`; None: no
    preemption) or "fair" (weighted max-min of recent service: service `memory_ns` ago counts half;
    `weights` by (host, destination), default 1, divided by the host's backlogged flows; no
    preemption). A flow that has waited for `patience_ns` gets its path reserved, so that it is
    served within `patience_ns` plus (backlogged flows + 1) timeslices; None reserves nothing.
    `limit_rates` grants a sender that is faster than its path the path's rate, and grants what a
    link has left if that is at least `least_share` of the path's rate.

    Raises:
        ControllerError: an option is out of range.
        CoreError: the library is not built.
    """

    def __init__(
        self,
        topology: Topology,
        policy: Literal["published", "fair"] = "published",
        threshold_ns: int | None = None,
        weights: Mapping[tuple[int, int], float] | None = None,
        limit_rates: bool = True,
        *,
        patience_ns: int | None = 100_000_000,
        memory_ns: int = 100_000_000,
        least_share: float = 0.5,
    ) -> None:
        self._library = loaded(str(library()))
        self._handle: int | None = None
        self._hosts = len(topology.hosts)
        self._active_links = {link: place for place, link in enumerate(topology.active_links)}
        self._buffer = (RawGrant * self._hosts)()
        if policy not in POLICIES:
            raise ControllerError("policy", f"{policy!r} is unknown", "published or fair")
        options = RawOptions(
            hosts=self._hosts,
            switches=len(topology.switches),
            links=_links(topology),
            policy=POLICIES[policy],
            limit_rates=limit_rates,
            threshold_ns=FOREVER if threshold_ns is None else _check_ns("threshold", threshold_ns),
            patience_ns=FOREVER if patience_ns is None else _check_ns("patience", patience_ns),
            memory_ns=_check_ns("memory", memory_ns),
            least_share=least_share,
        )
        problem = ctypes.c_char_p()
        self._handle = self._library.xco_schedule_new(options, ctypes.byref(problem))
        if not self._handle:
            said = (problem.value or b"unknown").decode()
            raise ControllerError("scheduler", said, "correct the topology or the option")
        for (host, destination), weight in (weights or {}).items():
            self._weigh(host, destination, weight)

    def __del__(self) -> None:
        if getattr(self, "_handle", None):
            self._library.xco_schedule_free(self._handle)

    def backlogged(self, now: int, host: int, destinations: Sequence[int]) -> list[Grant]:
        """Event 3: the whole backlog group of a host, new or changed."""
        check_group(host, destinations, self._hosts)
        group = (ctypes.c_uint32 * len(destinations))(*destinations)
        return self._event("backlogged", now, host, group, len(destinations))

    def added(self, now: int, host: int, destination: int) -> list[Grant]:
        """Event 3 for one more destination of a host, without the rest of its group."""
        check_group(host, (destination,), self._hosts)
        return self._event("add", now, host, destination)

    def expired(self, now: int, host: int) -> list[Grant]:
        """Event 1: the timeslice of a host has ended."""
        check_host(host, self._hosts)
        return self._event("expired", now, host)

    def gave_up(self, now: int, host: int) -> list[Grant]:
        """Event 2, work conservation."""
        check_host(host, self._hosts)
        return self._event("gave_up", now, host)

    def leave(self, now: int, host: int) -> list[Grant]:
        """End the grant of a host that left; drop its backlog and its history."""
        check_host(host, self._hosts)
        return self._event("leave", now, host)

    def current(self, host: int) -> Grant:
        """Return what a host may do now."""
        check_host(host, self._hosts)
        return _grant(self._library.xco_schedule_current(self._handle, host))

    def used_bps(self, directed: int) -> int:
        """Return what is granted over a directed link, in bits/s; 0 outside the spanning tree."""
        return self._of_link("used_bps", directed)

    def reserved_bps(self, directed: int) -> int:
        """Return what a directed link reserves for a flow that has waited long, in bits/s."""
        return self._of_link("reserved_bps", directed)

    def reserved_for(self, host: int) -> int | None:
        """Return the destination for which a host is reserved, if its flow has waited long."""
        check_host(host, self._hosts)
        found = int(self._library.xco_schedule_reserved_for(self._handle, host))
        return None if found == NONE else found

    def full_rate_bps(self, host: int, destination: int) -> int:
        """Return the rate of a flow when all links are free, in bits/s; 0 if it never fits."""
        check_group(host, (destination,), self._hosts)
        return int(self._library.xco_schedule_full_rate_bps(self._handle, host, destination))

    def backlog(self, host: int) -> int:
        """Return to how many destinations a host is backlogged."""
        check_host(host, self._hosts)
        return int(self._library.xco_schedule_backlog(self._handle, host))

    def memory_bytes(self) -> int:
        """Return the memory that the schedule holds."""
        return int(self._library.xco_schedule_bytes(self._handle))

    def check(self) -> str | None:
        """Check all invariants; return the one that does not hold. Takes time."""
        found = self._library.xco_schedule_check(self._handle)
        return None if found is None else str(found.decode())

    def _of_link(self, name: str, directed: int) -> int:
        place = self._active_links.get(directed >> 1)
        if place is None:
            return 0
        call = getattr(self._library, f"xco_schedule_{name}")
        return int(call(self._handle, 2 * place + (directed & 1)))

    def _event(self, name: str, now: int, host: int, *rest: object) -> list[Grant]:
        call = getattr(self._library, f"xco_schedule_{name}")
        count = self._checked(call(self._handle, now, host, *rest, self._buffer))
        return [_grant(self._buffer[i]) for i in range(count)]

    def _weigh(self, host: int, destination: int, weight: float) -> None:
        check_group(host, (destination,), self._hosts)
        if not (math.isfinite(weight) and weight > 0):
            raise ControllerError("weight", f"{weight} is none", "a finite number above 0")
        call = self._library.xco_schedule_weigh
        self._checked(call(self._handle, host, destination, weight))

    def _checked(self, result: int) -> int:
        """Return a count of grants.

        Raises:
            ControllerError: out of memory; all other causes have been checked before.
        """
        if result < 0:
            raise ControllerError("scheduler", "no memory for more flows", "a larger machine")
        return int(result)


def _grant(raw: RawGrant) -> Grant:
    destination = None if raw.destination == NONE else int(raw.destination)
    return Grant(int(raw.host), destination, int(raw.rate_bps))


def _links(topology: Topology) -> "ctypes.Array[RawLink]":
    """Return the links of the spanning tree; nodes are numbered hosts first, then switches."""
    nodes = topology.node_indices
    links = [topology.links[index] for index in topology.active_links]
    return (RawLink * len(links))(
        *(RawLink(nodes[link.a], nodes[link.b], link.capacity_bps) for link in links)
    )


def _check_ns(field: str, value: int) -> int:
    """Return a duration that fits in 64 bits.

    Raises:
        ControllerError: it is negative, or too long for 64 bits.
    """
    if not 0 <= value < FOREVER:
        raise ControllerError(f"{field}_ns", f"{value} is no duration", "from 0 ns to 500 years")
    return value
