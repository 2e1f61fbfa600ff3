"""Writes the loop file: settings, hosts and links, one `key value` a line."""

import time
from collections.abc import Iterator
from pathlib import Path

from common import durable
from xco.controller.config import ControllerConfig
from xco.errors import ConfigError, ControllerError
from xco.leader.base import EPOCH_AHEAD_NS
from xco.protocol.wire import HOSTS_MAX
from xco.topology.graph import Topology

_TIMES = {
    "slice_ns": "slice",
    "lead_ns": "lead",
    "guard_ns": "guard",
    "silence_ns": "silence",
    "heartbeat_ns": "heartbeat",
    "drop_ns": "drop",
    "calm_ns": "calm",
    "threshold_ns": "preempt_after",
    "patience_ns": "patience",
}


def loop_text(
    config: ControllerConfig, topology: Topology, epoch: int, now_ns: int | None = None
) -> str:
    """Return the loop file's text for a checked topology.

    `now_ns` is since 1970; default: the wall clock.

    Raises:
        ConfigError: a weight names no host, or there are more hosts than the protocol can number.
    """
    if len(topology.hosts) > HOSTS_MAX:
        problem = f"{len(topology.hosts)} hosts, at most {HOSTS_MAX}"
        raise ConfigError(str(config.topology), "host", problem, "split the network")
    most = (time.time_ns() if now_ns is None else now_ns) + EPOCH_AHEAD_NS
    lines = [
        *_settings(config, epoch),
        f"epoch_most {most}",
        f"digest {topology.hosts_digest().hex()}",
        f"nodes_digest {topology.nodes_digest().hex()}",
        f"hosts {len(topology.hosts)}",
        f"switches {len(topology.switches)}",
        *_links(topology),
        *_weights(config, topology),
    ]
    return "\n".join(lines) + "\n"


def write_loop_file(config: ControllerConfig, topology: Topology, epoch: int) -> None:
    """Write the loop file atomically.

    Raises:
        ConfigError: as `loop_text`.
        ControllerError: it cannot be written.
    """
    replace_file(config.loop_file, loop_text(config, topology, epoch))


def replace_file(path: Path, text: str) -> None:
    """Replace a file atomically.

    Raises:
        ControllerError: it cannot be written.
    """
    try:
        path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        durable.replace_file(path, text.encode())
    except OSError as error:
        fix = "give the controller a run_dir that it may write to"
        raise ControllerError(str(path), error.strerror or "cannot be written", fix) from error


def _settings(config: ControllerConfig, epoch: int) -> Iterator[str]:
    address, port = config.listen
    yield f"epoch {epoch}"
    yield f"listen {address}"
    yield f"port {port}"
    yield f"key {config.key.resolve()}"
    yield f"stats {config.stats_file}"
    yield f"command {config.command_socket}"
    yield f"realtime {config.realtime}"
    yield f"strategy {config.strategy.value}"
    yield f"policy {config.policy}"
    yield f"published {config.published:d}"
    yield f"max_min {config.max_min:d}"
    yield f"on_demand {config.on_demand:d}"
    yield f"pace_permille {config.pace_permille}"
    for key, name in _TIMES.items():
        yield f"{key} {config.durations_ns[name]}"


def _links(topology: Topology) -> Iterator[str]:
    nodes = topology.node_indices
    for index in topology.active_links:
        link = topology.links[index]
        yield f"link {nodes[link.a]} {nodes[link.b]} {link.capacity_bps}"


def _weights(config: ControllerConfig, topology: Topology) -> Iterator[str]:
    for name, weight in config.weights.items():
        host = topology.host_index(name)
        if host is None:
            fix = "name a host of the topology"
            raise ConfigError(str(config.topology), f"weight.{name}", "no such host", fix)
        yield f"weight {host} {weight}"
