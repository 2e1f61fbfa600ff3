"""Prometheus metrics and the JSON status of a controller, computed on request.

Both come from the loop's statistics file, so they cost the loop nothing.
"""

import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from xco.controller.config import ControllerConfig, Places
from xco.controller.state import Role, State, is_running
from xco.errors import ControllerError
from xco.protocol.messages import Mode, Strategy
from xco.protocol.stats import Snapshot, read_statistics

GAUGES = {
    "epoch": "The epoch of the loop",
    "epoch_heard": "Highest epoch that hosts know, if above its own; 0: none",
    "hosts_joined": "Scheduled hosts",
    "hosts_coordinated": "Hosts that send only on directives",
    "links_contended": "Directed links whose senders could congest them",
    "places_known": "Addresses that hosts have claimed",
    "ports_known": "Ports whose counters are reported",
    "refused_place": "Address refused last: a MAC, or the end of an IP address",
    "refused_claimant": "Number of the host that claimed it",
    "refused_owner": "Number of the host that has it",
    "realtime": "Whether the loop runs with a real-time priority",
    "wake_late_ns_max": "Largest delay of the loop's wake-up, in ns",
    "exchange_ns_max": "The longest time from a report's arrival to its directive, in ns",
}
"""Fields that may fall; all others are counters."""
ROW_GAUGES = ("joined", "coordinated", "backlog_bytes", "granted_bps", "silent_ns", "fell_back")
NOT_METRICS = ("port", "strategy")


class ControllerCollector(Collector):
    """Reads the statistics file at every scrape; `xco_up` is 0 for a loop that does not run."""

    def __init__(self, stats_file: Path, host_names: tuple[str, ...]) -> None:
        """Take the file, and the hosts' names by their numbers."""
        self._path, self._names = stats_file, host_names

    def collect(self) -> Iterator[Metric]:
        """Yield everything that the loop has published."""
        snapshot = None
        with suppress(ControllerError):
            snapshot = read_statistics(self._path)
        up = GaugeMetricFamily("xco_up", "Whether the loop publishes")
        up.add_metric([], float(snapshot is not None and is_alive(snapshot)))
        yield up
        if snapshot is not None:
            yield from _fields(snapshot.values)
            yield from self._rows(snapshot)

    def _rows(self, snapshot: Snapshot) -> Iterator[Metric]:
        for column in ROW_GAUGES:
            family = GaugeMetricFamily(
                f"xco_host_{column}", f"Of each host: {column}", labels=["host"]
            )
            for name, row in zip(self._names, snapshot.rows, strict=False):
                family.add_metric([name], row[column])
            yield family


def _fields(values: Mapping[str, int]) -> Iterator[Metric]:
    for name, value in values.items():
        if name in NOT_METRICS:
            continue
        if name in GAUGES:
            yield GaugeMetricFamily(f"xco_{name}", GAUGES[name], value=value)
        else:
            words = name.replace("_", " ")
            yield CounterMetricFamily(
                f"xco_{name}", f"Since the loop's start: {words}", value=value
            )


def is_alive(snapshot: Snapshot, now_ns: int | None = None) -> bool:
    """Whether the loop wrote within the last second, by the monotonic clock."""
    now = time.clock_gettime_ns(time.CLOCK_MONOTONIC) if now_ns is None else now_ns
    return snapshot.age_ns(now) < 10**9


def serve_metrics(config: ControllerConfig, host_names: tuple[str, ...]) -> None:
    """Serve metrics if the settings name an address.

    Raises:
        ControllerError: the address cannot be listened on, perhaps not yet: retry later.
    """
    if config.metrics is None:
        return
    registry = CollectorRegistry()
    registry.register(ControllerCollector(config.stats_file, host_names))
    address, port = config.metrics
    try:
        start_http_server(port, address, registry)
    except OSError as error:
        problem = f"{address}:{port}: {error.strerror or error}"
        fix = "name a free address of this machine"
        raise ControllerError("controller.metrics", problem, fix) from error


def controller_status(config: Places, host_names: tuple[str, ...]) -> dict[str, Any]:
    """Return the controller's part of `xco status --json` for this machine.

    A host without a name is shown by its number.

    Raises:
        ControllerError: no controller has ever run here.
    """
    try:
        state = msgspec.json.decode(config.state_file.read_bytes(), type=State)
    except (OSError, msgspec.DecodeError) as error:
        fix = "start one: xco controller"
        raise ControllerError(str(config.state_file), "no controller runs here", fix) from error
    status: dict[str, Any] = {
        "controller": msgspec.to_builtins(state),
        "running": state.role is Role.STANDBY and is_running(state),
        "loop": None,
        "hosts": [],
    }
    with suppress(ControllerError):
        snapshot = read_statistics(config.stats_file)
        if state.role is Role.LEADER:
            status["running"] = is_running(state) and is_alive(snapshot)
        status["loop"] = _loop_status(snapshot)
        status["hosts"] = [
            {"host": _name(host_names, number), **row, "mode": Mode(row["mode"]).name.lower()}
            for number, row in enumerate(snapshot.rows)
        ]
    return status


def _name(host_names: tuple[str, ...], number: int) -> str:
    return host_names[number] if number < len(host_names) else f"number {number}"


def _loop_status(snapshot: Snapshot) -> dict[str, Any]:
    strategy = Strategy(snapshot.values["strategy"]).name.lower()
    return {**snapshot.values, "strategy": strategy, "alive": is_alive(snapshot)}
