"""The loop on libvirt's platforms: delay of a cap, and speed and precision of the loop.

LXC and QEMU (emulated, no KVM) under a private libvirtd, one router at a time, side by side in one
run; Xen's figures come from `make test-xen`, since they need a machine that boots Xen.
"""

import argparse
import json
import statistics
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.table import Table

from benchmarks.figures import mean, relative_rmse, settling
from benchmarks.rig import Rig
from common.clock import MonotonicClock
from common.logs import set_up_logging
from common.units import CapFraction, Seconds, format_rate
from lab.libvirt import requirements
from lab.libvirt.domainxml import GuestKind
from lab.libvirt.routers import GuestHost, GuestRouter
from lab.libvirt.server import PrivateLibvirtd
from lab.routers.topology import Lab
from xtc.errors import Transient
from xtc.libvirt.hypervisors import Hypervisors
from xtc.spec import LibvirtSpec
from xtc.wire import Activate, Deactivate

SHARES: Final = (0.1, 0.3, 0.6)
HELD: Final = 34
"""Seconds that a loop is held: 4 to settle in, 30 that count."""
CHANGES: Final = 50
RATES: Final[dict[GuestKind, float]] = {"lxc": 60e3, "qemu": 20e3}
"""Packets/s offered: more than each can carry on its share of the machine."""
PLATFORMS: Final[tuple[tuple[GuestKind, str], ...]] = (
    ("lxc", "vcpu"),
    ("qemu", "vcpu"),
    ("qemu", "machine"),
)


@dataclass(frozen=True)
class Latency:
    """Milliseconds from the order of a cap until it was read back."""

    platform: str
    median_ms: float
    p90_ms: float
    max_ms: float


@dataclass(frozen=True)
class Held:
    """One setpoint held once; the error is of the mean of 30 s."""

    platform: str
    share: float
    setpoint_pps: float
    settling_s: float | None
    mean_error: float
    relative_rmse: float
    cap: float | None


def latency(platform: str, spec: LibvirtSpec) -> Latency:
    """Order caps through xtc's own actuator, one after the other."""
    hypervisors = Hypervisors(MonotonicClock(), patience=Seconds(5.0))
    hypervisors.use([spec])
    hypervisors.settle(Seconds(10.0))
    actuator = hypervisors.open(spec, None)
    original = actuator.capture()
    times = []
    for number in range(CHANGES):
        start = time.monotonic()
        actuator.apply(CapFraction(0.2 + 0.6 * number / CHANGES))
        while not actuator.settle():
            time.sleep(0.0005)
        times.append((time.monotonic() - start) * 1e3)
    actuator.restore(original)
    hypervisors.close()
    times.sort()
    p90 = times[int(0.9 * CHANGES)]
    return Latency(platform, statistics.median(times), p90, times[-1])


def hold(rig: Rig, platform: str, vr: str, share: float, setpoint: float) -> Held:
    """Hold a router once."""
    rig.client.call(Deactivate(vr))
    rig.wait_for_ticks(4)
    rig.client.call(Activate(vr, setpoint))
    start = time.monotonic()
    rig.wait_for_ticks(HELD)
    samples = [s for s in rig.recording.throughput(vr) if s[0] > start]
    counted = [s for s in samples if s[0] > start + 4][:30]
    caps = [r.cap for at, r in rig.recording.of(vr) if at > start + 4 and r.cap]
    return Held(
        platform,
        share,
        setpoint,
        settling(samples, start, setpoint),
        mean(counted) / setpoint - 1,
        relative_rmse(counted),
        statistics.fmean(caps) if caps else None,
    )


def uncapped(rig: Rig, vr: str) -> float:
    """Return the throughput of the flooded, uncapped router."""
    rig.wait_for_ticks(8)
    return mean(rig.recording.throughput(vr)[-5:])


def measure(
    router: GuestRouter, lab: Lab, scope: str, shares: tuple[float, ...]
) -> tuple[Latency, list[Held]]:
    """Measure one platform on its flooded router."""
    platform = router.domain.kind if router.domain.kind == "lxc" else f"qemu, {scope}"
    spec = LibvirtSpec(router.name, router.uri, "machine" if scope == "machine" else "vcpu")
    took = latency(platform, spec)
    table = (
        f'actuator = {{ kind = "libvirt", domain = "{spec.domain}", uri = "{spec.uri}", '
        f'scope = "{spec.scope}" }}'
    )
    with Rig({router.name: table}, lab) as rig:
        top = uncapped(rig, router.name)
        print(f"{platform}: uncapped {format_rate(top)}", file=sys.stderr)
        held = []
        for share in shares:
            held.append(hold(rig, platform, router.name, share, share * top))
            print(f"  {held[-1]}", file=sys.stderr)
        return took, held


def measure_all(shares: tuple[float, ...]) -> tuple[list[Latency], list[Held]]:
    """Measure every platform that runs here."""
    latencies, results = [], []
    with (
        tempfile.TemporaryDirectory(prefix="xtc-") as folder,
        Lab(prefix="xtcplat") as lab,
        PrivateLibvirtd(Path(folder) / "lv", lab.dom0_netns) as libvirtd,
        GuestHost(lab, libvirtd) as guests,
    ):
        for kind, scope in PLATFORMS:
            router = guests.routers.get(kind) or guests.add_router(kind, kind)
            router.wait_until_forwarding()
            source = router.flood(RATES[kind])
            took, held = measure(router, lab, scope, shares)
            source.stop()
            latencies.append(took)
            results += held
    return latencies, results


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--share", type=float, action="append", help="of the uncapped throughput")
    options = parser.parse_args()
    set_up_logging(json=False, level="error")
    if missing := requirements.missing():
        sys.exit("libvirt's platforms need: " + " ".join(missing))
    try:
        latencies, held = measure_all(tuple(options.share or SHARES))
    except Transient as error:
        sys.exit(f"libvirt failed: {error}")
    if options.json:
        rows = {"latency": [asdict(x) for x in latencies], "held": [asdict(x) for x in held]}
        print(json.dumps(rows, indent=2))
    else:
        _print(latencies, held)


def _print(latencies: list[Latency], results: list[Held]) -> None:
    table = Table("platform", "median", "p90", "max", title="A cap until it is read back, ms")
    for one in latencies:
        times = (one.median_ms, one.p90_ms, one.max_ms)
        table.add_row(one.platform, *(f"{ms:.1f}" for ms in times))
    headings = ("platform", "share", "setpoint", "settling", "mean error", "rel. RMSE", "cap")
    loops = Table(*headings, title="Setpoints held for 30 s")
    for run in results:
        loops.add_row(
            run.platform,
            f"{run.share:.0%}",
            format_rate(run.setpoint_pps),
            "not" if run.settling_s is None else f"{run.settling_s:g} s",
            f"{run.mean_error:+.1%}",
            f"{run.relative_rmse:.1%}",
            "-" if run.cap is None else f"{run.cap:.1%}",
        )
    Console().print(table, loops)


if __name__ == "__main__":
    main()
