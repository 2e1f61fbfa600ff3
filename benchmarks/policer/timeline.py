"""A plot of one flood, second by second: throughput and orders, CPU, and who waited for it."""

import json
import sys
from pathlib import Path
from typing import Any, Final

WIDTH, HEIGHT = 10, 8
COLOURS: Final = {
    "gold": "C1",
    "bronze": "C5",
    "flood": "C3",
    "Dom0": "C0",
    "policer": "C2",
    "daemon": "C4",
}


def draw(reaction: dict[str, Any], path: Path) -> None:
    """Draw a reaction of `benchmarks.policer.reaction --json` into a PNG.

    Args:
        reaction: with its `trace` and its `cpu`.
        path: of the picture.
    """
    import matplotlib as mpl  # noqa: PLC0415  slow to load

    mpl.use("Agg")
    from matplotlib import pyplot as plt  # noqa: PLC0415

    figure, (rates, ran, waited) = plt.subplots(
        3, 1, sharex=True, figsize=(WIDTH, HEIGHT), layout="constrained"
    )
    _draw_rates(rates, reaction)
    for axes, what in ((ran, "ran"), (waited, "waited")):
        _draw_shares(axes, reaction["cpu"], what)
    waited.set_xlabel("seconds since the flood began")
    figure.savefig(path, dpi=110)
    plt.close(figure)


def _draw_rates(axes: Any, reaction: dict[str, Any]) -> None:
    trace = reaction["trace"]
    at = [second["at"] for second in trace]
    for vr in ("gold", "bronze"):
        rate = [_thousands(second[f"{vr}_pps"]) for second in trace]
        axes.plot(at, rate, color=COLOURS[vr], label=f"{vr} forwarded")
    for name, style in (("bronze_setpoint_pps", "--"), ("bronze_limit_pps", ":")):
        order = [_thousands(second[name]) for second in trace]
        label = name.removesuffix("_pps").replace("_", " ")
        axes.step(at, order, style, color=COLOURS["bronze"], where="post", label=label)
    axes.axhline(reaction["guarantee_pps"] / 1e3, color="grey", lw=0.8, label="gold's guarantee")
    axes.set_ylabel("kp/s")
    axes.legend(loc="center right", fontsize="small")


def _draw_shares(axes: Any, seconds: list[dict[str, Any]], what: str) -> None:
    at = [second["at"] for second in seconds]
    for name in seconds[0]["groups"]:
        shares = [second["groups"][name][what] for second in seconds]
        axes.plot(at, shares, label=name, color=COLOURS.get(name))
    if what == "ran":
        stolen = [sum(second["stolen"].values()) for second in seconds]
        axes.plot(at, stolen, color="black", lw=0.8, label="taken by other machines")
    axes.set_ylabel("CPUs used" if what == "ran" else "CPUs waited for")
    axes.legend(loc="center right", fontsize="small")


def _thousands(rate: float | None) -> float | None:
    return None if rate is None else rate / 1e3


def main() -> None:
    """Draw a reaction of a file: FILE NUMBER PNG."""
    source, number, target = sys.argv[1:4]
    draw(json.loads(Path(source).read_text())["reactions"][int(number)], Path(target))


if __name__ == "__main__":
    main()
