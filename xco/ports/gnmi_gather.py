"""Sorts the notifications of one stream by port: pure, with time as a parameter."""

from collections.abc import Sequence
from typing import Any

from xco.errors import PortUncounted, SwitchAway
from xco.ports.gnmi_paths import Elements, GnmiPort, elements, paths, written
from xco.ports.gnmi_samples import (
    INTERFACE_OCTETS,
    MARKS,
    QUEUE_OCTETS,
    Arrival,
    Sample,
    awaiting,
    deleted,
    ended,
    is_complete,
    is_stale,
    merged,
    reading,
    repeats,
    stale_after_ns,
    taken,
)
from xco.ports.gnmi_values import numbers, one_number
from xco.ports.reader import Reading


class Gathered:
    """The samples of all ports of one stream, since it was opened."""

    def __init__(self, ports: Sequence[GnmiPort], sample_ns: int, opened_ns: int) -> None:
        self._ports, self._limit_ns = ports, stale_after_ns(sample_ns)
        self._samples = [awaiting(opened_ns)] * len(ports)
        self._due: list[Reading | None] = [None] * len(ports)
        self._reported = [False] * len(ports)
        self._answered, self._stray = False, ""
        self._routes: dict[Elements, list[tuple[int, bool]]] = {}
        for index, port in enumerate(ports):
            for path, marks in zip(paths(port), (False, True), strict=False):
                self._routes.setdefault(elements(path), []).append((index, marks))

    def take(self, response: Any, arrival: Arrival) -> None:
        """Take one SubscribeResponse; what is not understood is kept as a problem of its port."""
        self._answered = True
        for gone in response.update.delete:
            self._delete(elements(response.update.prefix, gone), arrival.now_ns)
        for update in response.update.update:
            self._update(elements(response.update.prefix, update.path), update.val, arrival)
        for index in range(len(self._ports)) if response.sync_response else ():
            self._end(index)

    def _update(self, path: Elements, value: Any, arrival: Arrival) -> None:
        ends = range(1, len(path) + 1)
        routes = [(end, route) for end in ends for route in self._routes.get(path[:end], ())]
        for end, (index, marks) in routes:
            self._merge(index, _found(self._ports[index], path[end:], value, marks=marks), arrival)
        if not routes:
            self._stray = written(path)

    def _merge(self, index: int, found: dict[str, int | None], arrival: Arrival) -> None:
        if repeats(self._samples[index], found):
            self._end(index)
        sample = merged(self._samples[index], found, arrival, self._limit_ns)
        if is_complete(sample):
            self._due[index] = self._of(index, sample)
            sample = taken(sample)
        self._samples[index] = sample

    def _end(self, index: int) -> None:
        self._due[index] = self._of(index, self._samples[index])
        self._samples[index] = ended(self._samples[index])

    def _delete(self, path: Elements, now_ns: int) -> None:
        for route, users in self._routes.items():
            for index, marks in users:
                if not marks and path and route[: len(path)] == path:
                    self._samples[index] = deleted(self._samples[index], now_ns)
                    self._due[index] = self._of(index, self._samples[index])

    def _of(self, index: int, sample: Sample) -> Reading:
        port = self._ports[index]
        return reading(str(port), sample, queue=bool(port.queue), marks=bool(port.marks))

    def ready(self) -> bool:
        """Whether readings are due: the first time those of all ports."""
        due = [each is not None for each in self._due]
        return any(due) if any(self._reported) else all(due)

    def patience_ns(self, now_ns: int) -> int:
        """Return for how long nothing becomes stale; 0: something has."""
        ends = [each.heard_ns + self._limit_ns for each in self._samples]
        known = [
            end for end, told in zip(ends, self._reported, strict=True) if told and end <= now_ns
        ]
        return max(0, min(set(ends).difference(known), default=now_ns) - now_ns)

    def readings(self, now_ns: int, address: str) -> list[Reading | None]:
        """Return the readings that are due, and the errors of ports that are stale.

        Raises:
            SwitchAway: no port has sent anything for too long.
        """
        if all(is_stale(each, now_ns, self._limit_ns) for each in self._samples):
            raise self._silence(address)
        first = not any(self._reported)
        return [self._reading(index, now_ns, first=first) for index in range(len(self._ports))]

    def _silence(self, address: str) -> SwitchAway:
        if not self._answered:
            return SwitchAway(address, "no answer", "check address, port, and that gNMI runs")
        fix = 'check `interface` and that the switch streams, or write `mode = "get"`'
        return SwitchAway(address, f"no update for {self._limit()}{self._sent()}", fix)

    def _reading(self, index: int, now_ns: int, *, first: bool) -> Reading | None:
        due, self._due[index] = self._due[index], None
        stale = is_stale(self._samples[index], now_ns, self._limit_ns)
        if due is None and stale and not self._samples[index].gone:
            problem = f"no update for {self._limit()}{self._sent()}"
            fix = "correct `interface`, `queue` or `marks`"
            due = PortUncounted(str(self._ports[index]), problem, fix)
        elif due is None and first:
            due = self._of(index, self._samples[index])
        self._reported[index] = self._reported[index] or due is not None
        return due

    def _limit(self) -> str:
        return f"{self._limit_ns / 1e9:g} s"

    def _sent(self) -> str:
        return f"; the switch sends {self._stray}, which was not requested" if self._stray else ""


def _found(port: GnmiPort, below: Elements, value: Any, *, marks: bool) -> dict[str, int | None]:
    """Return the counters of an update, by its path below the one that was requested."""
    if marks:
        return {MARKS: one_number(value)}
    if len(below) > 1:
        return {}
    container = QUEUE_OCTETS if port.queue else INTERFACE_OCTETS
    return numbers(below[0][0] if below else container, value)
