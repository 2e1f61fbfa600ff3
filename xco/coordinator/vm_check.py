"""What a check says of the VMs that the topology's file lists: what has no effect, or hurts."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from xco.coordinator.config import CoordinatorConfig
from xco.units import format_rate

MBPS: Final = 10**6
NET: Final = Path("/sys/class/net")


def treatment(config: CoordinatorConfig, classifier: str, gates: str) -> str:
    """Return how VMs are treated here; empty: none is listed."""
    if not config.vms:
        return ""
    if classifier == "u32":
        return "weights and guarantees have no effect, since u32 filters classify"
    if gates == "edt":
        return "weights and guarantees act between hosts only, since gates are times of departure"
    return "weights and guarantees share each gate"


def warnings(config: CoordinatorConfig) -> Iterator[str]:
    """Yield what is allowed, but hardly meant."""
    yield from _of_bridge(config)
    yield from _of_guarantees(config)


def _of_bridge(config: CoordinatorConfig) -> Iterator[str]:
    interface = config.table.interface
    master = NET / interface / "master"
    bridge = master.resolve().name if master.exists() else None
    for vm in config.vms:
        if vm.interface == bridge:
            yield (
                f"vm.{vm.name}: {bridge} is the bridge of {interface}: packets come from its "
                "ports, or from the host, and none counts as this VM's"
            )


def _of_guarantees(config: CoordinatorConfig) -> Iterator[str]:
    line_bps, topology = config.line_bps, config.topology
    for vm in config.vms:
        if vm.guarantee_mbps * MBPS > line_bps:
            rate, line = format_rate(vm.guarantee_mbps * MBPS), format_rate(line_bps)
            yield f"vm.{vm.name}: its guarantee of {rate} exceeds this host's {line}"
    total_bps = sum(vm.guarantee_mbps for vm in config.vms) * MBPS
    least_bps = min(topology.host_rate_bps(host) for host in range(len(topology.hosts)))
    if total_bps > least_bps:
        yield (
            f"guarantees are {format_rate(total_bps)} together, and the smallest host link has "
            f"{format_rate(least_bps)}: where they meet in a gate, others may get 8 kbit/s of it"
        )
