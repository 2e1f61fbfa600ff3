"""Simulated hosts that record every order, and whether the real rules made them obey it.

`python -m benchmarks.policer.alternate_hosts COUNT ROUTERS` is `benchmarks.policer.hosts`; leases
are obeyed as the daemon obeys them (`xtc.lease`). When its standard input ends, or a line comes, it
prints all orders in the order in which they came.
"""

import sys
from dataclasses import dataclass, field

import msgspec

from benchmarks.policer.hosts import SimulatedHost, build, roomy_context, serve, tell
from common.units import Seconds
from xtc.errors import Refused
from xtc.lease import Lease, check_successor
from xtc.wire import Activate, Change, Limit, Refusal


class Order(msgspec.Struct, frozen=True):
    """A lease that came."""

    at: float
    """By the kernel's monotonic clock."""
    host: str
    vr: str
    epoch: int
    sequence: int
    refused: str = ""
    """Code of the refusal; "" is obeyed."""

    @property
    def number(self) -> tuple[int, int]:
        """The pair that must rise from lease to lease."""
        return self.epoch, self.sequence


@dataclass
class WitnessHost(SimulatedHost):
    """A host that records its orders."""

    orders: list[Order] = field(default_factory=list)
    lapsed: list[float] = field(default_factory=list)
    """When a lease ended without another in its place."""
    highest_epoch: int = 0
    leases: dict[str, Lease] = field(default_factory=dict)

    def publish(self, now: float) -> None:
        """Simulate a second and stream it."""
        ended = (r.setpoint is not None and now >= r.ends_at for r in self.routers.values())
        self.lapsed += [now] * sum(ended)
        super().publish(now)

    def carry_out(self, change: Change, now: float) -> Refusal | None:
        """Carry out a request, if its epoch and its sequence allow that."""
        refusal = self._refusal(change, now)
        if isinstance(change, Activate):
            number, code = (change.epoch, change.sequence), refusal.code if refusal else ""
            self.orders.append(Order(now, self.entry.name, change.vr, *number, code))
        return refusal or super().carry_out(change, now)

    def _refusal(self, change: Change, now: float) -> Refusal | None:
        if isinstance(change, Limit) and (change.epoch or 0) < self.highest_epoch:
            return Refusal("stale_epoch", "epoch", f"{change.epoch} is lower")
        try:
            if isinstance(change, Activate):
                self._take(change, now)
        except Refused as error:
            return Refusal(error.code, error.field, error.problem, error.fix)
        return None

    def _take(self, change: Activate, now: float) -> None:
        """Accept a lease; raises Refused where the daemon would."""
        lease = Lease.of(
            change.setpoint,
            epoch=change.epoch,
            sequence=change.sequence,
            expires_at=None if change.ttl_s is None else now + change.ttl_s,
            kind=change.kind,
        )
        before, highest = self.leases.get(change.vr), self.highest_epoch
        check_successor(before, lease, Seconds(now), highest_epoch=highest)
        self.leases[change.vr], self.highest_epoch = lease, change.epoch


class Kept(msgspec.Struct, frozen=True):
    """The records of all hosts."""

    orders: list[Order]
    lapsed: list[float]


def main() -> None:
    """Run the hosts."""
    count, routers = (int(word) for word in sys.argv[1:3])
    context = roomy_context(count)
    hosts = [build(context, number, routers, WitnessHost) for number in range(count)]
    tell(host.entry for host in hosts)
    serve(hosts)
    witnesses = [host for host in hosts if isinstance(host, WitnessHost)]
    orders = sorted((one for host in witnesses for one in host.orders), key=lambda one: one.at)
    kept = Kept(orders, sorted(at for host in witnesses for at in host.lapsed))
    print(msgspec.json.encode(kept).decode(), flush=True)


if __name__ == "__main__":
    main()
