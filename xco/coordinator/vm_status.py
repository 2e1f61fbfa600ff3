"""VMs with a weight or a guarantee that are on a coordinator's host, from its loop's statistics."""

import os
import struct
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from time import sleep
from typing import Final

from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric

from xco.coordinator.config import VM_KEY, vm_line
from xco.errors import ControllerError
from xco.protocol.stats import read_statistics
from xco.topology.vms import Vm

NET: Final = Path("/sys/class/net")
WATCH_S: Final = 0.5
LEAST_BYTES: Final = 10_000
"""A VM that sends less than this while it is watched may well be idle."""


@dataclass(frozen=True)
class VmStatus:
    """A listed VM on this host, by the host's end of its link."""

    interface: str
    weight: int
    guarantee_mbps: int
    """0: it has none."""
    sent_bytes: int
    """Since it came, to all hosts; packets that bypass the gates do not count."""
    destinations: int
    """Hosts that it sends to."""


def read_vms(path: Path, stale_ns: int) -> Iterator[VmStatus]:
    """Yield what the loop publishes; nothing if it does not, or no longer."""
    try:
        snapshot = read_statistics(path)
    except ControllerError:
        return
    if snapshot.age_ns(time.monotonic_ns()) >= stale_ns:
        return
    for row in snapshot.rows:
        name = struct.pack("=QQ", row["name_high"], row["name_low"]).rstrip(b"\0")
        columns = ("weight", "guarantee_mbps", "sent_bytes", "destinations")
        yield VmStatus(os.fsdecode(name), *(row[column] for column in columns))


def waiting(vms: Iterable[Vm], plain_file: Path) -> str:
    """Return what a restart of the loop would change of these VMs; empty: nothing.

    The loop reads its plain configuration at its start only.
    """
    try:
        lines = plain_file.read_text().splitlines()
    except OSError:
        return ""
    in_force = {line for line in lines if line.startswith(f"{VM_KEY} ")}
    differ = in_force ^ set(map(vm_line, vms))
    return "[vm] tables: restart xco-coordinator to change them" if differ else ""


def unseen(interfaces: Iterable[str]) -> frozenset[str]:
    """Return those of some interfaces that packets enter now; watch them only if any ever did.

    Of VMs for which gates have counted nothing, it is those that are not seen there.
    """
    before = {name: count for name in interfaces if (count := _entered(name)) > 0}
    if before:
        sleep(WATCH_S)
    return frozenset(
        name for name, count in before.items() if _entered(name) - count >= LEAST_BYTES
    )


def _entered(interface: str) -> int:
    """Return the bytes that a host received at the end of a VM's link; 0: it is gone."""
    try:
        return int((NET / interface / "statistics" / "rx_bytes").read_text())
    except OSError:
        return 0


def metrics_of(interface: str, vms: tuple[VmStatus, ...]) -> Iterator[Metric]:
    """Yield the Prometheus metrics of the VMs behind an interface, with the label "vm"."""
    labels = ["interface", "vm"]
    weight = GaugeMetricFamily("xco_coordinator_vm_weight", "Weight of a VM.", labels=labels)
    guarantee = GaugeMetricFamily(
        "xco_coordinator_vm_guarantee_bps", "Guarantee of a VM, bits/s.", labels=labels
    )
    sent = CounterMetricFamily(
        "xco_coordinator_vm_sent_bytes", "Bytes that a VM sent to all hosts.", labels=labels
    )
    for vm in vms:
        weight.add_metric([interface, vm.interface], vm.weight)
        guarantee.add_metric([interface, vm.interface], vm.guarantee_mbps * 1e6)
        sent.add_metric([interface, vm.interface], vm.sent_bytes)
    yield from (weight, guarantee, sent)
