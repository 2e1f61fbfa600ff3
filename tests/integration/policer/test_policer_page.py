"""The page in a real browser: signing in, finding the way, and nothing from elsewhere."""

import re
from pathlib import Path

import pytest
from browser_rig import Visit, described
from page_rig import INJECTION

from policer.page import STATIC
from policer.store import Event

pytest_plugins = ["browser_fixtures"]
pytestmark = pytest.mark.timeout(600)

EXTERNAL = re.compile(r"\b(?:https?|wss?):?//|(?:href|src)=[\"']//")
COMMENT = re.compile(r"/\*.*?\*/|(?<![:\"'])//[^\n]*", re.DOTALL)
MARKUP = re.compile(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function")


def own_files() -> list[Path]:
    return [p for p in STATIC.rglob("*") if p.suffix in {".js", ".css", ".html"}]


@pytest.mark.parametrize("path", own_files(), ids=lambda path: path.name)
def test_no_file_names_an_address_elsewhere_or_makes_markup_of_data(path: Path) -> None:
    text = path.read_text()
    if "vendor" in path.parts:
        text = COMMENT.sub("", text)
    else:
        assert MARKUP.findall(text) == []
    assert EXTERNAL.findall(text) == []


def test_every_file_says_what_it_is_for_and_is_no_longer_than_can_be_read() -> None:
    for path in own_files():
        if "vendor" not in path.parts:
            lines = path.read_text().splitlines()
            assert any(mark in "".join(lines[:2]) for mark in ("// ", "/* ", "<!-- ")), path
            assert len(lines) <= 400, path


def test_the_policy_forbids_all_that_is_not_the_pages_own(visit: Visit) -> None:
    answer = visit.page.goto(visit.service.origin)
    rules = dict(
        rule.strip().split(" ", 1) for rule in answer.headers["content-security-policy"].split(";")
    )
    expected = {"default-src": "'none'", "script-src": "'self'", "style-src": "'self'"}
    assert {name: rules[name] for name in expected} == expected


def test_a_token_lets_in_and_its_end_leads_back(visit: Visit) -> None:
    visit.expects(401)
    page = visit.page
    visit.go("#/hosts/edge-1")
    field = page.get_by_label("Token")
    field.fill("swordfish")
    page.get_by_role("button", name="Sign in").click()
    assert "this is no token" in described(field)
    field.fill("xtcp_0_" + 43 * "a")
    page.get_by_role("button", name="Sign in").click()
    page.get_by_text("the service does not know it").wait_for()
    assert field.get_attribute("aria-invalid") == "true"
    row, secret = visit.work.store.tokens.add("ops", ["read"], None, "anna")
    field.fill(secret)
    field.press("Enter")
    page.get_by_role("heading", name="edge-1", level=1).wait_for()
    visit.work.store.tokens.revoke(row.id, "anna")
    visit.work.now += 10  # the service remembers a token for some seconds
    page.get_by_role("alert").get_by_text("has expired or was revoked").wait_for()
    assert page.get_by_role("heading", name="Sign in").is_visible()
    assert page.evaluate("sessionStorage.length") == 0


def test_the_way_leads_from_the_fleet_over_a_host_to_a_router_and_back(visit: Visit) -> None:
    page = visit.page
    visit.sign_in()
    row = page.get_by_role("row").filter(has_text="edge-1")
    row.get_by_text("calm").wait_for()
    meter = row.get_by_role("meter", name="promised")
    assert meter.get_attribute("aria-valuetext") == "50 % of 100 kp/s"
    assert "never heard" in page.get_by_role("row").filter(has_text="edge-2").inner_text()
    row.get_by_role("link", name="edge-1").click()
    page.get_by_role("heading", name="edge-1", level=1).wait_for()
    assert page.evaluate("document.activeElement.tagName") == "H1"
    page.get_by_role("row").filter(has_text="gold").get_by_role("link").click()
    page.get_by_role("heading", name="gold", level=1).wait_for()
    assert page.title() == "gold on edge-1 · policer"
    page.get_by_role("navigation", name="Trail").get_by_role("link", name="Fleet").click()
    page.get_by_role("heading", name="Fleet").wait_for()
    page.go_back()
    page.get_by_role("heading", name="gold", level=1).wait_for()
    visit.go("#/hosts/edge-1/nonsense/%")
    page.get_by_role("heading", name="Not found").wait_for()


def test_hosts_are_found_ordered_and_those_with_problems_picked_out(visit: Visit) -> None:
    visit.work.add_host("aa-3", capacity=10e3)
    visit.work.tick()
    page = visit.page
    visit.sign_in()
    names = page.locator("tbody th")
    page.get_by_role("link", name="aa-3").wait_for()
    page.get_by_role("button", name="Forwarded").click()
    page.get_by_role("button", name="Forwarded").click()
    assert names.all_inner_texts()[0] == "edge-1"
    sorted_by = page.get_by_role("columnheader", name="Forwarded")
    assert sorted_by.get_attribute("aria-sort") == "descending"
    page.get_by_label("Only hosts with a problem").check()
    assert sorted(names.all_inner_texts()) == ["aa-3", "edge-2"]
    page.get_by_label("Find a host").fill("EDGE")
    assert names.all_inner_texts() == ["edge-2"]
    page.get_by_label("Find a host").fill("nowhere")
    assert page.get_by_text("No host fits.").is_visible()


def test_words_of_an_event_stay_words(visit: Visit) -> None:
    page = visit.page
    visit.work.store.events.add([Event("edge-1", "warned", INJECTION, "gold")])
    visit.sign_in("#/events")
    page.get_by_role("cell", name=INJECTION).wait_for()
    visit.work.store.events.add([Event("edge-1", "warned", f"live {INJECTION}", "gold")])
    page.get_by_role("cell", name=f"live {INJECTION}").wait_for()
    page.locator("#said").get_by_text("live").wait_for(state="attached")
    assert page.locator("main img, main script, #said img").count() == 0
    assert page.title() == "Events · policer"


def test_events_are_filtered_and_older_ones_loaded(visit: Visit) -> None:
    page = visit.page
    many = [Event("edge-1", "engaged", f"number {i}", "gold") for i in range(70)]
    visit.work.store.events.add([*many, Event("edge-2", "released", "elsewhere")])
    visit.sign_in("#/events")
    page.get_by_label("Kind").fill("engaged")
    page.get_by_label("Host").fill("edge-1")
    page.get_by_role("button", name="Filter").click()
    page.get_by_role("cell", name="number 69").wait_for()
    assert page.get_by_role("cell", name="elsewhere").count() == 0
    assert page.locator("tbody tr").count() == 50
    page.get_by_role("button", name="Load older events").click()
    page.get_by_role("cell", name="number 0", exact=True).wait_for()
    assert page.locator("tbody tr").count() == 70
    assert not page.get_by_role("button", name="Load older events").is_visible()


def test_a_filter_that_is_no_name_is_refused_in_words(visit: Visit) -> None:
    visit.expects(422)
    visit.sign_in("#/events?host=%2F")
    visit.page.get_by_role("alert").get_by_text("Events could not be loaded").wait_for()
