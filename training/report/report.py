"""Write the results of a sweep as one self-contained HTML page: no network, no scripts.

Light and dark follow the reader's system; figures have alternative texts, tables captions. All
text that comes from files is escaped.
"""

import math
from collections.abc import Iterator, Sequence
from pathlib import Path

from common.units import format_cap, format_rate
from training.design.gains import Design, Loop
from training.design.host_model import host_model
from training.errors import TrainingError
from training.fit.cost import CostFit, bend
from training.fit.fit import Fit
from training.fit.interval import Interval
from training.fit.loads import in_words, named
from training.recording.recording import Metadata, Recording
from training.report.contents import Contents, contents_of, speed_of
from training.report.export import FILES, export
from training.report.markup import Figures, Markup, document, element, joined, table
from training.report.plots import (
    draw_curve,
    draw_poles,
    draw_residuals,
    draw_samples,
    draw_step,
    svg,
)
from training.report.sections import expectations_section, files_section, responses_section
from training.report.summary import cautions, plain_words, steepest

ABOUT = (
    ("host", "host"),
    ("cpu", "CPU"),
    ("kernel", "kernel"),
    ("hypervisor", "hypervisor"),
    ("actuator", "capped through"),
    ("router", "router"),
    ("started", "measured"),
    ("xtc_version", "xtc"),
)


class ReportError(TrainingError):
    """A page that cannot be written: where, why, and how to fix it."""

    def __init__(self, path: str, problem: str) -> None:
        self.path, self.problem = path, problem
        self.fix = "give a path that this user may write"
        super().__init__(f"{path}: {problem} ({self.fix})")


def write_report(
    recording: Recording, fit: Fit, design: Design, path: Path, data: Path | None = None
) -> None:
    """Write the page, and its tables as files if a folder is given for them.

    Raises:
        ReportError: the page cannot be written.
        ExportError: the folder or a file in it cannot be written.
        models.InvalidModelError: the numbers do not describe a host.
    """
    contents = contents_of(recording, fit, host_model(fit, design, recording.metadata))
    text = page(recording, fit, design, contents, data)
    if data is not None:
        export(contents, data)
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ReportError(str(path), error.strerror or str(error)) from error


def report(recording: Recording, fit: Fit, design: Design) -> str:
    """Return the page as HTML."""
    contents = contents_of(recording, fit, host_model(fit, design, recording.metadata))
    return page(recording, fit, design, contents)


def page(
    recording: Recording, fit: Fit, design: Design, contents: Contents, data: Path | None = None
) -> str:
    """Return the page as HTML.

    Args:
        recording: the sweep.
        fit: its fit.
        design: the gains for it.
        contents: the tables of all three.
        data: the folder with the files of the tables; None if there is none.
    """
    metadata = recording.metadata
    figures = Figures()
    title = f"What {metadata.host} forwards at each CPU cap"
    verdict, *words = plain_words(fit)
    return document(
        title,
        (
            element("h1", title),
            element("p", element("strong", verdict)),
            element("p", *_measured(recording)),
            *_words(words, cautions(recording, fit, design)),
            *_curve(recording, fit, figures),
            *responses_section(contents.responses, figures),
            *_eq1(fit, figures),
            *_loops(fit, design, figures),
            *expectations_section(contents, fit.noise, speed_of(fit)),
            *(() if data is None else files_section(str(data), FILES)),
            *_about(metadata, recording),
        ),
    )


def _measured(recording: Recording) -> Iterator[str]:
    """Describe in one line what was measured, and when."""
    metadata, samples = recording.metadata, recording.samples
    yield f"Router {metadata.router}" if metadata.router else "A router"
    yield "".join(f", {name}" for name in (metadata.cpu, metadata.kernel) if name)
    if metadata.actuator:
        yield f", capped through {metadata.actuator}"
    if metadata.started:
        yield ", measured from "
        yield element("time", metadata.started)
    yield f": {len(samples)} samples in {samples[-1].at:.0f} s."


def _words(words: Sequence[str], found: Sequence[str]) -> Iterator[Markup]:
    """Yield the results of the fit, and warnings."""
    yield element("ul", *(element("li", sentence) for sentence in words))
    yield element("h2", "Be careful about")
    if found:
        yield element("ul", *(element("li", caution) for caution in found))
    else:
        yield element("p", "Nothing stands out.")


def _curve(recording: Recording, fit: Fit, figures: Figures) -> Iterator[Markup]:
    yield element("h2", "The curve")
    yield figures.figure(
        svg(lambda axes: draw_curve(axes, fit)),
        f"Throughput over cap. It rises to {format_rate(fit.top_pps)} at a cap of "
        f"{format_cap(fit.cap_threshold)}. The table of caps below has the numbers.",
        "Means at each cap with 95 % intervals; the monotone curve through them, which the model "
        "file keeps; a hinge, a logarithm and the shapes that fit; caps that no fit has seen.",
    )
    yield figures.figure(
        svg(lambda axes: draw_curve(axes, fit, log=True)),
        "The same over the logarithm of the cap, as Eq. 1 has it.",
        "The same over the logarithm of the cap: Eq. 1 is a straight line here.",
    )
    yield figures.figure(
        svg(lambda axes: draw_samples(axes, recording, fit)),
        f"All {len(recording.samples)} samples over the seconds of the sweep, by phase.",
        "Every sample over time. Visits of one cap that lie at different heights show a host "
        "whose speed changed; samples that creep towards a height show its lag.",
    )
    yield table("Measured caps", ("cap", "mean", "95 % interval", "samples", "scatter"), _caps(fit))
    if fit.held_out:
        head = ("cap", "predicted", "measured", "error")
        yield table("Caps held out of the fit", head, _held_out(fit))
    if fit.loads:
        rows = ((named(one.traffic), in_words(one)) for one in fit.loads)
        yield table("Other offered loads", ("offered", "throughput at the same caps"), rows)
    if fit.cost is not None:
        title = "What packets cost; 95 % intervals in brackets"
        yield table(title, ("quantity", "value"), _cost(fit.cost))


def _cost(cost: CostFit) -> Iterator[tuple[str, str]]:
    source = "CPU time used" if cost.scale == "used" else "cap"
    yield "us a packet", _interval(cost.per_packet_us, 3)
    yield "ns a byte", _interval(cost.per_byte_ns, 3)
    yield (
        f"us a packet of {cost.reference_bytes} bytes, by the {source}",
        _interval(cost.packet_us, 3),
    )
    for one in cost.sizes:
        line = f"{_interval(one.ratio, 3)}; straight line {one.line:.3f}"
        yield f"{one.packet_bytes} bytes, times that", line
    if cost.bends:
        yield "straight line", bend(cost)


def _caps(fit: Fit) -> Iterator[tuple[str, ...]]:
    for point in fit.points:
        rate = point.throughput_pps
        yield (
            format_cap(point.cap),
            format_rate(rate.value),
            _range(rate),
            str(point.samples),
            f"{point.scatter:.1%}",
        )


def _range(rate: Interval) -> str:
    """Return both ends of an interval of packet rates; a common unit appears once."""
    low, high = format_rate(rate.low), format_rate(rate.high)
    unit = high[high.index(" ") :]
    return f"{low.removesuffix(unit)} to {high}"


def _held_out(fit: Fit) -> Iterator[tuple[str, ...]]:
    for one in fit.held_out:
        rates = format_rate(one.predicted_pps), format_rate(one.measured_pps)
        yield (format_cap(one.cap), *rates, f"{one.error:.1%}")


def _eq1(fit: Fit, figures: Figures) -> Iterator[Markup]:
    eq1 = fit.eq1
    yield element("h2", "Eq. 1 of the paper")
    yield element(
        "p",
        "y(k+1) = a y(k) + b u(k), with u = log10(cap in percent) and y in kp/s, both as offsets "
        "from the operating point. It covers the caps below the threshold only.",
    )
    yield figures.figure(
        svg(lambda axes: draw_residuals(axes, fit)),
        f"Residual plot of {len(eq1.residuals)} samples: R² is {eq1.r_squared:.4f}.",
        "What Eq. 1 estimates from the sample before, against what came. Points off the line "
        "show where the curve is no straight line over log(cap).",
    )
    rows = (
        ("a", _interval(eq1.a, 4)),
        ("b, kp/s per decade of cap", _interval(eq1.b, 2)),
        ("b / (1 - a), the steady gain", _interval(eq1.line.gain, 2)),
        ("operating point", f"{eq1.line.mean_throughput:.2f} kp/s, {eq1.line.mean_log_cap:.3f}"),
        ("R² of Eq. 1", f"{eq1.r_squared:.4f}"),
        ("R² of the monotone curve", f"{fit.curve_r_squared:.4f}"),
        *((f"R² of the {one.name}", f"{one.r_squared:.4f}") for one in fit.shapes.shapes),
        ("delay, samples", str(eq1.delay)),
        ("a and b at once, as the paper fits", f"{eq1.joint.a.value:.4f}, {eq1.joint.b.value:.2f}"),
    )
    yield table("The fit; 95 % intervals in brackets", ("quantity", "value"), rows)


def _interval(value: Interval, digits: int) -> str:
    return f"{value.value:.{digits}f} ({value.low:.{digits}f} to {value.high:.{digits}f})"


def _loops(fit: Fit, design: Design, figures: Figures) -> Iterator[Markup]:
    yield element("h2", "The published laws on this host")
    yield element(
        "p",
        f"Designed for a settling time of {design.wanted_settling_s:g} s and an overshoot of "
        f"{design.wanted_overshoot:.0%}. These figures are Eq. 1's: without noise, bends, dead "
        "zone or whole percents. The default law needs no gains.",
    )
    yield figures.figure(
        svg(lambda axes: draw_poles(axes, design), (5.0, 4.2)),
        f"Poles and zeros in the z-plane: PI {_poles(design.pi)}; dead-beat "
        f"{_poles(design.dead_beat)}. All lie within the unit circle.",
        "Within the circle a loop is stable; the nearer to its middle, the faster it settles.",
    )
    yield figures.figure(
        svg(lambda axes: draw_step(axes, design)),
        f"Step responses: PI settles in {design.pi.settling_s:g} s and overshoots by "
        f"{design.pi.overshoot:.1%}; dead-beat settles in {design.dead_beat.settling_s:g} s.",
        "The answer to a step of the setpoint, simulated on Eq. 1.",
    )
    slope = f"{steepest(fit):.2f} times b"
    rows = list(
        zip(
            ("Kp", "Ki", "settles within 2 %", "overshoot", "bears a gain of", "phase margin"),
            *(_loop(loop) for loop in (design.pi, design.dead_beat)),
            strict=True,
        )
    )
    rows.append(("steepest slope of the curve", slope, slope))
    yield table("Gains and margins", ("quantity", "PI", "dead-beat"), rows)


def _poles(loop: Loop) -> str:
    return " and ".join(f"{pole.re:.3f}{pole.im:+.3f}i" for pole in loop.poles)


def _loop(loop: Loop) -> tuple[str, ...]:
    largest = "any" if math.isinf(loop.largest_gain) else f"{loop.largest_gain:.2f} times b"
    return (
        f"{loop.kp * 1e3:.3f}e-3",
        f"{loop.ki * 1e3:.3f}e-3",
        f"{loop.settling_s:g} s",
        f"{loop.overshoot:.1%}",
        largest,
        f"{loop.phase_margin_deg:.1f}°",
    )


def _about(metadata: Metadata, recording: Recording) -> Iterator[Markup]:
    yield element("h2", "What was measured")
    rows = [(name, str(getattr(metadata, key))) for key, name in ABOUT if getattr(metadata, key)]
    offered = metadata.offered_pps
    rows += [
        ("offered load", "not controlled" if offered is None else format_rate(offered)),
        ("period", f"{metadata.period_s:g} s"),
        ("samples", str(len(recording.samples))),
    ]
    yield table("Host and sweep", ("quantity", "value"), rows)
    yield element(
        "p",
        joined(
            (
                "Written by ",
                element("code", "xtc-train report"),
                "; docs/howto/training.md of xtc says what each figure means.",
            )
        ),
    )
