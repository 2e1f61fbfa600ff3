"""The port agent's Prometheus metrics, computed from its published state at each scrape."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from xco.errors import ControllerError
from xco.ports.config import AgentConfig
from xco.ports.status import AgentStatus, PortStatus

_COUNTERS: Final = {
    "packets": "Packets that left a port",
    "bytes": "Bytes that left a port",
    "marks": "Packets that a port marked because of congestion (ECN)",
    "drops": "Packets that a port dropped",
}
_LABELS: Final = ["source", "target"]


class PortCollector(Collector):
    """Reads the agent's state at every scrape."""

    def __init__(self, now: Callable[[], AgentStatus]) -> None:
        """Take what returns the present state."""
        self._now = now

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics of the agent and of each port."""
        found = self._now()
        heard = GaugeMetricFamily(
            "xco_port_agent_heard", "1 while a controller uses the agent's messages"
        )
        heard.add_metric([], float(found.heard))
        yield heard
        readable = GaugeMetricFamily(
            "xco_port_readable", "1 while a port's counters can be read", labels=_LABELS
        )
        backlog = GaugeMetricFamily(
            "xco_port_backlog_bytes", "Bytes that wait at a port", labels=_LABELS
        )
        problem = GaugeMetricFamily(
            "xco_port_problem", "1 for the kind of problem of a port", labels=[*_LABELS, "kind"]
        )
        for port in found.ports:
            if port.problem:
                problem.add_metric([port.source, port.target, port.kind], 1)
            readable.add_metric([port.source, port.target], float(not port.problem))
            backlog.add_metric([port.source, port.target], port.backlog_bytes)
        yield from (readable, problem, backlog, *_counters(found.ports))


def _counters(ports: tuple[PortStatus, ...]) -> Iterator[Metric]:
    for key, text in _COUNTERS.items():
        family = CounterMetricFamily(f"xco_port_{key}", text, labels=_LABELS)
        for port in ports:
            if port.read_ns:  # a port that was never read has counted nothing
                family.add_metric([port.source, port.target], getattr(port, key))
        yield family


@contextmanager
def served(config: AgentConfig, now: Callable[[], AgentStatus]) -> Iterator[None]:
    """Serve metrics over HTTP during a `with` block, if the settings name an address.

    Raises:
        ControllerError: the address cannot be listened on, perhaps not yet: retry later.
    """
    if config.metrics is None:
        yield
        return
    registry = CollectorRegistry()
    registry.register(PortCollector(now))
    address, port = config.metrics
    try:
        server, thread = start_http_server(port, address, registry)
    except OSError as error:
        what = f"{config.file}: port-agent.metrics"
        problem = f"{address}:{port}: {error.strerror or error}"
        raise ControllerError(what, problem, "name a free address of this machine") from error
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
