"""Why the page is red, every condition of a router, times in a zone, and input that is not lost."""

import re
from dataclasses import replace
from typing import Any

import pytest
from browser_rig import Visit, until
from page_rig import INJECTION, report

from policer.contracts.overrides import Override
from policer.fleet.live import Leadership

pytest_plugins = ["browser_fixtures"]
pytestmark = pytest.mark.timeout(600)

HOST, FLOOD = "#/hosts/edge-1", "#/hosts/edge-1/routers/flood"
LIVE = {"harmed": ["gold"], "distrust": "a clock", "link_problem": "", "braked": True}
ROUTER = {
    "vr": "gold",
    "contract": {"guarantee_pps": 40e3, "dry_run": False},
    "report": {
        "active": True,
        "mode": "degraded",
        "finding": "starved",
        "throughput_pps": 10e3,
        "cap_known": False,
        "floor_problem": "no model tells what it takes",
        "limit_pps": 5e3,
    },
    "punishment": {"height": 2, "step": "lower"},
    "misbehaving": True,
    "refusal": "epoch: 7 is lower than 9",
    "exemption": {"until": "2026-07-01T10:00:00Z"},
}


def called(visit: Visit, module: str, call: str, given: Any = None) -> Any:
    """Return what a function of one of the page's modules makes of something."""
    script = f"async (given) => {{ const m = await import('/js/{module}.js'); return m.{call}; }}"
    return visit.page.evaluate(script, given)


def punish(visit: Visit) -> None:
    visit.work.said["edge-1"] = (
        report("gold", 40e3, 55e3, setpoint=55e3),
        report("flood", 10e3, 400e3, setpoint=10e3),
    )
    visit.work.tick(20)


def test_the_page_is_red_with_reasons_that_lead_to_what_is_concerned(visit: Visit) -> None:
    page, work = visit.page, visit.work
    banner, icon = page.get_by_role("region", name="Alarms"), page.locator("link[rel=icon]")
    punish(visit)
    live = work.fleet.host("edge-1")
    telemetry = replace(live.telemetry, distrust=INJECTION)
    work.fleet.put(replace(live, telemetry=telemetry, refusals={"gold": "epoch: 7 < 9"}))
    work.fleet.leadership = replace(Leadership(), leading=True, epoch=7)
    work.fleet.braked = True
    visit.sign_in("#/events")
    links = banner.get_by_role("link")
    until(lambda: links.count() == 4)
    addresses = [link.get_attribute("href") for link in links.all()]
    assert addresses == ["#/overrides", HOST, HOST, FLOOD]
    assert INJECTION in banner.inner_text()
    assert page.title() == "4 alarms · Events · policer"
    assert icon.get_attribute("href") == "icon-alarm.png"
    links.last.click()
    page.get_by_role("heading", name="flood", level=1).wait_for()
    visit.button("Sign out").click()
    page.get_by_role("heading", name="Sign in").wait_for()
    assert not banner.is_visible()
    assert (page.title(), icon.get_attribute("href")) == ("Sign in · policer", "icon.png")


def test_what_is_only_reported_or_wanted_makes_nothing_red(visit: Visit) -> None:
    visit.go()
    leadership = {"brake": "off", "braked": True, "braked_hosts": []}
    dry = {"host": "a", "vr": "b", "step": "warn", "only_reported": True}
    calm = {"entry": {"name": "a"}, "live": {"distrust": "", "refused": 0}}
    fleet = {"hosts": [calm], "punishments": [dry], "leadership": leadership}
    assert called(visit, "status", "reasons(given)", fleet) == []
    assert called(visit, "status", "reasons({})") == []
    braked = {"leadership": {"brake": "automatic", "braked": False, "braked_hosts": ["a"]}}
    found = called(visit, "status", "reasons(given)", braked)
    assert found == [{"words": "The brake is on at a", "address": "#/hosts/a"}]


def test_every_condition_of_a_router_is_shown_the_worst_first(visit: Visit) -> None:
    visit.go()
    visit.page.evaluate("localStorage.setItem('policer-zone', 'utc')")
    found = called(visit, "conditions", "routerConditions(...given)", [ROUTER, LIVE])
    assert [one["words"] for one in found] == [
        "distrusted",
        "refused: epoch: 7 is lower than 9",
        "short",
        "starved",
        "brake on",
        "punished: lower",
        "misbehaves",
        "exempt until 2026-07-01 10:00:00 UTC",
        "overridden",
        "degraded",
        "cap unknown",
        "no floor: no model tells what it takes",
        "input limited",
        "held",
    ]
    assert [one["tone"] for one in found] == 4 * ["bad"] + 9 * ["warn"] + ["good"]
    unknown = {"vr": "gold", "report": None, "refusal": "", "contract": None}
    found = called(visit, "conditions", "routerConditions(given)", unknown)
    assert [one["words"] for one in found] == ["not seen", "no contract"]


def test_a_row_has_a_mark_for_each_condition_and_so_has_the_routers_page(visit: Visit) -> None:
    punish(visit)
    visit.work.store.overrides.put(Override("suspension", "suspended", "edge-1"), None, "anna")
    visit.work.follow()
    expected = ["suspended", "overridden", "punished: lower", "misbehaves", "held"]
    visit.sign_in(HOST)
    row = visit.page.get_by_role("row").filter(has_text="flood")
    until(lambda: sorted(row.locator(".mark").all_inner_texts()) == sorted(expected))
    row.get_by_role("link").click()
    state = visit.page.get_by_role("group", name="State").locator(".mark")
    until(lambda: sorted(state.all_inner_texts()) == sorted(expected))


def test_times_have_a_zone_and_the_switch_is_remembered(chromium: Any, visit: Visit) -> None:
    context = chromium.new_context(timezone_id="Asia/Kolkata")
    other = Visit(context.new_page(), visit.service, visit.work)
    punish(visit)
    other.sign_in("#/events")
    moment = other.page.locator("tbody time").first
    local = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d (GMT\+5:30|IST)")
    until(lambda: local.fullmatch(moment.inner_text()))
    other.page.get_by_label("Times").select_option("UTC")
    instant = moment.get_attribute("datetime")[:19].replace("T", " ")
    assert moment.inner_text() == f"{instant} UTC"
    other.page.reload()
    until(lambda: moment.inner_text() == f"{instant} UTC")
    context.close()
    assert other.complaints == []


def test_input_that_was_not_saved_is_asked_about(visit: Visit) -> None:
    page = visit.page
    asked: list[str] = []

    def stay(question: Any) -> None:
        asked.append(question.type)
        question.dismiss()

    page.on("dialog", stay)
    visit.sign_in(FLOOD)
    visit.sees("Version 1, by anna")
    weight = page.get_by_label("Weight")
    weight.fill("7")
    page.get_by_role("link", name="Events", exact=True).click()
    dialog = page.get_by_role("dialog", name="Leave without saving?")
    dialog.get_by_role("button", name="Cancel").click()
    assert (page.url.split("/", 3)[3], weight.input_value()) == (FLOOD, "7")
    page.evaluate("() => { setTimeout(() => location.reload(), 0); }")
    until(lambda: page.wait_for_timeout(20) or asked == ["beforeunload"])
    visit.button("Save").click()
    visit.sees("Version 2, by operate")
    page.get_by_role("link", name="Events", exact=True).click()
    page.get_by_role("heading", name="Events", level=1).wait_for()
    page.go_back()
    visit.sees("Version 2, by operate")
    weight.fill("8")
    page.get_by_role("link", name="Fleet", exact=True).first.click()
    dialog.get_by_role("button", name="Leave").click()
    page.get_by_role("heading", name="Fleet", level=1).wait_for()
    page.reload()
    page.get_by_role("heading", name="Fleet", level=1).wait_for()
    assert asked == ["beforeunload"]
