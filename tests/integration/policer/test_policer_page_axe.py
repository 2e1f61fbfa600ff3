"""The page under axe-core: no violation in any view, at three widths, light and dark."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from browser_rig import Visit
from page_rig import report

from policer.contracts.contract import Contract
from policer.contracts.overrides import Override
from policer.fleet.live import Leadership

pytest_plugins = ["browser_fixtures"]
pytestmark = pytest.mark.timeout(600)

VIEWS = {
    "#/": "never heard",
    "#/hosts/edge-1": "the capacity is from",
    "#/hosts/edge-1/routers/flood": "Version 1, by anna",
    "#/events": "its offered load stays far above",
    "#/punishments": "misbehaves",
    "#/overrides": "a load test",
    "#/classes": "silver",
    "#/capacity": "Choose hosts that are lost",
    "#/reports": "Wanted is what",
    "#/audit": "class silver",
    "#/access": "policer token add",
}
"""The address of each view, and words that are there once it is filled."""
WIDTHS = (360, 800, 1400)
SCHEMES: dict[str, dict[str, Any]] = {
    "light": {"resultTypes": ["violations"]},
    "dark": {"resultTypes": ["violations"], "runOnly": {"type": "tag", "values": ["cat.color"]}},
}
"""What is checked in light and in dark: all but colours is the same in both."""
WIDE = """() => [document.documentElement.scrollWidth, ...[...document.querySelectorAll(".scroll")]
    .filter((box) => box.scrollWidth > box.clientWidth).map((box) => box.textContent)]"""


@pytest.fixture
def seen(visit: Visit) -> Visit:
    """A tab of an administrator who sees alarms, a punishment and overrides."""
    work = visit.work
    work.said["edge-1"] = (
        report("gold", 40e3, 55e3, setpoint=55e3),
        report("flood", 10e3, 400e3, setpoint=10e3),
    )
    work.tick(20)
    tomorrow = datetime.now(UTC) + timedelta(days=1)
    exempt = Override("exemption", "exempt", "edge-1", "gold", tomorrow, "a load test")
    work.store.overrides.put(exempt, None, "anna")
    work.store.overrides.put(Override("suspension", "suspended", "edge-2"), None, "anna")
    work.store.overrides.put(Override("brake", "on"), 1, "anna")
    work.store.classes.put("silver", Contract(guarantee_pps=1e3), None, "anna")
    work.follow()
    work.refusals["edge-1"] = {"gold": "epoch: 7 is lower than 9"}
    work.tick()
    work.fleet.leadership = replace(Leadership(), leading=True, epoch=7)
    visit.sign_in("#/access", scope="admin")
    visit.page.get_by_role("link", name="Audit").wait_for()
    visit.sees("3 alarms")
    return visit


def bring_axe(page: Any) -> None:
    """Load axe-core into a page; it stays until that is loaded again."""
    package = pytest.importorskip("axe_playwright_python.sync_playwright")
    page.evaluate(package.Axe().axe_script)


def found(page: Any, scheme: str = "light") -> list[str]:
    """Return each violation with the elements that have it."""
    response = page.evaluate("options => axe.run(options)", SCHEMES[scheme])
    return [
        f"{one['id']}: {node['html']} {node['failureSummary']}"
        for one in response["violations"]
        for node in one["nodes"]
    ]


def test_axe_finds_no_violation_in_any_view_at_any_width(seen: Visit) -> None:
    page = seen.page
    bring_axe(page)
    for address, words in VIEWS.items():
        page.evaluate("hash => { location.hash = hash; }", address)
        page.locator("main").get_by_text(words).first.wait_for()
        for width in WIDTHS:
            page.set_viewport_size({"width": width, "height": 800})
            wide = page.evaluate(WIDE)
            assert wide[0] == width, address
            if width == WIDTHS[0]:
                assert wide[1:] == [], f"{address}: something scrolls sideways"
            for scheme in SCHEMES:
                page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
                assert found(page, scheme) == [], f"{address}, {width}, {scheme}"


def test_axe_finds_no_violation_in_signing_in_nor_in_a_question(visit: Visit) -> None:
    page = visit.page
    visit.go()
    bring_axe(page)
    page.get_by_label("Token").wait_for()
    assert found(page) == []
    visit.sign_in("#/overrides")
    visit.button("Put the brake on").click()
    page.get_by_role("dialog").wait_for()
    assert found(page) == []
    page.evaluate("document.querySelector('dialog').append(document.createElement('input'))")
    assert "label: <input>" in found(page)[0]
