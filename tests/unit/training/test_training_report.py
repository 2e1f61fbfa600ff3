"""A report is one page that needs nothing, says what the fit says, and makes no text markup."""

import re
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest
from training_rig import router, swept
from typer.testing import CliRunner

from common.units import format_cap, format_rate
from models import HostModel, bundled_host
from training.cli.main import app
from training.design.expect import Outlook, expected, fixed_cap, outlooks
from training.design.gains import Design, design
from training.design.host_model import b_of, host_model, lag_of
from training.design.validate import setpoints_of
from training.errors import TrainingError
from training.fit.eq1 import Missed
from training.fit.fit import Fit, HeldOut, fit
from training.recording.recording import Recording, read_csv, write_csv
from training.report.markup import Figures, Markup, element
from training.report.report import report, write_report
from training.report.responses import responses_of
from training.report.sections import responses_section
from training.report.summary import cautions, plain_words, steepest
from xtc.control.laws import law_named

HOSTILE = '"><script>alert(1)</script><img src=x onerror=alert(1)>&amp;'


_known: dict[object, list[Outlook]] = {}


def outlooks_once(
    host: HostModel, law: str, setpoints: Sequence[float], **given: float
) -> list[Outlook]:
    """Simulate no loop twice, which is most of the time of a page: names change no outlook."""
    bare = replace(host, name="any", description="", hypervisor="", cpu="", kernel="")
    key = (bare, law, tuple(setpoints), *given.items())
    if key not in _known:
        _known[key] = outlooks(host, law, setpoints, **given)
    return _known[key]


@pytest.fixture(autouse=True)
def _no_loop_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("training.report.contents.outlooks", outlooks_once)


class Page(HTMLParser):
    """A page as a reader's program takes it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.unclosed = 0
        self.words: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag != "meta":
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        self.unclosed += self.open.pop() != tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] != "style":
            self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Recording:
    return swept(router("paper", noise=0.02), tmp_path_factory.mktemp("sweep") / "sweep.csv")


@pytest.fixture(scope="module")
def found(recording: Recording) -> Fit:
    return fit(recording)


@pytest.fixture(scope="module")
def clean(tmp_path_factory: pytest.TempPathFactory) -> tuple[Recording, Fit]:
    """A host that follows Eq. 1, under a load that somebody controls."""
    path = tmp_path_factory.mktemp("sweep") / "sweep.csv"
    recording = swept(router("log", noise=0.01), path)
    metadata = msgspec.structs.replace(recording.metadata, offered_pps=100e3)
    return replace(recording, metadata=metadata), fit(recording)


@pytest.fixture(scope="module")
def gains(found: Fit) -> Design:
    return design(lag_of(found), b_of(found))


@pytest.fixture(scope="module")
def text(recording: Recording, found: Fit, gains: Design) -> str:
    return report(recording, found, gains)


@pytest.fixture(scope="module")
def page(text: str) -> Page:
    return Page(text)


def test_the_page_is_whole(text: str, page: Page) -> None:
    assert text.startswith("<!DOCTYPE html>")
    assert (page.open, page.unclosed) == ([], 0)
    assert page.all("html") == [{"lang": "en"}]
    ids = Counter(str(a["id"]) for _, a in page.tags if "id" in a)
    assert [name for name, times in ids.items() if times > 1] == []


def test_it_needs_no_network_and_no_script(text: str, page: Page) -> None:
    namespaces = {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}
    assert set(re.findall(r"https?://[^\"' <]+", text)) <= namespaces
    assert not {"script", "link", "iframe", "img", "object"} & {tag for tag, _ in page.tags}
    assert "@import" not in text
    assert not [a for _, a in page.tags if any(key.startswith("on") for key in a)]


def test_every_reference_within_a_drawing_leads_somewhere(text: str, page: Page) -> None:
    ids = {a["id"] for _, a in page.tags if "id" in a}
    wanted = set(re.findall(r'url\(#([^)]+)\)|href="#([^"]+)"', text))
    assert wanted
    assert {one or other for one, other in wanted} - ids == set()


def test_it_can_be_read_aloud(page: Page) -> None:
    drawings = page.all("svg")
    assert len(drawings) == 7
    assert {a["role"] for a in drawings} == {"img"}
    assert all(len(str(a["aria-label"])) > 40 for a in drawings)
    assert len(page.all("caption")) == len(page.all("table")) >= 4
    assert {a["scope"] for a in page.all("th")} == {"col", "row"}
    levels = [int(tag[1]) for tag, _ in page.tags if re.fullmatch(r"h\d", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(deeper - level <= 1 for level, deeper in pairwise(levels))


def test_what_may_be_wider_than_a_phone_scrolls_by_itself(page: Page) -> None:
    scrolled = [a for a in page.all("div") if a.get("class") == "wide"]
    assert len(scrolled) == len(page.all("table"))
    assert all(a["tabindex"] == "0" and a["aria-label"] for a in scrolled)
    assert any("width=device-width" in str(a.get("content")) for a in page.all("meta"))


def widths(text: str) -> list[float]:
    """Return the width of each drawing in points."""
    return [float(width) for width in re.findall(r'viewBox="0 0 ([\d.]+) ', text)]


def test_labels_of_drawings_are_legible_on_a_phone(text: str) -> None:
    """A phone of 390 px leaves 358 to a drawing: labels of 11 pt must not shrink below 10.5 px."""
    assert len(widths(text)) == 7
    assert all(11 * 358 / width >= 10.5 for width in widths(text))
    assert set(re.findall(r"font-size: (\d+)px", text)) == {"11"}


def test_a_page_on_paper_is_light_on_a_dark_screen_too(text: str) -> None:
    dark = [query for query in re.findall(r"@media[^{]+", text) if "dark" in query]
    assert [query.strip() for query in dark] == ["@media screen and (prefers-color-scheme: dark)"]


def luminance(colour: str) -> float:
    """Return WCAG 2's relative luminance of `#rrggbb`."""
    parts = [int(colour[n : n + 2], 16) / 255 for n in (1, 3, 5)]
    red, green, blue = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_text_and_lines_stand_out_in_light_and_dark(text: str) -> None:
    """WCAG 2 asks for a contrast of 4.5 for text, 3 for what a drawing means."""
    schemes = [dict(re.findall(r"--(\w+): (#\w+);", block)) for block in text.split(":root {")[1:3]]
    assert len(schemes) == 2
    for scheme in schemes:
        paper = luminance(scheme["paper"])
        for name, least in (
            ("ink", 4.5),
            ("faint", 4.5),
            ("first", 3),
            ("second", 3),
            ("third", 3),
        ):
            darker, lighter = sorted((paper, luminance(scheme[name])))
            assert (lighter + 0.05) / (darker + 0.05) >= least, name


def test_the_page_begins_with_the_verdict_and_what_was_measured(
    recording: Recording, found: Fit, gains: Design
) -> None:
    metadata = msgspec.structs.replace(
        recording.metadata, router="gold", cpu="2x", kernel="", actuator="quota", started="today"
    )
    words = Page(report(replace(recording, metadata=metadata), found, gains)).text
    count, seconds = len(recording.samples), recording.samples[-1].at
    title = f"What {metadata.host} forwards at each CPU cap"
    body = words.split(title)[-1].strip()
    assert body.startswith(
        f"{plain_words(found)[0]} Router gold, 2x, capped through quota, measured from today : "
        f"{count} samples in {seconds:.0f} s."
    )


def test_a_page_of_a_refused_sweep_begins_with_what_to_measure(
    recording: Recording, found: Fit, gains: Design
) -> None:
    rough = msgspec.structs.replace(found, held_out=(HeldOut(0.2, 20e3, 30e3),))
    body = Page(report(recording, rough, gains)).text.split("at each CPU cap")[-1].strip()
    assert body.startswith("Sweep again: caps that were held out are missed by 33%")
    assert "--budget" in body[: body.index("samples in")]


def test_drawings_take_the_colours_of_light_and_dark(text: str) -> None:
    assert "@media screen and (prefers-color-scheme: dark)" in text
    drawings = re.findall(r"<svg.*?</svg>", text, re.DOTALL)
    for drawing in drawings:
        assert "var(--ink)" in drawing
        assert set(re.findall(r"#[0-9a-f]{6}\b", drawing)) == set()
        ET.fromstring(drawing)


def test_text_from_a_file_becomes_no_markup(
    recording: Recording, found: Fit, gains: Design
) -> None:
    keys = ("host", "cpu", "kernel", "hypervisor", "actuator", "router", "started")
    metadata = msgspec.structs.replace(recording.metadata, **dict.fromkeys(keys, HOSTILE))
    hostile = Page(report(replace(recording, metadata=metadata), found, gains))
    assert (hostile.open, hostile.unclosed) == ([], 0)
    assert not {"script", "img"} & {tag for tag, _ in hostile.tags}
    assert hostile.text.count("<script>alert(1)</script>") >= len(keys)


def test_markup_is_escaped_where_it_is_none() -> None:
    assert element("p", "<b>", Markup("<i></i>"), title='"&') == (
        '<p title="&quot;&amp;">&lt;b&gt;<i></i></p>'
    )
    drawing = Figures().figure('<?xml?><svg><g id="a"/></svg>', '">', "<")
    assert drawing == (
        '<figure><svg role="img" aria-label="&quot;&gt;"><g id="f1-a"/></svg>'
        "<figcaption>Figure 1. &lt;</figcaption></figure>"
    )


def test_the_page_says_what_the_fit_says(page: Page, found: Fit, gains: Design) -> None:
    for words in plain_words(found):
        assert words in page.text
    assert f"{gains.pi.kp * 1e3:.3f}e-3" in page.text
    assert f"{found.eq1.a.value:.4f}" in page.text
    for one in found.held_out:
        assert f"{one.error:.1%}" in page.text


def test_the_same_data_gives_the_same_page(
    text: str, recording: Recording, found: Fit, gains: Design
) -> None:
    _known.clear()
    assert report(recording, found, gains) == text


def test_what_to_expect_is_what_the_simulations_say(
    page: Page, recording: Recording, found: Fit, gains: Design
) -> None:
    host = host_model(found, gains, recording.metadata)
    setpoints = setpoints_of(host, [])
    assert found.variation is not None
    runs = outlooks(host, "default", setpoints, noise=found.noise, speed=found.variation.speed)
    assert len(runs) == 5
    for setpoint, run in zip(setpoints, runs, strict=True):
        settled, error = run.settling_samples, run.mean_error
        assert None not in {settled.median, settled.low, settled.high}
        words = f"{settled.median} ({settled.low} to {settled.high})"
        words = f"{settled.median}" if settled.low == settled.high else words
        cap = format_cap(host.curve.cap_for(setpoint))
        assert f"{format_rate(setpoint)}, default {cap} {words} " in page.text
        assert error.median is not None
        assert abs(error.median) < 0.02
    assert page.text.count(" dead-beat ") >= 5


def test_the_step_responses_are_read_out(page: Page, recording: Recording, found: Fit) -> None:
    responses = responses_of(recording, found)
    assert len(responses.steps) >= 3
    assert responses.words in page.text
    (drawing,) = (
        str(a["aria-label"]) for a in page.all("svg") if "changes of cap" in str(a["aria-label"])
    )
    assert drawing.startswith(f"{len(responses.steps)} changes of cap")


def test_a_sweep_without_clear_changes_has_no_figure_of_them(
    recording: Recording, found: Fit
) -> None:
    responses = msgspec.structs.replace(responses_of(recording, found), steps=(), left_out=2)
    words = "".join(responses_section(responses, Figures()))
    assert "No change of cap is large enough" in words
    assert "2 changes are left out" in words
    assert "<svg" not in words


def changed(found: Fit, **fields: object) -> Fit:
    return msgspec.structs.replace(found, **fields)


BENT = Missed(noise=0.1, drift=0.0, line=0.4, chance=0.001)
NOISY = Missed(noise=0.4, drift=0.0, line=0.1, chance=0.3)


def of_eq1(found: Fit, **fields: object) -> Fit:
    return changed(found, eq1=msgspec.structs.replace(found.eq1, **fields))


@pytest.mark.parametrize(
    ("words", "change"),
    [
        ("ended below the top", lambda f: changed(f, threshold_reached=False)),
        ("scatter by 30%", lambda f: changed(f, noise=0.3)),
        (
            "Held-out caps are missed",
            lambda f: changed(
                f,
                held_out=tuple(
                    msgspec.structs.replace(h, measured_pps=2 * h.predicted_pps) for h in f.held_out
                ),
            ),
        ),
        ("a rough guess", lambda f: of_eq1(f, r_squared=0.5, missed=BENT)),
        ("no model predicts", lambda f: of_eq1(f, r_squared=0.5, missed=NOISY)),
        ("1 sample late", lambda f: of_eq1(f, delay=1)),
        (
            "follows more steps",
            lambda f: of_eq1(f, a=msgspec.structs.replace(f.eq1.a, high=f.eq1.a.value + 0.3)),
        ),
        (
            "takes the bend of the curve for lag",
            lambda f: of_eq1(
                f,
                joint=msgspec.structs.replace(
                    f.eq1.joint,
                    a=msgspec.structs.replace(f.eq1.joint.a, value=f.eq1.a.high + 0.1),
                ),
            ),
        ),
        (
            "dead-beat law bears",
            lambda f: of_eq1(
                f,
                line=msgspec.structs.replace(
                    f.eq1.line, gain=msgspec.structs.replace(f.eq1.line.gain, value=20.0)
                ),
            ),
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_each_caution_is_said_where_there_is_cause(
    clean: tuple[Recording, Fit], words: str, change: Callable[[Fit], Fit]
) -> None:
    recording, found = clean
    gains = design(lag_of(found), b_of(found))
    assert any(words in caution for caution in cautions(recording, change(found), gains))


def test_where_there_is_no_cause_nothing_is_said(clean: tuple[Recording, Fit]) -> None:
    recording, found = clean
    gains = design(lag_of(found), b_of(found))
    assert cautions(recording, found, gains) == []
    assert "Nothing stands out." in Page(report(recording, found, gains)).text


def test_a_load_that_nobody_controlled_is_said(
    recording: Recording, found: Fit, gains: Design
) -> None:
    assert recording.metadata.offered_pps is None
    assert any("was not controlled" in c for c in cautions(recording, found, gains))


def test_the_steepest_part_of_the_papers_host_is_found(found: Fit) -> None:
    """From cap 15 to 20 Table 1 rises by 120 kp/s per decade."""
    gain = found.eq1.line.gain.value
    assert 100 <= steepest(found) * gain <= 200


def test_a_fixed_cap_loses_what_is_stolen_and_a_loop_does_not() -> None:
    host = bundled_host("paper")
    assert fixed_cap(host, 32e3, 0.15) == pytest.approx(0.85 * 32e3, rel=0.01)
    law = law_named("default", host)
    (run,) = expected(host, law, [32e3], stolen=0.15)
    assert abs(run.mean_error) < 0.01
    (starved,) = expected(host, law, [90e3], stolen=0.8)
    assert starved.mean_pps == pytest.approx(65e3, rel=0.01)  # what Table 1 has at a cap of 20


def test_the_command_writes_the_page_that_the_recording_gives(
    recording: Recording, text: str, tmp_path: Path
) -> None:
    sweep, output = tmp_path / "sweep.csv", tmp_path / "report.html"
    write_csv(recording, sweep)
    assert read_csv(sweep) == recording
    result = CliRunner().invoke(app, ["report", str(sweep), "--output", str(output)])
    assert result.exit_code == 0, result.output
    assert output.read_text() == text


def test_a_page_that_cannot_be_written_is_named(
    recording: Recording, found: Fit, gains: Design, tmp_path: Path
) -> None:
    nowhere = tmp_path / "nowhere" / "report.html"
    with pytest.raises(TrainingError, match=r"nowhere/report\.html: No such file"):
        write_report(recording, found, gains, nowhere)
