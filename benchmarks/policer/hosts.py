"""Simulated hosts in a separate process, which talk to a policer as daemons do.

`python -m benchmarks.policer.hosts FIRST COUNT ROUTERS` binds two encrypted TCP sockets for each
host, prints the hosts' entries as JSON, and then streams each host's telemetry once a second,
carries out requests, and lets leases and limits end. The daemon's own code does not simulate the
routers, since it would take more CPU than the policer: each forwards its offered load, up to its
setpoint and to its share of the host.
"""

import random
import resource
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

import msgspec
import zmq

from policer.contracts.host import Host
from xtc.wire import (
    Activate,
    Batch,
    Change,
    Envelope,
    Finding,
    Limit,
    Mode,
    Outcomes,
    Refusal,
    Reply,
    Report,
    Telemetry,
    decode_request,
    encode,
)

PERIOD_S: Final = 1.0
CAPACITY: Final = 100e3
"""Packets/s of a host."""
PROMISED: Final = 0.8
"""Of a host's capacity, to its routers in equal parts."""
LOAD: Final = 1.2
"""Offered load of a host's routers, as a multiple of its capacity: its contracts are engaged all
the time."""
NOISE: Final = 0.1
"""Scatter of a router's offered load from second to second."""
FLOODS_EVERY: Final = 50
"""One host in this many has a router with ten times the others' offered load."""


@dataclass
class Router:
    """One router: its offered load, and its orders."""

    name: str
    base_pps: float
    offered: float = 0.0
    setpoint: float | None = None
    ends_at: float = 0.0
    """Of the lease."""
    epoch: int | None = None
    sequence: int | None = None
    """Of the lease."""
    limit: float | None = None
    limit_ends_at: float = 0.0

    def pass_time(self, now: float) -> None:
        """Let leases and limits end, and the offered load change."""
        if self.setpoint is not None and now >= self.ends_at:
            self.setpoint = None
        if self.limit is not None and now >= self.limit_ends_at:
            self.limit = None
        self.offered = max(0.0, random.gauss(1.0, NOISE)) * self.base_pps

    @property
    def wanted(self) -> float:
        """Its throughput if it had the host to itself."""
        bounds = [bound for bound in (self.setpoint, self.limit) if bound is not None]
        return min(self.offered, *bounds) if bounds else self.offered

    def obey(self, lease: Activate, now: float) -> None:
        """Accept a lease."""
        self.setpoint, self.ends_at = lease.setpoint_pps, now + (lease.ttl_s or float("inf"))
        self.epoch, self.sequence = lease.epoch, lease.sequence

    def report(self, throughput: float, now: float) -> Report:
        """Return its state."""
        held = self.setpoint is not None
        return Report(
            vr=self.name,
            active=held,
            mode=Mode.CLOSED_LOOP if held else Mode.RELEASED,
            finding=Finding.NONE,
            setpoint_pps=self.setpoint,
            throughput_pps=throughput,
            offered_pps=self.offered,
            cap=throughput / CAPACITY if held else None,
            used=throughput / CAPACITY,
            binding=held,
            lease_remaining_s=self.ends_at - now if held else None,
            sample_age_s=0.1 if held else None,
            interfaces=(f"{self.name}.0", f"{self.name}.1"),
            law="default",
            limit_pps=self.limit,
            epoch=self.epoch if held else None,
            sequence=self.sequence if held else None,
            over_promise_packets=0.0,
            under_promise_packets=0.0,
            breach_seconds=0.0,
        )


@dataclass
class SimulatedHost:
    """One host with its sockets."""

    entry: Host
    secret: bytes
    """Its CURVE key."""
    requests: "zmq.Socket[bytes]"
    telemetry: "zmq.Socket[bytes]"
    routers: dict[str, Router]
    due_at: float
    tick: int = 0
    told: int = field(default=0)
    """Requests carried out."""
    reports: tuple[Report, ...] = ()
    """Of the last second."""

    def publish(self, now: float) -> None:
        """Simulate a second and stream it."""
        self.reports = self.next_second(now)
        self.tick += 1
        self.due_at += PERIOD_S
        self.telemetry.send(encode(Telemetry(now, self.tick, self.reports)), zmq.NOBLOCK)

    def next_second(self, now: float) -> tuple[Report, ...]:
        """Let all routers forward for a second, and report it."""
        for router in self.routers.values():
            router.pass_time(now)
        wanted = sum(router.wanted for router in self.routers.values())
        share = min(1.0, CAPACITY / wanted) if wanted else 1.0
        return tuple(r.report(share * r.wanted, now) for r in self.routers.values())

    def answer(self, now: float) -> None:
        """Carry out the waiting requests."""
        while self.requests.poll(0):
            self.answer_to(self.requests.recv_multipart(), now)

    def answer_to(self, message: list[bytes], now: float) -> None:
        """Carry out one message."""
        envelope = decode_request(message[-1])
        reply = encode(Reply(self._carried_out(envelope, now), id=envelope.id))
        self.requests.send_multipart([*message[:-1], reply], zmq.NOBLOCK)

    def _carried_out(self, envelope: Envelope, now: float) -> Outcomes:
        changes = envelope.request.requests if isinstance(envelope.request, Batch) else ()
        self.told += len(changes)
        return Outcomes(tuple(self.carry_out(change, now) for change in changes))

    def carry_out(self, change: Change, now: float) -> Refusal | None:
        """Carry out a request; return the reason for a refusal."""
        if isinstance(change, Activate):
            self.routers[change.vr].obey(change, now)
        elif isinstance(change, Limit):
            router = self.routers[change.vr]
            router.limit = change.rate_pps
            router.limit_ends_at = now + (change.ttl_s or float("inf"))
        return None


def build(
    context: "zmq.Context[zmq.Socket[bytes]]",
    number: int,
    routers: int,
    kind: type[SimulatedHost] = SimulatedHost,
) -> SimulatedHost:
    """Return a host that listens."""
    public, secret = zmq.curve_keypair()
    sockets = [listening(context, role, secret) for role in (zmq.ROUTER, zmq.PUB)]
    addresses = [socket.get_string(zmq.LAST_ENDPOINT) for socket in sockets]
    entry = Host(
        name=f"h{number:04}",
        requests=addresses[0],
        telemetry=addresses[1],
        capacity_pps=CAPACITY,
        server_key=public.decode(),
    )
    base = LOAD * CAPACITY / routers
    made = {f"vr{n}": Router(f"vr{n}", base * random.uniform(0.5, 1.5)) for n in range(routers)}  # noqa: S311  load
    if number % FLOODS_EVERY == 0:
        made["vr0"].base_pps = 10 * base
    begins = time.monotonic() + random.random() * PERIOD_S  # noqa: S311  hosts are not in step
    return kind(entry, secret, sockets[0], sockets[1], made, begins)


def listening(
    context: "zmq.Context[zmq.Socket[bytes]]",
    role: int,
    secret: bytes | None = None,
    address: str = "tcp://127.0.0.1:*",
) -> "zmq.Socket[bytes]":
    """Return a listening socket, encrypted if there is a key."""
    socket = context.socket(role)
    socket.set(zmq.LINGER, 0)
    if secret is not None:
        socket.set(zmq.CURVE_SERVER, 1)
        socket.set(zmq.CURVE_SECRETKEY, secret)
    socket.bind(address)
    return socket


def serve(hosts: Sequence[SimulatedHost]) -> None:
    """Serve until standard input has data or ends."""
    poller, by_socket = _polled(hosts)
    while True:
        if by_socket.keys() != {host.requests for host in hosts}:  # one listens again
            poller, by_socket = _polled(hosts)
        next_at = min(host.due_at for host in hosts)
        ready = poller.poll(max(0, round((next_at - time.monotonic()) * 1000)))
        now = time.monotonic()
        for socket, _ in ready:
            if not isinstance(socket, zmq.Socket):
                return
            by_socket[socket].answer(now)
        for host in hosts:
            if host.due_at <= now:
                host.publish(now)


def _polled(
    hosts: Sequence[SimulatedHost],
) -> "tuple[zmq.Poller, dict[zmq.Socket[bytes], SimulatedHost]]":
    poller = zmq.Poller()
    poller.register(sys.stdin.fileno(), zmq.POLLIN)
    by_socket = {host.requests: host for host in hosts}
    for socket in by_socket:
        poller.register(socket, zmq.POLLIN)
    return poller, by_socket


def roomy_context(hosts: int) -> "zmq.Context[zmq.Socket[bytes]]":
    """Return a context for the sockets of a number of hosts."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    context.set(zmq.MAX_SOCKETS, 6 * hosts + 16)
    return context


def tell(hosts: Iterable[Host]) -> None:
    """Print entries for the policer's database."""
    print(msgspec.json.encode(list(hosts)).decode(), flush=True)


def main() -> None:
    """Run the hosts."""
    first, count, routers = (int(word) for word in sys.argv[1:4])
    context = roomy_context(count)
    hosts = [build(context, first + number, routers) for number in range(count)]
    tell(host.entry for host in hosts)
    serve(hosts)


if __name__ == "__main__":
    main()
