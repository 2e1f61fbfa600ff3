"""The figures of a boot as a table that documents can quote."""

from typing import Any, Final

HEADING: Final = (
    *("scheduler", "aspect", "router", "setpoint, packets/s", "throughput"),
    *("error", "CPU, %", "settled, samples"),
)


def table(scheduler: str, report: dict[str, Any]) -> list[str]:
    """Return the lines of one boot: the loop's figures, then the latency of a cap change."""
    lines = [f"| {' | '.join(HEADING)} |", "|" + " --- |" * len(HEADING)]
    for aspect in ("hold", "retune", "restart"):
        found = report.get(aspect, {})
        for router, seen in found.get("seen", {}).items():
            setpoint = found["setpoints"][router]
            settled = found.get("settled_samples", {}).get(router)
            cells = [scheduler, aspect, router, f"{setpoint:.0f}", f"{seen['throughput_pps']:.0f}"]
            cells += [f"{seen['throughput_pps'] / setpoint - 1:+.1%}", f"{seen['cpu_percent']:.1f}"]
            cells += ["-" if settled is None else f"{settled}"]
            lines.append(f"| {' | '.join(cells)} |")
    latency = report.get("latency", {})
    if "median_ms" in latency:
        values = (f"{latency[f'{key}_ms']:.0f}" for key in ("median", "p90", "max"))
        lines.append(f"Cap change, ms, median, p90, max of 50: {', '.join(values)}")
    times = [f"{name} {found['took_s']:.0f} s" for name, found in report.items()]
    return [*lines, f"Took: {', '.join(times)}", ""]
