"""One HTML page on two sweeps: the ratio curve with its interval, and the conclusion; pure."""

from matplotlib.axes import Axes

from common.units import format_cap, format_rate
from models.logcap import PERCENT_PER_CPU
from training.compare.likeness import Likeness
from training.compare.ratio import Ratio
from training.fit.interval import Interval
from training.report.markup import Figures, document, element, table
from training.report.plots import FIRST, INK, LINE, SECOND, svg


def page_of(ratio: Ratio, likeness: Likeness, names: tuple[str, str]) -> str:
    """Return the page; the names are those of A and B."""
    drawn = Figures().figure(
        svg(lambda axes: draw_ratio(axes, ratio)),
        f"Ratio of B to A at each cap. {likeness.words}",
        "Dots are the ratio at a cap, bars its 95 % interval; the band is the common ratio's.",
    )
    notes = (element("p", note) for note in likeness.notes)
    files = element("p", f"A: {names[0]}; B: {names[1]}")
    return document(
        "Two sweeps compared",
        (
            element("h1", "Two sweeps compared"),
            element("p", element("strong", likeness.words)),
            *(files, *notes, drawn, _figures(ratio)),
        ),
    )


def draw_ratio(axes: Axes, ratio: Ratio) -> None:
    """Draw the ratio at each cap with its interval, and the common one as a band."""
    common = ratio.common
    axes.axhspan(common.low, common.high, color=LINE, label="common ratio, 95 %", zorder=0)
    axes.axhline(common.value, color=SECOND, label="common ratio")
    axes.axhline(1.0, color=INK, linewidth=1, linestyle=":")
    caps = [point.cap * PERCENT_PER_CPU for point in ratio.points]
    found = [point.ratio for point in ratio.points]
    halves = [[one.value - one.low for one in found], [one.high - one.value for one in found]]
    values = [one.value for one in found]
    axes.errorbar(caps, values, halves, fmt="o", color=FIRST, capsize=3, label="B/A, 95 %")
    axes.set_xscale("log")
    axes.set_xlabel("cap (% of one CPU)")
    axes.set_ylabel("throughput of B / throughput of A")
    axes.grid(visible=True)
    axes.set_axisbelow(True)
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=3, frameon=False)


def _figures(ratio: Ratio) -> str:
    rows = [
        (format_cap(one.cap), format_rate(one.a_pps), format_rate(one.b_pps), _words(one.ratio))
        for one in ratio.points
    ]
    rows.append(("top", "", "", _words(ratio.top.ratio)))
    rows.append(("common", "", "", _words(ratio.common)))
    return table("The ratio at each cap", ("cap", "A", "B", "B/A (95 %)"), rows)


def _words(found: Interval) -> str:
    return f"{found.value:.3f} ({found.low:.3f} to {found.high:.3f})"
