"""Share of a QEMU router's work that each of libvirt's quotas covers, and its throughput.

A machine's packets cost CPU in its vCPUs and in QEMU's own threads, which carry them between the
vCPUs and the host. `vcpu_quota` caps the former alone, `global_quota` both. The benchmark caps a
flooded router by either in turn, and reads the CPU time of each kind of thread from the kernel. The
machine is emulated (TCG): under KVM, and with vhost, the shares differ. No quota covers the
kernel's work for the router outside QEMU (bridge, tap), and it is not counted here.
"""

import argparse
import json
import os
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.rig import lab_missing
from lab.libvirt import requirements
from lab.libvirt.routers import GuestHost, GuestRouter
from lab.libvirt.server import PrivateLibvirtd
from lab.routers.topology import Lab

PREFIX = "xtcshare"
SCOPES = {"vcpu": "vcpu_quota", "global": "global_quota"}
CAPS = (0.02, 0.05, 0.1, 0.2, 0.4)
FLOOD_PPS = 45e3
SECONDS = 5.0
SETTLING_S = 0.5


@dataclass(frozen=True)
class Sample:
    """A router under one cap; CPU times as shares of one CPU."""

    quota: str
    cap: float | None
    forwarded_pps: float
    vcpu_cpu: float
    emulator_cpu: float

    @property
    def vcpu_share(self) -> float:
        """The vCPUs' share of the router's CPU time."""
        return self.vcpu_cpu / (self.vcpu_cpu + self.emulator_cpu)

    @property
    def covered(self) -> float:
        """The share of the router's CPU time that the quota counts."""
        return self.vcpu_share if self.quota == SCOPES["vcpu"] else 1.0


def cpu_times(pid: int) -> tuple[float, float]:
    """Return the CPU seconds of a QEMU's vCPU threads and of its other threads.

    Source: /proc/PID/task/TID/schedstat (kernel document scheduler/sched-stats); QEMU calls the
    former `CPU 0/TCG` or `CPU 0/KVM`.
    """
    vcpu, others = 0.0, 0.0
    for task in Path(f"/proc/{pid}/task").iterdir():
        seconds = int((task / "schedstat").read_text().split()[0]) / 1e9
        if (task / "comm").read_text().startswith("CPU "):
            vcpu += seconds
        else:
            others += seconds
    return vcpu, others


def measure(router: GuestRouter, pid: int, scope: str, cap: float | None) -> Sample:
    """Cap a router one way and watch it."""
    router.set_quota(cap, scope=scope)
    time.sleep(SETTLING_S)
    start, packets, before = time.monotonic(), router.forwarded(), cpu_times(pid)
    time.sleep(SECONDS)
    seconds = time.monotonic() - start
    forwarded, after = router.forwarded() - packets, cpu_times(pid)
    router.set_quota(None, scope=scope)
    used = [(b - a) / seconds for a, b in zip(before, after, strict=True)]
    return Sample(SCOPES[scope], cap, forwarded / seconds, used[0], used[1])


def run() -> list[Sample]:
    """Measure every cap under both quotas, side by side on one router."""
    with (
        tempfile.TemporaryDirectory(prefix="xtc-share-") as folder,
        Lab(PREFIX) as lab,
        PrivateLibvirtd(Path(folder, "lv"), lab.dom0_netns) as libvirtd,
        GuestHost(lab, libvirtd) as guests,
    ):
        router = guests.add_router("gold", "qemu")
        router.wait_until_forwarding()
        router.flood(FLOOD_PPS)
        pid = int((libvirtd.layout.folder / "run" / "qemu" / "gold.pid").read_text())
        caps = [(cap, scope) for cap in (*CAPS, None) for scope in SCOPES]
        return [measure(router, pid, scope, cap) for cap, scope in caps]


def show(samples: list[Sample]) -> None:
    """Print the table."""
    table = Table("cap", "quota", "forwarded, kp/s", "vCPU", "QEMU's own", "covered")
    for sample in samples:
        cap = "uncapped" if sample.cap is None else f"{sample.cap:.0%}"
        used = [f"{share:.1%}" for share in (sample.vcpu_cpu, sample.emulator_cpu, sample.covered)]
        table.add_row(cap, sample.quota, f"{sample.forwarded_pps / 1e3:.1f}", *used)
    Console().print(table)


def main() -> None:
    """Measure and print, as a table or as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    missing = lab_missing() or requirements.missing()
    if missing:
        parser.exit(1, "\n".join(missing) + "\n")
    samples = run()
    if options.json:
        rows = [asdict(sample) | {"covered": sample.covered} for sample in samples]
        print(json.dumps({"cpus": os.cpu_count(), "accelerator": "tcg", "samples": rows}))
    else:
        show(samples)


if __name__ == "__main__":
    main()
