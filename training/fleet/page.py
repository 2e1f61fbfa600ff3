"""Write the results of a fleet as one HTML page: no network, no scripts; pure."""

from collections.abc import Iterator, Mapping, Sequence
from urllib.parse import quote

import msgspec

from common.output import counted
from common.units import format_cap, format_rate
from training.compare.relative import Ratio
from training.fit.drift import Variation
from training.fit.fit import Fit
from training.fleet.plots import SMALL, draw_all, draw_one, style_of
from training.fleet.run import HostFailure
from training.fleet.summary import APART, HostRow, Summary
from training.report.markup import Figures, Markup, document, element, joined
from training.report.plots import svg

TITLE = "What the hosts of the fleet forward at each CPU cap"
HEAD = (
    "host",
    "verdict",
    "CPU",
    "top",
    "cap threshold",
    "smallest useful cap",
    "speed",
    "noise",
    "speed varies by",
)
NONE = "-"


class Links(msgspec.Struct, frozen=True):
    """The names of one host's files next to the page; None if there is none."""

    recording: str
    report: str | None = None
    model: str | None = None


def fleet_page(
    summary: Summary,
    fits: Mapping[str, Fit],
    links: Mapping[str, Links],
    failures: Sequence[HostFailure] = (),
) -> str:
    """Return the page as HTML.

    Args:
        summary: the results of the recordings.
        fits: by name, the fits that are not refused.
        links: by name, the files of each host of the summary.
        failures: the hosts that could not be swept this time.
    """
    return document(
        TITLE,
        (
            element("h1", TITLE),
            *_findings(summary),
            *_failures(failures),
            *_table(summary, links),
            *_curves(fits),
            element("p", "Written by ", element("code", "xtc-train fleet"), "."),
        ),
        class_="fleet",
    )


def _findings(summary: Summary) -> Iterator[Markup]:
    usable = sum(row.usable for row in summary.hosts)
    hosts = counted(len(summary.hosts), "host")
    yield element("p", f"Recordings of {hosts}; the models of {usable} can be used.")
    if summary.findings:
        strong = (element("li", element("strong", words)) for words in summary.findings)
        yield element("ul", *strong)
    elif any(row.speed is not None for row in summary.hosts):
        none = f"No host surely differs by more than {APART:.0%}".replace("%", " %")
        yield element("p", f"{none} from the median host with the same CPU.")


def _failures(failures: Sequence[HostFailure]) -> Iterator[Markup]:
    if not failures:
        return
    yield element("h2", "Not swept this time")
    yield element(
        "ul",
        *(element("li", f"{one.name}: {one.problem}. To do: {one.fix}.") for one in failures),
    )


def _table(summary: Summary, links: Mapping[str, Links]) -> Iterator[Markup]:
    yield element("h2", "Hosts")
    if not summary.hosts:
        yield element("p", "There is no recording yet.")
        return
    caption = "Each host, with 95 % intervals"
    rows = [_row(row, links[row.name]) for row in summary.hosts]
    headings = (element("th", text, scope="col") for text in HEAD)
    inner = element(
        "table",
        element("caption", caption),
        element("thead", element("tr", *headings)),
        element("tbody", joined(rows, "\n")),
    )
    yield element("div", inner, class_="wide", tabindex="0", role="region", aria_label=caption)
    yield element(
        "p",
        "Speed is a multiple of the throughput of the median host with the same CPU model, at the "
        "caps that hold both back. Noise is the standard deviation of a sample at a constant cap.",
    )


def _row(row: HostRow, links: Links) -> Markup:
    called = [element("br"), element("small", row.host)] if row.host != row.name else []
    files = element("small", joined(_links(row.name, links), ", "))
    figures = [_top(row), _threshold(row), _cap(row.smallest_useful_cap), speed_words(row)]
    figures += [NONE if row.noise is None else f"{row.noise:.1%}", _varies(row)]
    return element(
        "tr",
        element("th", row.name, *called, element("br"), files, scope="row"),
        element("td", row.verdict, class_="text"),
        element("td", row.cpu or NONE, class_="text"),
        *(element("td", *_in_two_lines(words)) for words in figures),
    )


def _in_two_lines(words: str) -> Iterator[str]:
    """Yield a figure, and below it the text in brackets."""
    figure, bracket, rest = words.partition(" (")
    yield figure
    if bracket:
        yield element("br")
        yield element("small", rest.removesuffix(")"))


def _links(name: str, links: Links) -> Iterator[Markup]:
    """Yield links to files in the same folder; names are escaped to stay paths in it."""
    for words, file in (
        ("report", links.report),
        ("model", links.model),
        ("recording", links.recording),
    ):
        if file is not None:
            label = f"{words} of {name}"
            yield element("a", words, href=f"./{quote(file)}", aria_label=label)


def _top(row: HostRow) -> str:
    if row.top_pps is None:
        return NONE
    low, high = format_rate(row.top_pps.low), format_rate(row.top_pps.high)
    return f"{format_rate(row.top_pps.value)} ({low} to {high})"


def _threshold(row: HostRow) -> str:
    if row.cap_threshold is None:
        return NONE
    cap = format_cap(row.cap_threshold)
    return cap if row.threshold_reached else f"not reached at {cap}"


def _cap(cap: float | None) -> str:
    return NONE if cap is None else format_cap(cap)


def speed_words(row: HostRow) -> str:
    """Return the speed of a host, or why it has none."""
    if row.reference is None:
        return NONE if row.top_pps is None else "the only one of its kind"
    if row.reference == row.name:
        return "1 (the median host)"
    return "no common caps" if row.speed is None else _ratio(row.speed)


def _ratio(ratio: Ratio) -> str:
    return f"{ratio.value:.2f} ({ratio.low:.2f} to {ratio.high:.2f})"


def _varies(row: HostRow) -> str:
    return _variation(row.variation) if row.top_pps is not None else NONE


def _variation(variation: Variation | None) -> str:
    """Describe how much the speed of a host varied from one visit of a cap to another."""
    if variation is None:
        return "not known"
    return f"{variation.speed:.1%}" if variation.sure else f"less than {variation.high:.1%}"


def _curves(fits: Mapping[str, Fit]) -> Iterator[Markup]:
    if not fits:
        return
    figures, names, every = Figures(), list(fits), list(fits.values())
    yield element("h2", "The curves")
    yield figures.figure(
        svg(lambda axes: draw_all(axes, every)),
        f"Throughput over cap of {counted(len(every), 'host')}. The table of hosts has the tops.",
        "The monotone curve of each host, one over the other.",
    )
    yield element("ul", *(_key(number, name) for number, name in enumerate(names)), class_="legend")
    yield element(
        "p",
        "Each host by itself: means at each cap with 95 % intervals, and the others in grey.",
    )
    small = (
        figures.figure(
            svg(lambda axes, n=number: draw_one(axes, every, n), SMALL),  # type: ignore[misc]
            f"Throughput over cap of {name}, with the other hosts behind.",
            name,
        )
        for number, name in enumerate(names)
    )
    yield element("div", *small, class_="multiples")


def _key(number: int, name: str) -> Markup:
    colour, line = style_of(number)
    return element("li", name, class_=f"colour{colour} line{line}")
