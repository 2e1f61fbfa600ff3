"""Prometheus metrics of the policer, made from the fleet when asked for: rounds pay nothing.

What only a sequence of moments can tell, such as how long a guarantee was missed, is counted once
a second by `Metrics.look`.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import get_args

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from common import __version__
from policer.contracts.ladder import Step
from policer.contracts.overrides import BrakeMode
from policer.decide.state import UNPROMISED
from policer.fleet.compliance import Counted
from policer.fleet.live import Fleet, HostLive
from policer.webhooks.outcomes import OUTCOMES

ROUND_BUCKETS = (0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
REST_BUCKETS = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
LONGEST_LOOK_S = 5.0
"""A look that comes later than this after the one before does not know what lies between."""


@dataclass(frozen=True, slots=True)
class Health:
    """How the service itself is."""

    heartbeat_age_s: float = 0.0
    store_ok: bool = True
    events_waiting: int = 0
    events_dropped: int = 0
    """Since the start."""
    history_waiting: int = 0
    """Rows."""
    history_dropped: int = 0
    """Rows, since the start."""


class Metrics:
    """Everything that the policer counts, in a registry of its own."""

    def __init__(self, fleet: Fleet, clock: Callable[[], float]) -> None:
        self.registry = CollectorRegistry()
        self.health = Health()
        self.missed: dict[tuple[str, str], float] = {}
        """Seconds that each router had less than its guarantee, by host and router."""
        self._fleet, self._clock = fleet, clock
        self._looked_at: float | None = None
        self.rounds = Histogram(
            "policer_round_duration_seconds",
            "Duration of a host's round",
            buckets=ROUND_BUCKETS,
            registry=self.registry,
        )
        self.requests = Histogram(
            "policer_rest_request_duration_seconds",
            "Response time of requests, without streams",
            ("method", "route", "status"),
            buckets=REST_BUCKETS,
            registry=self.registry,
        )
        self._throttled = Counter(
            "policer_rest_throttled",
            "Throttled requests",
            ("client",),
            registry=self.registry,
        )
        for client in ("address", "guess", "token"):
            self._throttled.labels(client)
        self._store_failed = Counter(
            "policer_store_failed_seconds",
            "Time in which the database failed",
            registry=self.registry,
        )
        self.reload_ok = Gauge(
            "policer_settings_last_reload_successful",
            "Whether the settings in force are the file's",
            registry=self.registry,
        )
        self.reload_ok.set(1)
        self.webhooks = Counter(
            "policer_webhook_attempts",
            "Attempts to deliver a message to a webhook",
            ("outcome",),
            registry=self.registry,
        )
        for outcome in OUTCOMES:
            self.webhooks.labels(outcome)
        self.dead_letters = Counter(
            "policer_webhook_dead_letters",
            "Messages to webhooks that are given up",
            registry=self.registry,
        )
        build = Gauge(
            "policer_build_info",
            "Version of the running program",
            ("version",),
            registry=self.registry,
        )
        build.labels(__version__).set(1)
        self.registry.register(_OfNow(self, fleet, clock))

    def answered(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count a request that was answered; a stream lasts as long as its client likes."""
        if not route.endswith("/stream"):
            self.requests.labels(method, route, str(status)).observe(seconds)

    def throttled(self, client: str) -> None:
        """Count a request that came too often: of a token, an address, or one that guesses."""
        self._throttled.labels(client).inc()

    def tried(self, outcome: str) -> None:
        """Count an attempt to deliver a message."""
        self.webhooks.labels(outcome).inc()

    def look(self, health: Health) -> None:
        """Count what went on since the last look; to be called about once a second."""
        now, self.health = self._clock(), health
        elapsed = 0.0 if self._looked_at is None else now - self._looked_at
        self._looked_at = now
        if not 0 < elapsed <= LONGEST_LOOK_S:
            return
        if not health.store_ok:
            self._store_failed.inc(elapsed)
        hosts = self._fleet.hosts
        if self._fleet.leadership.leading:
            self._count_missed(hosts, now, elapsed)
        for host, vr in list(self.missed):
            live = hosts.get(host)
            # A host may call a router that a contract follows by another name with every tick.
            if live is None or (vr not in live.contracts and vr not in live.telemetry.routers):
                del self.missed[host, vr]

    def _count_missed(self, hosts: Mapping[str, HostLive], now: float, elapsed: float) -> None:
        """Count for each router that misses its guarantee; the leader alone knows that."""
        for name, live in hosts.items():
            if live.telemetry.reachable(now):
                for vr in live.state.standing.harmed:
                    self.missed[name, vr] = self.missed.get((name, vr), 0.0) + elapsed


class _OfNow(Collector):
    """What can be told from one moment."""

    def __init__(self, metrics: Metrics, fleet: Fleet, clock: Callable[[], float]) -> None:
        self._metrics, self._fleet, self._clock = metrics, fleet, clock

    def collect(self) -> Iterator[Metric]:
        """Yield one family after the other."""
        lives = tuple(self._fleet.hosts.values())
        yield from _of_service(self._metrics.health)
        yield from _of_history(self._metrics.health)
        yield from _of_leadership(self._fleet)
        yield from _of_overrides(self._fleet, lives)
        yield from _of_hosts(lives, self._clock())
        yield from _of_routers(lives)
        yield from _kept(lives)
        yield _punished(lives)
        missed = CounterMetricFamily(
            "policer_vr_guarantee_missed_seconds",
            "Time in which it had less than its guarantee and could use more",
            labels=("host", "vr"),
        )
        for key, seconds in sorted(self._metrics.missed.items()):
            missed.add_metric(key, seconds)
        yield missed


def _of_service(health: Health) -> Iterator[Metric]:
    yield GaugeMetricFamily(
        "policer_heartbeat_age_seconds",
        "Time since the last iteration of the service's loop",
        health.heartbeat_age_s,
    )
    yield GaugeMetricFamily(
        "policer_store_up", "Whether the database is usable", float(health.store_ok)
    )
    yield GaugeMetricFamily(
        "policer_events_waiting",
        "Events waiting for the database",
        health.events_waiting,
    )
    yield CounterMetricFamily(
        "policer_events_dropped",
        "Events lost because the database was unavailable for too long",
        health.events_dropped,
    )


def _of_history(health: Health) -> Iterator[Metric]:
    yield GaugeMetricFamily(
        "policer_history_waiting",
        "Rows of history waiting for the database",
        health.history_waiting,
    )
    yield CounterMetricFamily(
        "policer_history_dropped",
        "Rows of history lost because the database was unavailable or another policer led",
        health.history_dropped,
    )


def _of_leadership(fleet: Fleet) -> Iterator[Metric]:
    leads = fleet.leadership
    yield GaugeMetricFamily("policer_leading", "Whether this policer leads", float(leads.leading))
    yield GaugeMetricFamily("policer_epoch", "Epoch of the leader", leads.epoch)
    yield GaugeMetricFamily(
        "policer_leadership_known", "Whether the leader is known", float(not leads.problem)
    )
    yield GaugeMetricFamily(
        "policer_brake_on", "Whether all escalation is stopped", float(fleet.braked)
    )
    yield GaugeMetricFamily(
        "policer_brake_hosts", "Hosts with stopped escalation", len(fleet.braked_hosts)
    )


def _of_overrides(fleet: Fleet, lives: Iterable[HostLive]) -> Iterator[Metric]:
    """Yield what operators override; routers and reasons are no labels, since both are endless."""
    overrides = fleet.overrides
    brake = GaugeMetricFamily(
        "policer_brake_mode", "State of the brake that operators set", labels=("mode",)
    )
    for mode in get_args(BrakeMode):
        brake.add_metric((mode,), float(mode == overrides.brake_mode))
    yield brake
    count = GaugeMetricFamily("policer_overrides", "Overrides in force", labels=("kind",))
    for kind, number in sorted(overrides.count().items()):
        count.add_metric((kind,), number)
    yield count
    suspended = GaugeMetricFamily(
        "policer_host_suspended", "Whether an operator suspended its control", labels=("host",)
    )
    for live in lives:
        suspended.add_metric((live.host.name,), float(live.host.name in overrides.suspended))
    yield suspended


_HOST_VALUES: tuple[tuple[str, str, Callable[[HostLive, float], float | None]], ...] = (
    ("reachable", "Whether it was heard recently", lambda live, now: live.telemetry.reachable(now)),
    (
        "last_heard_seconds",
        "Time since it was last heard",
        lambda live, now: (
            None if live.telemetry.heard_at is None else now - live.telemetry.heard_at
        ),
    ),
    (
        "distrusted",
        "Whether its telemetry is distrusted",
        lambda live, _: bool(live.telemetry.distrust),
    ),
    ("link_problem", "Whether it accepts no orders", lambda live, _: bool(live.link_problem)),
    ("refusals", "Routers whose order it refused", lambda live, _: len(live.refusals)),
    (
        "overpromised",
        "Whether guarantees exceed its capacity although it may not overcommit",
        lambda live, _: live.overpromised,
    ),
    ("engaged", "Whether its routers are held", lambda live, _: live.state.standing.engaged),
    ("shared_ratio", "Capacity that is distributed", lambda live, _: live.state.standing.shared),
    ("routers", "Routers that it reported last", lambda live, _: len(live.telemetry.routers)),
    (
        "routers_held",
        "Routers that are held at a setpoint",
        lambda live, _: sum(order.holds for order in live.orders.values()),
    ),
    (
        "capacity_packets_per_second",
        "Total forwarding capacity of its routers",
        lambda live, _: live.host.capacity_pps,
    ),
    (
        "promised_packets_per_second",
        "All guarantees, in the unit of the capacity",
        lambda live, _: live.guaranteed_pps,
    ),
    (
        "forwarded_packets_per_second",
        "Throughput of all its routers",
        lambda live, _: sum(r.throughput_pps or 0.0 for r in live.telemetry.routers.values()),
    ),
    (
        "offered_packets_per_second",
        "Offered load of all its routers",
        lambda live, _: sum(r.offered_pps or 0.0 for r in live.telemetry.routers.values()),
    ),
)


_HOST_COUNTS: tuple[tuple[str, str, Callable[[HostLive], int]], ...] = (
    (
        "host_telemetry_dropped",
        "Messages dropped as replayed, reordered or too frequent",
        lambda live: live.telemetry.dropped + live.unread,
    ),
    (
        "rounds_failed",
        "Rounds that failed with an exception; each is a bug",
        lambda live: live.rounds_failed,
    ),
    (
        "host_events_left_out",
        "Events not stored because it causes too many",
        lambda live: live.events_left_out,
    ),
)


def _of_hosts(lives: Iterable[HostLive], now: float) -> Iterator[Metric]:
    for name, words, value in _HOST_VALUES:
        family = GaugeMetricFamily(f"policer_host_{name}", words, labels=("host",))
        for live in lives:
            number = value(live, now)
            if number is not None:
                family.add_metric((live.host.name,), float(number))
        yield family
    for name, words, count in _HOST_COUNTS:
        counter = CounterMetricFamily(f"policer_{name}", words, labels=("host",))
        for live in lives:
            counter.add_metric((live.host.name,), count(live))
        yield counter


def _of_routers(lives: Iterable[HostLive]) -> Iterator[Metric]:
    """Yield what is so of some routers only: a calm fleet has a small scrape, however large."""
    setpoint, in_bits, limit, height = (
        GaugeMetricFamily(f"policer_vr_{name}", words, labels=("host", "vr"))
        for name, words in (
            ("setpoint_packets_per_second", "Setpoint sent to its daemon"),
            ("setpoint_bits_per_second", "Setpoint in bits/s"),
            ("limit_packets_per_second", "Limit of its host's traffic into it"),
            ("punishment_steps", "Current step of its escalation ladder"),
        )
    )
    for live in lives:
        for vr, order in live.orders.items():
            if order.setpoint_pps is not None:
                setpoint.add_metric((live.host.name, vr), order.setpoint_pps)
            if order.setpoint_bps is not None:
                in_bits.add_metric((live.host.name, vr), order.setpoint_bps)
            if order.limit_pps is not None:
                limit.add_metric((live.host.name, vr), order.limit_pps)
        for vr, state in live.state.routers.items():
            if state.punishment.height:
                height.add_metric((live.host.name, vr), state.punishment.height)
    yield from (setpoint, in_bits, limit, height)


_KEPT_COUNTS: tuple[tuple[str, str, Callable[[Counted], float]], ...] = (
    (
        "over_promise_packets",
        "Packets forwarded beyond setpoint and burst",
        lambda total: total.over_packets,
    ),
    (
        "under_promise_packets",
        "Packets offered within the setpoint and not forwarded, beyond the burst",
        lambda total: total.under_packets,
    ),
    (
        "over_promise_bits",
        "Bits forwarded beyond setpoint and burst, while it was held in bits/s",
        lambda total: total.over_bits,
    ),
    (
        "under_promise_bits",
        "Bits offered within the setpoint and not forwarded, beyond the burst, likewise",
        lambda total: total.under_bits,
    ),
    (
        "breach_seconds",
        "Time in which it got less than its promise",
        lambda total: total.breach_s,
    ),
)


def _kept(lives: Iterable[HostLive]) -> Iterator[Metric]:
    """Yield how well routers with a contract were held, as their daemons count it."""
    for name, words, count in _KEPT_COUNTS:
        family = CounterMetricFamily(f"policer_vr_{name}", words, labels=("host", "vr"))
        for live in lives:
            for vr in live.contracts.keys() & live.kept.keys():
                family.add_metric((live.host.name, vr), count(live.kept[vr].total))
        yield family


def _punished(lives: Iterable[HostLive]) -> Metric:
    """Return how many routers stand on each step, dry runs included."""
    standing = dict.fromkeys(Step, 0)
    for live in lives:
        for vr, state in live.state.routers.items():
            measures = live.contracts.get(vr, UNPROMISED).measures
            height = min(state.punishment.height, len(measures))
            if height:
                standing[measures[height - 1]] += 1
    family = GaugeMetricFamily(
        "policer_routers_punished", "Routers on each step of the ladder", labels=("step",)
    )
    for step, routers in standing.items():
        family.add_metric((step.value,), routers)
    return family
