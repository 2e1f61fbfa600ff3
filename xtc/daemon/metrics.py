"""Prometheus metrics, computed on demand from the latest reports: ticks pay nothing."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from wsgiref.simple_server import WSGIServer

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from common import __version__
from common.errors import ConfigError
from xtc.libvirt.hypervisors import ConnectionState
from xtc.modes import Finding, Mode
from xtc.wire import HostDrops, Report

MAX_PORT = 65535
TICK_BUCKETS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0)


class Metrics:
    """All metrics of the daemon, in a separate registry."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._reports: tuple[Report, ...] = ()
        self.connections: tuple[ConnectionState, ...] = ()
        self.listening: Mapping[str, bool] = {}
        """Whether each TCP address is bound."""
        self.drops: HostDrops | None = None
        self.busiest_cpu: float | None = None
        """What the host dropped in the last period; None while unknown."""
        self.ticks = Histogram(
            "xtc_tick_duration_seconds",
            "Time that a tick took, from reading to the last cap",
            buckets=TICK_BUCKETS,
            registry=self.registry,
        )
        self.overruns = self._counter(
            "xtc_tick_overruns", "Ticks that began at least one period late"
        )
        self.meter_errors = self._counter(
            "xtc_meter_errors", "Rejected snapshots of the interface counters"
        )
        self.unexpected = self._counter("xtc_unexpected_errors", "Unexpected errors", ("where",))
        self.rejected = self._counter("xtc_messages_rejected", "Refused requests", ("reason",))
        self.refused_keys = self._counter(
            "xtc_keys_refused", "Connections over TCP whose key is not authorised"
        )
        self.reload_ok = self._gauge(
            "xtc_config_last_reload_successful", "Whether the configuration in force is the file's"
        )
        self.journal_ok = self._gauge(
            "xtc_journal_writable", "Whether originals and leases can be made durable"
        )
        self._hash = self._gauge("xtc_config_hash_info", "The configuration in force", ("sha256",))
        self._gauge("xtc_build_info", "Version of the running program", ("version",)).labels(
            __version__
        ).set(1)
        self.registry.register(_Routers(self))

    @property
    def reports(self) -> tuple[Report, ...]:
        """The latest reports."""
        return self._reports

    def show(self, reports: tuple[Report, ...]) -> None:
        """Make these reports visible to the next scrape."""
        self._reports = reports

    def show_connections(self, states: tuple[ConnectionState, ...]) -> None:
        """Make the state of the hypervisors' connections visible to the next scrape."""
        self.connections = states

    def configured(self, text: bytes) -> None:
        """Note that this configuration is in force."""
        self._hash.clear()
        self._hash.labels(hashlib.sha256(text).hexdigest()).set(1)
        self.reload_ok.set(1)

    def listen(self, address: str) -> WSGIServer:
        """Serve /metrics at host:port.

        Raises:
            ConfigError: the address is invalid or in use.
        """
        host, _, port = address.rpartition(":")
        if not host or not (port.isdecimal() and int(port) <= MAX_PORT):
            raise ConfigError("metrics.listen", f"{address!r} is no host:port", "127.0.0.1:9167")
        try:
            server, _ = start_http_server(int(port), host.strip("[]"), self.registry)
        except OSError as error:
            raise ConfigError("metrics.listen", f"{address}: {error.strerror}") from error
        return server

    def _counter(self, name: str, words: str, labels: Iterable[str] = ()) -> Counter:
        return Counter(name, words, labels, registry=self.registry)

    def _gauge(self, name: str, words: str, labels: Iterable[str] = ()) -> Gauge:
        return Gauge(name, words, labels, registry=self.registry)


class _Routers(Collector):
    """The metrics with a label `vr`, a cardinality that only the configuration can raise."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    def collect(self) -> Iterator[Metric]:
        """Yield the metric families from the latest reports."""
        reports = self._metrics.reports
        yield from _connections(self._metrics.connections)
        yield _listening(self._metrics.listening)
        yield from _drops(self._metrics.drops)
        yield _busiest(self._metrics.busiest_cpu)
        yield from _plain(reports)
        for name, words, values in (
            ("xtc_mode", "Mode of each loop", Mode),
            ("xtc_finding", "Finding of each loop", Finding),
        ):
            label = name.removeprefix("xtc_")
            family = GaugeMetricFamily(name, words, labels=("vr", label))
            for report in reports:
                present = getattr(report, label)
                for value in values:
                    family.add_metric((report.vr, value.value), float(value is present))
            yield family


def _connections(states: Iterable[ConnectionState]) -> Iterator[Metric]:
    up = GaugeMetricFamily("xtc_libvirt_up", "Whether libvirt answers", labels=("uri",))
    given_up = CounterMetricFamily(
        "xtc_libvirt_calls_given_up", "Calls that exceeded their deadline", labels=("uri",)
    )
    for state in states:
        up.add_metric((state.uri,), float(state.up))
        given_up.add_metric((state.uri,), state.given_up)
    yield from (up, given_up)


def _listening(addresses: Mapping[str, bool]) -> Metric:
    family = GaugeMetricFamily(
        "xtc_listening", "Whether the daemon listens on a TCP address", labels=("address",)
    )
    for address, bound in addresses.items():
        family.add_metric((address,), float(bound))
    return family


def _drops(drops: HostDrops | None) -> Iterator[Metric]:
    cards = GaugeMetricFamily(
        "xtc_host_card_drops_packets_per_second",
        "Packets that a network card without a router received and the host dropped",
        labels=("interface",),
    )
    backlog = GaugeMetricFamily(
        "xtc_host_backlog_drops_packets_per_second", "Packets dropped in the CPUs' backlogs"
    )
    if drops is not None:
        for name, rate in drops.cards.items():
            cards.add_metric((name,), rate)
        if drops.backlog is not None:
            backlog.add_metric((), drops.backlog)
    yield from (cards, backlog)


def _busiest(share: float | None) -> Metric:
    family = GaugeMetricFamily(
        "xtc_host_busiest_cpu_ratio", "Share of the last second that the busiest CPU was not idle"
    )
    if share is not None:
        family.add_metric((), share)
    return family


def _plain(reports: tuple[Report, ...]) -> Iterator[Metric]:
    for name, words, attribute in (
        ("xtc_vr_throughput_packets_per_second", "Packets forwarded", "throughput_pps"),
        ("xtc_vr_offered_packets_per_second", "Packets offered to it", "offered_pps"),
        ("xtc_vr_setpoint_packets_per_second", "Setpoint", "setpoint_pps"),
        ("xtc_vr_throughput_bits_per_second", "Bits forwarded", "throughput_bps"),
        ("xtc_vr_offered_bits_per_second", "Bits offered to it", "offered_bps"),
        ("xtc_vr_setpoint_bits_per_second", "Setpoint, in bits", "setpoint_bps"),
        ("xtc_vr_cap_ratio", "CPU cap as a share of one CPU", "cap"),
        (
            "xtc_vr_proposed_cap_ratio",
            "CPU cap that is computed but not written (observe mode)",
            "proposed_cap",
        ),
        ("xtc_vr_cpu_used_ratio", "CPUs used", "used"),
        ("xtc_vr_limit_packets_per_second", "Limit of the host's traffic into it", "limit_pps"),
        ("xtc_vr_shield_packets_per_second", "Rate that its shield lets pass", "shield_pps"),
        ("xtc_vr_shield_bits_per_second", "Rate that its shield lets pass", "shield_bps"),
        ("xtc_vr_cpu_weight", "CPU weight, in the unit of its platform", "weight"),
        ("xtc_meter_sample_age_seconds", "Time since its last sample", "sample_age_s"),
        (
            "xtc_setpoint_lease_remaining_seconds",
            "Remaining time of its lease",
            "lease_remaining_s",
        ),
    ):
        family = GaugeMetricFamily(name, words, labels=("vr",))
        for report in reports:
            value = getattr(report, attribute)
            if value is not None:
                family.add_metric((report.vr,), value)
        yield family
    yield from _promises(reports)
    yield from _derived(reports)


def _promises(reports: tuple[Report, ...]) -> Iterator[Metric]:
    for name, words in (
        ("over_promise_packets", "Packets forwarded beyond setpoint and burst"),
        (
            "under_promise_packets",
            "Offered packets within the setpoint that were not forwarded, beyond the burst",
        ),
        ("over_promise_bits", "Bits forwarded beyond setpoint and burst"),
        (
            "under_promise_bits",
            "Offered bits within the setpoint that were not forwarded, beyond the burst",
        ),
        ("breach_seconds", "Time in which a router broke its promise"),
    ):
        family = CounterMetricFamily(f"xtc_vr_{name}", words, labels=("vr",))
        for report in reports:
            value = getattr(report, name)
            if value is not None:
                family.add_metric((report.vr,), value)
        yield family


def _derived(reports: tuple[Report, ...]) -> Iterator[Metric]:
    capped = GaugeMetricFamily("xtc_vr_capped", "Whether a cap is in force", labels=("vr",))
    error = GaugeMetricFamily(
        "xtc_vr_control_error_packets_per_second", "Setpoint minus throughput", labels=("vr",)
    )
    error_in_bits = GaugeMetricFamily(
        "xtc_vr_control_error_bits_per_second",
        "Setpoint minus throughput, where it is held in bits",
        labels=("vr",),
    )
    problem = GaugeMetricFamily(
        "xtc_vr_problem", "Whether its loop is prevented from working", labels=("vr",)
    )
    floor = GaugeMetricFamily(
        "xtc_vr_floor_problem", "Whether no CPU floor backs its setpoint", labels=("vr",)
    )
    observing = GaugeMetricFamily(
        "xtc_vr_observing", "Whether its caps are computed and not written", labels=("vr",)
    )
    for report in reports:
        observing.add_metric((report.vr,), float(report.observing))
        if report.cap_known:
            capped.add_metric((report.vr,), float(report.cap is not None))
        problem.add_metric((report.vr,), float(bool(report.problem)))
        floor.add_metric((report.vr,), float(bool(report.floor_problem)))
        if report.setpoint_pps is not None and report.throughput_pps is not None:
            error.add_metric((report.vr,), report.setpoint_pps - report.throughput_pps)
        if report.setpoint_bps is not None and report.throughput_bps is not None:
            error_in_bits.add_metric((report.vr,), report.setpoint_bps - report.throughput_bps)
    yield from (capped, error, error_in_bits, problem, floor, observing)
