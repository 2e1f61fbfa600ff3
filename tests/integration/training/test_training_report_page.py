"""A report in a real browser: light and dark, from phone to desktop, read aloud."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from training.design.gains import design
from training.design.host_model import b_of, lag_of
from training.fit.fit import fit
from training.recording.recording import read_csv
from training.report.report import write_report

pytest_plugins = ["browser_fixtures"]
pytestmark = pytest.mark.timeout(600)

ROOT = Path(__file__).parents[3]
CHECKS = ROOT / "tests" / "page_checks"
WIDTHS = (390, 820, 1440)
NO_NAVIGATION = {"no header", "no nav", "no footer"}
"""A single page has none of these."""


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Write the report of the sweep that comes with the notebooks."""
    folder = tmp_path_factory.mktemp("report")
    recording = read_csv(ROOT / "notebooks" / "data" / "lab-user-space.csv")
    found = fit(recording)
    gains = design(lag_of(found), b_of(found))
    write_report(recording, found, gains, folder / "report.html", folder / "data")
    return (folder / "report.html").as_uri()


@pytest.fixture
def tab(chromium: Any, address: str) -> Iterator[Any]:
    """A tab with the report; the test fails on any message of its console, and on any request."""
    page = chromium.new_page()
    messages, asked = list[str](), list[str]()
    page.on("console", lambda message: messages.append(message.text))
    page.on("pageerror", lambda error: messages.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    page.goto(address)
    yield page
    page.close()
    assert messages == []
    assert set(asked) == {address}


def check(tab: Any, name: str) -> Any:
    """Return what a script finds in the page as it stands."""
    return tab.evaluate((CHECKS / f"{name}.js").read_text())


@pytest.mark.parametrize("width", WIDTHS)
def test_the_page_does_not_scroll_sideways_and_wide_tables_do(tab: Any, width: int) -> None:
    tab.set_viewport_size({"width": width, "height": 900})
    assert tab.evaluate("document.documentElement.scrollWidth") == width
    boxes = tab.evaluate(
        "[...document.querySelectorAll('.wide, figure svg')].map(node => {"
        " const box = node.getBoundingClientRect(); return [box.left, box.right]; })"
    )
    assert len(boxes) >= 12
    assert all(0 <= left < right <= width for left, right in boxes)
    inner = "[...document.querySelectorAll('.wide')].map(n => n.scrollWidth - n.clientWidth)"
    too_wide = [more for more in tab.evaluate(inner) if more > 0]
    assert bool(too_wide) == (width == 390)


@pytest.mark.parametrize("width", WIDTHS)
def test_text_in_drawings_is_legible_and_within_them(tab: Any, width: int) -> None:
    tab.set_viewport_size({"width": width, "height": 900})
    found = tab.evaluate(
        "[...document.querySelectorAll('figure svg text')].map(node => {"
        " const box = node.getBoundingClientRect();"
        " const own = node.ownerSVGElement.getBoundingClientRect();"
        " const scale = own.width / node.ownerSVGElement.viewBox.baseVal.width;"
        " const within = box.left >= own.left - 1 && box.right <= own.right + 1;"
        " return [node.textContent, within, scale * parseFloat(getComputedStyle(node).fontSize)];"
        "})"
    )
    assert len(found) >= 60
    assert [text for text, within, _ in found if not within] == []
    # Exponents are smaller than the labels that they stand in.
    assert [text for text, _, size in found if size < 10] == []


def test_the_heading_of_a_row_stays_in_sight_on_a_phone(tab: Any) -> None:
    tab.set_viewport_size({"width": 390, "height": 900})
    table = tab.get_by_role("region", name="Each law at five setpoints")
    heading = table.get_by_role("rowheader").first
    before = heading.bounding_box()
    table.evaluate("node => { node.scrollLeft = 200; }")
    assert table.evaluate("node => node.scrollLeft") > 0
    assert heading.bounding_box()["x"] == pytest.approx(before["x"], abs=1)


def test_every_text_stands_out_in_light_and_in_dark(tab: Any) -> None:
    grounds = set()
    for scheme in ("light", "dark"):
        tab.emulate_media(color_scheme=scheme)
        found = check(tab, "contrast")
        assert found["seen"] >= 200
        assert found["poor"] == [], scheme
        grounds.add(tab.evaluate("getComputedStyle(document.body).backgroundColor"))
    assert len(grounds) == 2


def test_everything_has_a_name_and_figures_have_alternative_texts(tab: Any) -> None:
    assert set(check(tab, "names")) == NO_NAVIGATION
    drawings = tab.locator("figure svg")
    assert drawings.count() == 7
    for number in range(drawings.count()):
        drawing = drawings.nth(number)
        assert drawing.get_attribute("role") == "img"
        assert len(drawing.get_attribute("aria-label")) > 40
    assert [word for word in ("undefined", "NaN", "None") if word in tab.inner_text("body")] == []
