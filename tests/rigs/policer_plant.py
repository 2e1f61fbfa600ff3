"""A simulated host and a policer before it: leases, caps, floods, and a CPU that pays for drops.

The host carries each packet into a router (`delivery`, a share of a packet's cost) also when the
router then drops it: the collapse of the paper's section 7.3. What it cannot carry, it drops for
all alike, either before that is counted or as its routers starve. Leases follow the rules of the
real daemon (`xtc.lease`); caps follow its loop: a cap is set at the tick after a lease, and again
only while it binds.
"""

import random
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import count

from common.setpoint import Setpoint
from common.units import Seconds
from policer.contracts.contract import Contract
from policer.decide.dispatch import Sent, Terms, due
from policer.decide.round import decide_round
from policer.decide.state import HostState, HostView, Order, Policy, Round, RouterState
from policer.decide.telemetry import HostTelemetry, seen
from xtc.errors import Refused
from xtc.lease import Lease, check_successor
from xtc.modes import Finding, Mode
from xtc.wire import Activate, Limit, Refusal, Report, Telemetry

Load = Callable[[float], float]
"""What would be sent towards a router at an instant, in packets/s."""
GROWTH, CAREFUL = 1.5, 1.05
"""What an elastic flow tries after a second without loss: at most, and just after one with loss."""
TOLD = 0.02
"""Cost of a packet that the limiter drops, beside one that is forwarded."""


def steady(rate: float) -> Load:
    return lambda _: rate


def between(begin: float, end: float, rate: float, otherwise: float = 0.0) -> Load:
    return lambda at: rate if begin <= at < end else otherwise


@dataclass
class Router:
    """A router, its traffic, and its daemon's loop."""

    load: Load
    elastic: bool = False
    """Whether its traffic follows what gets through, as TCP does."""
    passes: float = 1.0
    """What part of its packets it forwards; a firewall drops the rest."""
    fastest: float = float("inf")
    """What its own CPU can forward, in packets/s."""
    default: float | None = None
    """The setpoint of its daemon's configuration."""
    size: Load = steady(350.0)
    """Bytes of its packets at an instant; what they cost does not depend on that."""
    bytes: float = 350.0
    """Of the packets of the last second."""
    lease: Lease | None = None
    held: float | None = None
    """The throughput that its cap allows; None where it is uncapped."""
    limit: float | None = None
    limit_ends: float = 0.0
    sends: float = 0.0
    lossless: int = 100
    """Seconds since its elastic traffic met loss."""
    offered: float = 0.0
    forwarded: float = 0.0
    binding: bool = False
    blind: bool = False


@dataclass
class SimulatedHost:
    """All routers of a host, and the CPU that they share."""

    routers: dict[str, Router]
    capacity: float = 100e3
    """What it forwards when nothing is dropped, in packets/s."""
    delivery: float = 0.5
    """Cost of carrying a packet into a router, as a share of forwarding it."""
    noise: float = 0.0
    """Standard deviation of loads and of held throughputs, as a share."""
    counts_limited: bool = True
    """Whether packets that the limiter drops show in the offered load."""
    hides_drops: bool = True
    """Whether it drops what it cannot carry before that is counted; else its routers starve."""
    seed: int = 1
    now: float = 0.0
    tick: int = 0
    clock_offset: float = 1000.0
    epoch: int = 0
    refusals: list[Refusal] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)

    def advance(self) -> Telemetry:
        """Let a second pass, and tell what it showed."""
        for router in self.routers.values():
            self._expire(router)
            self._send(router)
        carried = self._carried()
        for router in self.routers.values():
            self._forward(router, carried)
        self.now += 1.0
        self.tick += 1
        for router in self.routers.values():
            self._control(router)
        return self.telemetry()

    def telemetry(self) -> Telemetry:
        reports = tuple(self._report(vr, router) for vr, router in self.routers.items())
        return Telemetry(self.now + self.clock_offset, self.tick, reports)

    def carry_out(self, requests: Iterable[Activate | Limit]) -> None:
        """Obey what may be obeyed, by the daemon's rules; keep the refusals."""
        for request in requests:
            router = self.routers[request.vr]
            try:
                if isinstance(request, Limit):
                    self._limit(router, request)
                else:
                    self._grant(router, request)
            except Refused as refused:
                self.refusals.append(Refusal(refused.code, refused.field, refused.problem))

    def restart_daemon(self) -> None:
        """Start the daemon anew: leases and epoch are in its journal, limits are lifted."""
        self.tick = 0
        for router in self.routers.values():
            router.limit = None

    def _limit(self, router: Router, request: Limit) -> None:
        if request.epoch is not None and request.epoch < self.epoch:
            raise Refused("stale_epoch", "epoch", "lower than one that was obeyed")
        router.limit = request.rate_pps
        router.limit_ends = self.now + (request.ttl_s or float("inf"))

    def _grant(self, router: Router, request: Activate) -> None:
        assert request.ttl_s is not None, "the policer gave a lease without end"
        if request.ttl_s < 2:
            raise Refused("too_short", "ttl_s", "too short")
        offer = Lease.of(
            request.setpoint,
            epoch=request.epoch,
            sequence=request.sequence,
            expires_at=self.now + request.ttl_s,
            kind=request.kind,
        )
        check_successor(router.lease, offer, Seconds(self.now), highest_epoch=self.epoch)
        self.epoch = max(self.epoch, request.epoch)
        router.lease = offer

    def _expire(self, router: Router) -> None:
        if router.limit is not None and self.now >= router.limit_ends:
            router.limit = None
        if router.default is not None and (
            router.lease is None or router.lease.expired(Seconds(self.now))
        ):
            lease = router.lease or Lease(router.default)
            router.lease = lease.configured_as(Setpoint(router.default))
        if router.lease is None or router.lease.expired(Seconds(self.now)):
            router.held = None

    def _noisy(self, rate: float) -> float:
        return max(0.0, rate * (1 + self.noise * self._random.gauss(0, 1)))

    def _send(self, router: Router) -> None:
        most = self._noisy(router.load(self.now))
        router.bytes = router.size(self.now)
        if router.elastic:
            most = min(most, _tried(router))
        router.sends = most

    def _carried(self) -> float:
        """Return the share of all that is sent which the host can carry."""
        low, high = 0.0, 1.0
        if self._cost(1.0) <= self.capacity:
            return 1.0
        for _ in range(50):
            middle = (low + high) / 2
            low, high = (middle, high) if self._cost(middle) <= self.capacity else (low, middle)
        return low

    def _cost(self, carried: float) -> float:
        total = 0.0
        for router in self.routers.values():
            sent, passed, out = self._flow(router, carried)
            total += self.delivery * passed + (1 - self.delivery) * out + TOLD * (sent - passed)
        return total

    def _flow(self, router: Router, carried: float) -> tuple[float, float, float]:
        """Return what is sent to a router, what of it passes the limit, and what comes out."""
        sent = router.sends * (carried if self.hides_drops else 1.0)
        passed = sent if router.limit is None else min(sent, router.limit)
        out = min(router.passes * passed, _most(router))
        return sent, passed, out * (1.0 if self.hides_drops else carried)

    def _forward(self, router: Router, carried: float) -> None:
        sent, passed, out = self._flow(router, carried)
        most = _most(router)
        router.binding = router.held is not None and out >= 0.99 * most
        router.forwarded = min(self._noisy(out), router.passes * passed) if router.binding else out
        router.offered = sent if self.counts_limited else passed

    def _control(self, router: Router) -> None:
        """Set the cap at a tick: once throughput passes the setpoint, then while it binds."""
        lease = router.lease
        if lease is None or lease.expired(Seconds(self.now)):
            router.held = None
        elif router.binding or router.forwarded > _held_at(router):
            router.held = _held_at(router)

    def _report(self, vr: str, router: Router) -> Report:
        lease, now = router.lease, Seconds(self.now)
        valid = lease is not None and not lease.expired(now)
        ended = None if lease is None else lease.expires_at
        return Report(
            vr=vr,
            active=lease is not None,
            mode=Mode.CLOSED_LOOP if valid else Mode.RELEASED,
            finding=_finding(router, valid=valid),
            setpoint_pps=None if lease is None else lease.setpoint.pps,
            throughput_pps=None if router.blind else router.forwarded,
            offered_pps=None if router.blind else router.offered,
            cap=None if router.held is None else 0.5,
            used=0.5,
            binding=router.binding,
            lease_remaining_s=None if ended is None else max(0.0, ended - self.now),
            sample_age_s=None if lease is None else 0.0 if valid and not router.blind else 60.0,
            interfaces=("vif1.0", "vif1.1"),
            limit_pps=router.limit,
            setpoint_bps=None if lease is None else lease.setpoint.bps,
            throughput_bps=None if router.blind else 8 * router.bytes * router.forwarded,
            offered_bps=None if router.blind else 8 * router.bytes * router.offered,
        )


def _tried(router: Router) -> float:
    """Return what an elastic flow sends next; it learns of loss that its host hides, too."""
    if router.sends > 1.02 * router.forwarded:
        router.lossless = 0
        return CAREFUL * max(router.forwarded, 1.0)
    router.lossless += 1
    return min(GROWTH, CAREFUL**router.lossless) * router.sends + 100


def _held_at(router: Router) -> float:
    """Return the setpoint of a router's lease, in packets/s of the size that it forwards."""
    assert router.lease is not None, "it has no lease"
    setpoint = router.lease.setpoint
    return setpoint.rate if setpoint.bps is None else setpoint.bps / 8 / router.bytes


def _most(router: Router) -> float:
    return min(router.fastest, float("inf") if router.held is None else router.held)


def _finding(router: Router, *, valid: bool) -> Finding:
    """Say what the daemon's loop would find (`xtc.control.instance`)."""
    if router.lease is None:
        return Finding.NONE
    if not valid:
        return Finding.LEASE_ENDED
    if router.blind:
        return Finding.BLIND
    setpoint = _held_at(router)
    if not router.binding and router.forwarded < setpoint:
        return Finding.NOT_BINDING
    return Finding.NONE if abs(router.forwarded - setpoint) <= 0.1 * setpoint else Finding.SETTLING


@dataclass(frozen=True)
class Frame:
    """One second of the closed loop."""

    at: float
    engaged: bool
    forwarded: Mapping[str, float]
    offered: Mapping[str, float]
    orders: Mapping[str, Order]
    round: Round
    requests: tuple[Activate | Limit, ...]

    @property
    def aggregate(self) -> float:
        return sum(self.forwarded.values())

    @property
    def kinds(self) -> list[str]:
        return [note.kind for note in self.round.notes]


class PolicedHost:
    """A host and a policer that holds its contracts; messages may be lost on both ways."""

    def __init__(
        self,
        host: SimulatedHost,
        contracts: Mapping[str, Contract],
        *,
        declared: float | None = None,
        policy: Policy | None = None,
        loss: float = 0.0,
    ) -> None:
        self.host = host
        self.contracts = dict(contracts)
        self.declared = host.capacity if declared is None else declared
        self.policy = policy or Policy()
        self.loss = loss
        self.state = HostState()
        self.telemetry = HostTelemetry()
        self.sent: Mapping[str, Sent] = {}
        self.epoch = 1
        self.frames: list[Frame] = []
        self._sequence = count(1)
        self._random = random.Random(host.seed + 1)

    def take_over(self) -> None:
        """Become another policer: of the old one's knowledge, only punishments are durable."""
        self.epoch += 1
        self._sequence = count(1)
        self.sent, self.telemetry = {}, HostTelemetry()
        self.state = HostState(
            at=self.host.now,
            routers={
                vr: RouterState(punishment=state.punishment)
                for vr, state in self.state.routers.items()
                if state.punishment.height
            },
        )

    def run(self, seconds: int) -> list[Frame]:
        """Let time pass and return its frames."""
        frames = [self.second() for _ in range(seconds)]
        self.frames += frames
        return frames

    def second(self) -> Frame:
        telemetry = self.host.advance()
        now = self.host.now
        if self._random.random() >= self.loss:
            self.telemetry = seen(self.telemetry, telemetry, now, self.declared)
        decided = decide_round(
            now, HostView(self.declared, self.contracts, self.telemetry), self.state, self.policy
        )
        self.state = decided.state
        told = due(
            now,
            decided.orders,
            self.sent,
            self.telemetry.routers,
            Terms(self.epoch),
            lambda: next(self._sequence),
        )
        self.sent = told.sent
        self.host.carry_out(r for r in told.requests if self._random.random() >= self.loss)
        routers = self.host.routers.items()
        return Frame(
            now,
            decided.state.standing.engaged,
            {vr: router.forwarded for vr, router in routers},
            {vr: router.offered for vr, router in routers},
            decided.orders,
            decided,
            told.requests,
        )


def report_of(vr: str = "a", **changed: object) -> Report:
    """Return the report of a router that is let go and idle, but for what is given."""
    fields: dict[str, object] = {
        "active": False,
        "mode": Mode.RELEASED,
        "finding": Finding.NONE,
        "setpoint_pps": None,
        "throughput_pps": 0.0,
        "offered_pps": 0.0,
        "cap": None,
        "used": None,
        "binding": None,
        "lease_remaining_s": None,
        "sample_age_s": None,
        "interfaces": ("vif1.0",),
    }
    return Report(vr=vr, **(fields | changed))  # type: ignore[arg-type]  # of any field


def held_report(vr: str = "a", setpoint: float = 1e4, **changed: object) -> Report:
    """Return the report of a router that is held at a setpoint and fills it."""
    fields: dict[str, object] = {
        "active": True,
        "mode": Mode.CLOSED_LOOP,
        "setpoint_pps": setpoint,
        "throughput_pps": setpoint,
        "offered_pps": setpoint,
        "binding": True,
        "lease_remaining_s": 12.0,
        "sample_age_s": 0.0,
    }
    return report_of(vr, **(fields | changed))
