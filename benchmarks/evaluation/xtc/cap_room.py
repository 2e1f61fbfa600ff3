"""What a held router forwards by the headroom of its cap, on a host with full CPUs.

    python -m benchmarks.evaluation.xtc.cap_room    # three minutes, as root

The point of `xtc-hold` at 60 kp/s of UDP, with other values of `headroom` in the router's table.
"""

import argparse
import json
import sys
from statistics import fmean
from typing import Final

from benchmarks.evaluation.xtc import calibrate
from benchmarks.evaluation.xtc.hold import POINTS, WINDOW, load_of
from benchmarks.evaluation.xtc.stage import OURS, Held, activation, stage
from benchmarks.figures import mean
from benchmarks.rig import lab_missing, lab_router
from common.arguments import whole_number

POINT: Final = POINTS["UDP, setpoint 60 kp/s"]
ROOMS: Final = (1.1, 1.5, 2.0, 4.0)


def measure(repetitions: int) -> list[dict[str, float]]:
    """Return throughput in the paper's kp/s, and the probe's loss in percent, by headroom."""
    calibration = calibrate.measure(quick=True)
    order = activation("user", OURS, calibration.pps(POINT.setpoint or 0.0))
    load = load_of(POINT, calibration)
    found: dict[float, list[Held]] = {room: [] for room in ROOMS}
    with stage(calibration, "xtcevalcap") as on:
        for _ in range(repetitions):
            for room, runs in found.items():
                table = f"{lab_router(on.router)}\nheadroom = {room}"
                runs.append(on.watch(table, lambda rig: rig.client.call(order), load, WINDOW))
    return [
        {
            "headroom": room,
            "kpps": calibration.paper_kpps(fmean(mean(one.samples) for one in runs)),
            "probe_loss_percent": 100 * fmean(one.probe_loss for one in runs),
        }
        for room, runs in found.items()
    ]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--repetitions", type=whole_number(1), default=3)
    options = parser.parse_args()
    if missing := lab_missing():
        sys.exit("real packets need: " + "; ".join(missing))
    rows = measure(options.repetitions)
    if options.json:
        print(json.dumps(rows, indent=2))
        return
    for row in rows:
        print(
            f"headroom {row['headroom']:g}: {row['kpps']:.1f} of {POINT.setpoint:g} kp/s, "
            f"probe loss {row['probe_loss_percent']:.1f} %"
        )


if __name__ == "__main__":
    main()
