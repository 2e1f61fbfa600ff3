"""Simulated hosts for the soak in a separate process; five of them are not compliant.

`python -m benchmarks.policer.soak_faults FIRST COUNT ROUTERS FOLDER FAULTS` is
`benchmarks.policer.hosts` with the faults of some hosts ("7=lies,9=flaps"). A line on its standard
input begins the count; the next one, or its end, stops it, and then it prints each host's record.
"""

import os
import random
import sys
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import msgspec
import zmq

from benchmarks.policer.hosts import (
    CAPACITY,
    PERIOD_S,
    Router,
    SimulatedHost,
    build,
    listening,
    roomy_context,
    serve,
    tell,
)
from benchmarks.policer.soak_hosts import CountedHost
from policer.contracts.host import Host
from xtc.wire import Change, Refusal, Report, Telemetry, encode

AWAY_TICKS: Final = 8
"""The flapping host is present for this many of its periods, then absent for as many."""
LATE_S: Final = 2.5
"""Delay of the slow host's answers: longer than the policer waits."""
SWING_TICKS: Final = 6
"""Routers of the host that floods events are flooded for this many periods, then idle for as
many."""
CROWD: Final = 200
"""Number of its additional routers without a contract."""


class Liar(CountedHost):
    """A host that reports impossible values of invented routers and refuses all requests."""

    FAULT = "lies"

    def next_second(self, now: float) -> tuple[Report, ...]:
        """Report different routers each second; some forward more than is possible."""
        names = [f"ghost{random.randrange(10**6)}" for _ in range(100)]  # noqa: S311  load
        throughput = 1e6 if self.tick % 4 == 1 else CAPACITY / 100
        made_up = tuple(Router(name, CAPACITY).report(throughput, now) for name in names)
        return (*super().next_second(now), *made_up)

    def publish(self, now: float) -> None:
        """Stream each false report twice, the second time dated a minute ago."""
        super().publish(now)
        again = Telemetry(now - 60.0, self.tick, self.reports)
        self.telemetry.send(encode(again), zmq.NOBLOCK)

    def carry_out(self, change: Change, now: float) -> Refusal | None:
        """Do nothing, and answer with a different message every time."""
        del change, now
        return Refusal("refused", "vr", f"no {random.random()} today")  # noqa: S311  load


class Flapper(CountedHost):
    """A host that is absent half of the time, with all its connections."""

    FAULT = "flaps"

    def publish(self, now: float) -> None:
        """Close the sockets, or listen again at the same address, when it is time."""
        turn, begins = divmod(self.tick, AWAY_TICKS)
        if turn and not begins:
            self._listen(there=turn % 2 == 0)
        if turn % 2 == 0:
            super().publish(now)
            return
        self.tick += 1
        self.due_at += PERIOD_S

    def _listen(self, *, there: bool) -> None:
        context = self.requests.context
        for socket in (self.requests, self.telemetry):
            socket.close()
        if there:
            places = self.entry.requests, self.entry.telemetry
            self.requests = listening(context, zmq.ROUTER, self.secret, places[0])
            self.telemetry = listening(context, zmq.PUB, self.secret, places[1])
        else:  # unreachable sockets
            self.requests, self.telemetry = context.socket(zmq.ROUTER), context.socket(zmq.PUB)


@dataclass
class Slow(CountedHost):
    """A host that carries out everything, but answers after all timeouts."""

    FAULT = "slow"
    waiting: deque[tuple[float, list[bytes]]] = field(default_factory=deque)

    def answer(self, now: float) -> None:
        """Defer what arrives."""
        while self.requests.poll(0):
            self.waiting.append((now + LATE_S, self.requests.recv_multipart()))

    def publish(self, now: float) -> None:
        """Answer requests that have waited for long enough."""
        super().publish(now)
        while self.waiting and self.waiting[0][0] <= now:
            self.answer_to(self.waiting.popleft()[1], now)


class Twice(CountedHost):
    """A daemon with two entries: by its address and by its local sockets."""

    FAULT = "twice"


@dataclass
class Again(CountedHost):
    """The other entry of the same daemon."""

    FAULT = "twice"
    first: SimulatedHost | None = None

    def next_second(self, now: float) -> tuple[Report, ...]:
        """Report the same as the other entry: time passes once."""
        del now
        return () if self.first is None else self.first.reports


class Flooder(CountedHost):
    """A host that causes as many events as it can: many routers that are flooded in turns."""

    FAULT = "floods"

    def next_second(self, now: float) -> tuple[Report, ...]:
        """Switch loads from a flood to nothing and back."""
        if len(self.routers) < CROWD:
            names = [f"x{number}" for number in range(CROWD)]
            self.routers |= {name: Router(name, 0.0) for name in names}
        flooded = self.tick // SWING_TICKS % 2
        for name, router in self.routers.items():
            if name.startswith("x"):
                router.base_pps = flooded * CAPACITY / 50
        return super().next_second(now)


KINDS: Final[dict[str, type[CountedHost]]] = {
    kind.FAULT: kind for kind in (CountedHost, Liar, Flapper, Slow, Twice, Flooder)
}
FAULTS: Final = tuple(fault for fault in KINDS if fault)


def again(twice: SimulatedHost, folder: Path) -> Again:
    """Return a second entry of a host, by local sockets."""
    context, name = twice.requests.context, f"{twice.entry.name}-again"
    paths = [f"ipc://{folder / name}.{part}" for part in ("requests", "telemetry")]
    entry = Host(name, paths[0], paths[1], CAPACITY)
    sockets = (
        listening(context, zmq.ROUTER, None, paths[0]),
        listening(context, zmq.PUB, None, paths[1]),
    )
    due_at = twice.due_at + PERIOD_S / 2
    return Again(entry, b"", *sockets, twice.routers, due_at, first=twice)


def main() -> None:
    """Run the hosts."""
    first, count, routers = (int(word) for word in sys.argv[1:4])
    folder, words = Path(sys.argv[4]), sys.argv[5]
    faults = dict(word.split("=") for word in words.split(",") if word)
    context = roomy_context(count)
    hosts = [
        build(context, number, routers, KINDS[faults.get(str(number), "")])
        for number in range(first, first + count)
    ]
    hosts += [again(host, folder) for host in hosts if isinstance(host, Twice)]
    tell(host.entry for host in hosts)
    serve(hosts)
    os.read(sys.stdin.fileno(), 4096)
    counted = [host for host in hosts if isinstance(host, CountedHost)]
    for host in counted:
        host.count_anew()
    serve(hosts)
    print(msgspec.json.encode([host.seen for host in counted]).decode(), flush=True)


if __name__ == "__main__":
    main()
