"""Where packets are lost that pass a kernel router's shield but do not leave the router.

A kernel router is held behind its shield at several periods. The kernel counts each hop over the
same seconds: packets that the host's end sent and dropped (its veth's ring was full), that the
router received and dropped inside, and that left it.
"""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from benchmarks.rig import Rig, lab_missing, lab_router
from lab.routers.router import Router
from lab.routers.topology import Lab
from xtc.wire import Activate

OFFERED: Final = 300e3
"""Packets/s that are sent to the router."""
COLUMNS: Final = {"rx": 1, "tx": 9, "tx_dropped": 11}
"""Of /proc/net/dev, by position after the name."""


@dataclass(frozen=True)
class Held:
    """How the router was held."""

    period_s: float
    share: float
    """As a share of its uncapped throughput."""
    setpoint_pps: float
    cap: float


@dataclass(frozen=True)
class Hops:
    """Packets at each hop, as shares of setpoint times seconds."""

    held: Held
    let_by: float
    """Packets at the router's veth: sent into it, or dropped there."""
    ring_full: float
    inside: float
    """Received by the router and not forwarded."""
    left: float


def counters(netns: str) -> dict[str, dict[str, int]]:
    """Return the packet counters of a namespace's interfaces."""
    command = ["nsenter", f"--net={netns}", "cat", "/proc/net/dev"]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    found = {}
    for line in lines.splitlines()[2:]:
        name, rest = line.split(":")
        fields = rest.split()
        found[name.strip()] = {key: int(fields[at]) for key, at in COLUMNS.items()}
    return found


def watched(router: Router, dom0: str, seconds: float) -> tuple[dict[str, int], float]:
    """Return the counts at each hop, and the seconds."""
    (towards, back), (first, last) = router.host_interfaces, router.inner_interfaces
    names = {
        "sent": (dom0, towards, "tx"),
        "full": (dom0, towards, "tx_dropped"),
        "received": (router.netns, first, "rx"),
        "forwarded": (router.netns, last, "tx"),
        "left": (dom0, back, "rx"),
    }

    def read() -> dict[str, int]:
        seen = {netns: counters(netns) for netns in {dom0, router.netns}}
        return {hop: seen[netns][name][key] for hop, (netns, name, key) in names.items()}

    start, before = time.monotonic(), read()
    time.sleep(seconds)
    took, after = time.monotonic() - start, read()
    return {hop: after[hop] - before[hop] for hop in names}, took


def measure(periods: list[float], shares: list[float], seconds: float) -> list[Hops]:
    """Hold the router at each period and setpoint, and count."""
    with Lab(prefix="xtcshort") as lab:
        router = lab.add_router("vr", "kernel")
        router.flood(OFFERED)
        return [
            hops for period in periods for hops in _at_period(lab, router, period, shares, seconds)
        ]


def _at_period(
    lab: Lab, router: Router, period: float, shares: list[float], seconds: float
) -> Iterator[Hops]:
    daemon = f"period_s = {period}\nmeter_period_s = {min(0.1, period / 2)}\n"
    with Rig({"vr": lab_router(router)}, lab, daemon=daemon) as rig:
        rig.wait_for_ticks(round(4 / period))
        top = rig.recording.throughput("vr")[-1][1]
        for share in shares:
            setpoint = share * top
            rig.client.call(Activate("vr", setpoint))
            rig.wait_for_ticks(round(3 / period))
            seen, took = watched(router, lab.dom0_netns, seconds)
            cap = rig.recording.of("vr")[-1][1].cap or 0.0
            yield _hops(seen, setpoint * took, Held(period, share, setpoint, cap))


def _hops(seen: dict[str, int], whole: float, held: Held) -> Hops:
    return Hops(
        held,
        let_by=(seen["sent"] + seen["full"]) / whole,
        ring_full=seen["full"] / whole,
        inside=(seen["received"] - seen["forwarded"]) / whole,
        left=seen["left"] / whole,
    )


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--period", type=float, action="append")
    parser.add_argument("--share", type=float, action="append")
    parser.add_argument("--seconds", type=float, default=8.0)
    parser.add_argument("--json", type=Path, help="file for the results")
    options = parser.parse_args()
    if missing := lab_missing():
        sys.exit("real packets need: " + "; ".join(missing))
    found = measure(
        options.period or [0.1, 0.2, 1.0], options.share or [0.1, 0.3, 0.6], options.seconds
    )
    if options.json is not None:
        options.json.write_text(json.dumps([asdict(hops) for hops in found], indent=1) + "\n")
    print("of the setpoint, %    let by  ring full  not forwarded     left     cap")
    for hops in found:
        shown = (hops.let_by, hops.ring_full, hops.inside, hops.left)
        values = "".join(f"{100 * value:10.2f}" for value in shown)
        held = hops.held
        print(f"{held.period_s:4g} s {held.share:4.0%} {values}  {held.cap:.3f}")


if __name__ == "__main__":
    main()
