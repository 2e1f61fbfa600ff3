"""The page of a fleet: whole, escaped, its links lead to files, and it fits phone and desk."""

import re
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from training_fleet_rig import swept_host

from benchmarks.training.coverage_host import Case
from training.fleet.results import publish, read_all
from training.fleet.run import HostFailure

pytest_plugins = ["browser_fixtures"]

HOSTILE = '"><script>alert(1)<&amp;$a_2$ javascript:x#?%41'
"""A file name that would be markup, mathematics or another address."""
FAILURES = [HostFailure("away<i>", "exit code 255", "check <b>ssh</b>", ("<u>no</u>",))]
WIDTHS = (390, 820, 1440)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("fleet")
    for seed, (name, speed) in enumerate({"a": 1.0, HOSTILE: 0.8, "c": 1.0}.items()):
        swept_host(folder, name, speed=speed, seed=seed)
    swept_host(folder, "short", case=Case(samples=12))
    names = ["a", HOSTILE, "c", "short"]
    recordings, failures = read_all(folder, names, FAILURES)
    publish(folder, recordings, failures, rough=True, tell=lambda *_: None)
    return folder


@pytest.fixture(scope="module")
def page(folder: Path, chromium: Any) -> Any:
    context = chromium.new_context()
    tab = context.new_page()
    tab.asked, tab.complaints = [], []
    tab.on("request", lambda request: tab.asked.append(request.url))
    tab.on("console", lambda message: tab.complaints.append(message.text))
    tab.on("pageerror", lambda error: tab.complaints.append(str(error)))
    tab.goto((folder / "index.html").as_uri())
    yield tab
    context.close()


def test_it_asks_for_nothing_and_complains_of_nothing(page: Any) -> None:
    assert len(page.asked) == 1
    assert page.complaints == []
    assert page.locator("script, link, img, iframe, i, b, u").count() == 0


def test_names_and_reasons_are_shown_as_they_are(page: Any) -> None:
    text = page.locator("main").inner_text()
    assert f"{HOSTILE} is 20 % slower than the 2 others with the same CPU" in text
    assert "away<i>: exit code 255. To do: check <b>ssh</b>." in text
    assert HOSTILE in page.locator(".legend").inner_text()
    assert "refused: steady samples" in text
    assert page.locator("table tbody tr").count() == 4


def test_every_link_leads_to_a_file_beside_the_page(page: Any, folder: Path) -> None:
    links = [link.get_attribute("href") for link in page.locator("a").all()]
    assert len(links) == 3 * 3 + 1
    assert all(link.startswith("./") for link in links)
    assert all((folder / unquote(link)).is_file() for link in links)
    page.get_by_label(f"report of {HOSTILE}").click()
    page.wait_for_function("document.title.startsWith('What ')")
    page.go_back()


def test_every_drawing_has_a_name_and_ids_are_unique(page: Any, folder: Path) -> None:
    drawings = page.locator("svg[role=img]")
    assert drawings.count() == 1 + 3
    assert all(one.get_attribute("aria-label") for one in drawings.all())
    ids = re.findall(r'\bid="([^"]+)"', (folder / "index.html").read_text())
    assert len(ids) == len(set(ids)) > 0


@pytest.mark.parametrize("width", WIDTHS)
def test_only_the_table_scrolls_sideways(page: Any, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    assert page.evaluate("document.documentElement.scrollWidth") == width
    left = page.evaluate(
        "[...document.querySelectorAll('main > :not(.wide), figure')]"
        ".filter(e => e.scrollWidth > e.clientWidth + 1).map(e => e.outerHTML.slice(0, 80))"
    )
    assert left == []


def test_headings_of_the_table_are_not_broken_within_words(page: Any) -> None:
    page.set_viewport_size({"width": 1440, "height": 900})
    table = page.locator(".wide")
    assert table.evaluate("e => e.scrollWidth") == table.evaluate("e => e.clientWidth")
    assert page.locator("thead th").first.evaluate("e => getComputedStyle(e).overflowWrap") == (
        "normal"
    )
