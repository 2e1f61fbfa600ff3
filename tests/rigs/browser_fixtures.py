"""Fixtures: a fleet, its service, and a real headless Chromium that looks at the page."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browser_rig import PATIENCE_S, Service, Visit
from page_rig import Fleetwork, report

CHROMIUM = Path("/usr/bin/chromium")


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """A browser without a window."""
    playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright")
    if not CHROMIUM.exists():
        pytest.skip(f"needs {CHROMIUM} (Debian's chromium)")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=str(CHROMIUM))
        yield browser
        browser.close()


@pytest.fixture
def work(tmp_path: Path) -> Iterator[Fleetwork]:
    """A fleet: edge-1 forwards for gold and flood, which were promised it; edge-2 is silent."""
    work = Fleetwork(tmp_path)
    work.add_host("edge-1")
    work.add_host("edge-2")
    work.promise("edge-1", "gold", guarantee_pps=40e3, ceiling_pps=60e3)
    work.promise("edge-1", "flood", guarantee_pps=10e3)
    work.said["edge-1"] = (report("gold", 35e3, 36e3), report("flood", 12e3, 12e3))
    work.tick(2)
    yield work
    work.store.close()


@pytest.fixture
def service(work: Fleetwork) -> Iterator[Service]:
    """The service, listening."""
    service = Service(work)
    service.start()
    yield service
    service.stop()


@pytest.fixture
def visit(chromium: Any, service: Service, work: Fleetwork) -> Iterator[Visit]:
    """A fresh tab; the test fails on whatever its console complains about."""
    context = chromium.new_context(locale="en-GB", viewport={"width": 1280, "height": 900})
    context.set_default_timeout(1000 * PATIENCE_S)
    visit = Visit(context.new_page(), service, work)
    yield visit
    context.close()
    assert visit.complaints == []
    assert visit.left_the_service() == []
