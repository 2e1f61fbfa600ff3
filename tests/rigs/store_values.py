"""Hosts and contracts that the store's tests put in."""

from typing import Any

from policer.contracts.contract import Contract
from policer.contracts.host import Host


def host(name: str = "gold", capacity_pps: float = 100e3, **fields: Any) -> Host:
    """Return a host that is reached by local sockets."""
    return Host(
        name=name,
        requests=f"ipc:///run/{name}/requests",
        telemetry=f"ipc:///run/{name}/telemetry",
        capacity_pps=capacity_pps,
        **fields,
    )


def promise(guarantee_pps: float, **fields: Any) -> Contract:
    """Return a contract of a guarantee."""
    return Contract(guarantee_pps=guarantee_pps, **fields)
