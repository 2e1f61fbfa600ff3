"""The page for everybody: keyboard alone, screen readers, light and dark, small screens."""

import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from browser_rig import Visit, until
from page_rig import report
from support.inconclusive import inconclusive

from policer.contracts.overrides import Override
from policer.store import Event

pytest_plugins = ["browser_fixtures"]
pytestmark = pytest.mark.timeout(600)

VIEWS = {
    "fleet": ("#/", "never heard"),
    "host": ("#/hosts/edge-1", "the capacity is from"),
    "suspended": ("#/hosts/edge-2", "Nothing is sent to this host"),
    "exempt": ("#/hosts/edge-1/routers/gold", "It is exempt until"),
    "router": ("#/hosts/edge-1/routers/flood", "Version 1, by anna"),
    "events": ("#/events", "its offered load stays far above"),
    "punishments": ("#/punishments", "misbehaves"),
    "access": ("#/access", "policer token add"),
}
"""Each view, and words that are there once it is filled."""

CALM_S = 5.0
"""Between two drawings of a plot with reduced motion."""
CHECKS = Path(__file__).parents[2] / "page_checks"


def check(visit: Visit, name: str) -> Any:
    """Return what a script finds in the page as it stands."""
    return visit.page.evaluate((CHECKS / f"{name}.js").read_text())


@pytest.fixture
def seen(visit: Visit) -> Visit:
    """A tab of somebody who signed in: somebody punished, a host that is gone, and overrides."""
    visit.work.said["edge-1"] = (
        report("gold", 40e3, 55e3, setpoint=55e3),
        report("flood", 10e3, 400e3, setpoint=10e3),
    )
    visit.work.tick(20)
    until_then = datetime.now(UTC) + timedelta(days=1)
    for wanted in (
        Override("suspension", "suspended", "edge-2", reason="it is being replaced"),
        Override("exemption", "exempt", "edge-1", "gold", until_then, "a load test"),
    ):
        visit.work.store.overrides.put(wanted, None, "anna")
    visit.work.store.overrides.put(Override("brake", "off"), 1, "anna")
    visit.work.follow()
    visit.sign_in("#/access")
    return visit


def show(visit: Visit, view: str) -> None:
    address, words = VIEWS[view]
    visit.page.evaluate("hash => { location.hash = hash; }", address)
    visit.page.locator("main").get_by_text(words).first.wait_for()


def test_every_text_stands_out_in_light_and_in_dark(seen: Visit) -> None:
    for scheme in ("light", "dark"):
        seen.page.emulate_media(color_scheme=scheme)
        for view in VIEWS:
            show(seen, view)
            found = check(seen, "contrast")
            assert found["seen"] >= 15
            assert found["poor"] == [], f"{view}, {scheme}"


def test_everything_has_a_name_and_headings_are_in_order(seen: Visit) -> None:
    for view in VIEWS:
        show(seen, view)
        assert check(seen, "names") == [], view
        text = seen.page.locator("body").inner_text()
        assert [word for word in ("[object", "undefined", "NaN", "null") if word in text] == []


def test_nothing_is_wider_than_a_small_screen(seen: Visit) -> None:
    seen.page.set_viewport_size({"width": 360, "height": 640})
    for view in VIEWS:
        show(seen, view)
        wide = "document.documentElement.scrollWidth"
        assert seen.page.evaluate(wide) == 360, view
    show(seen, "host")
    region = seen.page.get_by_role("region", name="Routers of edge-1, renewed every second")
    assert region.get_attribute("tabindex") is None, "cards need no scrolling"
    seen.page.set_viewport_size({"width": 700, "height": 640})
    until(lambda: region.get_attribute("tabindex") == "0")


def test_the_switch_of_colours_is_kept_and_the_plot_follows(seen: Visit) -> None:
    page = seen.page
    page.emulate_media(color_scheme="light")
    show(seen, "router")
    ground = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(ground)
    page.get_by_label("Colours").select_option("dark")
    assert page.evaluate(ground) == "rgb(17, 22, 29)" != light
    page.reload()
    assert page.evaluate(ground) == "rgb(17, 22, 29)"
    page.get_by_label("Colours").select_option("as the system")
    assert page.evaluate(ground) == light


def test_the_keyboard_alone_leads_from_the_token_to_a_saved_contract(visit: Visit) -> None:
    page = visit.page
    visit.go()
    tab_to(page, "Token")
    page.keyboard.type(visit.work.token(name="keys"))
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="Fleet").wait_for()
    page.get_by_role("link", name="edge-1").wait_for()
    tab_to(page, "edge-1")
    page.keyboard.press("Enter")
    page.get_by_role("link", name="gold").wait_for()
    tab_to(page, "gold")
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="gold", level=1).wait_for()
    visit.sees("Version 1, by anna")
    tab_to(page, "Weight")
    page.keyboard.press("Control+a")
    page.keyboard.type("3")
    tab_to(page, "stop it: nothing is sent into it")
    page.keyboard.press("Space")
    tab_to(page, "Save")
    page.keyboard.press("Enter")
    visit.sees("Version 2, by keys")
    contract = visit.work.store.contracts.get("edge-1", "gold").value
    assert (contract.weight, contract.measures[-1]) == (3.0, "stop")


def test_the_skip_link_leads_to_the_content(seen: Visit) -> None:
    page = seen.page
    page.reload()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "view"
    assert page.evaluate("location.hash") == "#/access"


def tab_to(page: Any, name: str) -> None:
    """Press the tabulator until something of a name has the focus, and see that it shows."""
    named = """() => {
        const node = document.activeElement;
        const name = node.labels?.[0]?.textContent ?? node.textContent;
        return [name, getComputedStyle(node).outlineStyle];
    }"""
    for _ in range(80):
        page.keyboard.press("Tab")
        text, outline = page.evaluate(named)
        if text == name:
            assert outline != "none", f"{name} does not show that it has the focus"
            return
    pytest.fail(f"no way leads to {name}")


def test_news_are_said_to_a_screen_reader_without_moving_the_focus(visit: Visit) -> None:
    page = visit.page
    visit.sign_in("#/events")
    page.get_by_text("No events.").wait_for()
    field = page.get_by_label("Kind")
    field.focus()
    visit.work.store.events.add([Event("edge-1", "guarantee_missed", "too little", "gold")])
    said = page.locator("#said")
    until(lambda: said.inner_text() == "gold guarantee missed: too little")
    assert said.get_attribute("role") == "status"
    assert page.evaluate("document.activeElement.name") == "kind"


def test_what_moves_can_be_calmed(visit: Visit) -> None:
    """With reduced motion, plots are drawn every five seconds; the numbers go on."""
    visit.page.emulate_media(reduced_motion="reduce")
    visit.sign_in("#/access")
    plot, begun = visit.page.locator(".plot").first, time.monotonic()  # before it is drawn
    visit.page.evaluate("location.hash = '#/hosts/edge-1/routers/gold'")
    visit.sees("35.0")
    drawn = plot.get_attribute("data-points")
    visit.work.said["edge-1"] = (report("gold", 50e3, 50e3),)
    visit.work.tick(3)
    visit.sees("50.0")
    late = plot.get_attribute("data-points")
    if (took := time.monotonic() - begun) > CALM_S:
        inconclusive(f"the plot was due to be drawn again: this took {took:.1f} s")
    assert late == drawn
