"""What operators override, on the page: shown where it acts, and changed by those who may."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from browser_rig import Visit, until
from page_rig import INJECTION, report

from policer.contracts.overrides import MOST_REASON, Override
from policer.decide.telemetry import HostTelemetry

pytest_plugins = ["browser_fixtures"]
pytestmark = pytest.mark.timeout(600)

HOST, FLOOD = "#/hosts/edge-1", "#/hosts/edge-1/routers/flood"


def answer(visit: Visit, button: str, *, end: str | None = None, reason: str = "") -> None:
    """Fill in the dialog that is open, and press a button of it."""
    dialog = visit.page.get_by_role("dialog")
    if end is not None:
        dialog.get_by_label("For how long").select_option(end)
    if reason:
        dialog.get_by_label("Reason").fill(reason)
    dialog.get_by_role("button", name=button).click()


def changes(visit: Visit) -> list[str]:
    return [method for method, _ in visit.asked if method != "GET"]


def test_the_brake_is_put_on_switched_off_and_made_automatic(visit: Visit) -> None:
    visit.sign_in()
    visit.sees("Automatic. It stops all escalation when too many routers")
    visit.button("Put the brake on").click()
    answer(visit, "Put the brake on", end="4 hours", reason="a new model")
    visit.sees("a new model. No ladder is climbed.")
    stored = visit.work.store.overrides.brake()
    assert (stored.mode, stored.reason) == ("on", "a new model")
    assert stored.until is not None
    assert timedelta(hours=3) < stored.until - datetime.now(UTC) <= timedelta(hours=4)
    visit.work.follow()
    visit.sees("an operator put the brake on")
    visit.button("Switch the brake off").click()
    answer(visit, "Switch the brake off")
    visit.sees("Off until it is ended, by operate")
    visit.button("Make the brake automatic").click()
    answer(visit, "Make the brake automatic")
    visit.sees("Automatic.")
    assert visit.work.store.overrides.all() == []


def test_a_brake_that_was_changed_meanwhile_is_not_overwritten(visit: Visit) -> None:
    visit.expects(412)
    visit.sign_in()
    visit.button("Put the brake on").click()
    visit.work.store.overrides.put(Override("brake", "off"), 1, "bob")
    answer(visit, "Put the brake on")
    visit.sees("Not done: brake of the fleet is at version 2 now")
    visit.sees("Off until it is ended, by bob")


def test_control_of_a_host_is_suspended_and_resumed(visit: Visit) -> None:
    visit.sign_in(HOST)
    visit.sees("The policer controls this host.")
    visit.button("Suspend control").click()
    answer(visit, "Cancel")
    assert changes(visit) == []
    visit.button("Suspend control").click()
    answer(visit, "Suspend control", reason="an update")
    visit.sees("Control is suspended until it is ended, by operate")
    visit.work.follow()
    visit.go("#/")
    row = visit.page.get_by_role("row").filter(has_text="edge-1")
    until(lambda: "suspended" in row.inner_text())
    assert "an update" in row.inner_text()
    visit.go(HOST)
    visit.button("Resume control").click()
    visit.sees("The policer controls this host.")
    assert visit.work.store.overrides.all() == []


def test_a_router_is_exempt_for_a_time_and_its_punishment_is_lifted(visit: Visit) -> None:
    visit.work.said["edge-1"] = (
        report("gold", 40e3, 55e3, setpoint=55e3),
        report("flood", 10e3, 400e3, setpoint=10e3),
    )
    visit.work.tick(20)
    visit.sign_in(FLOOD)
    visit.sees("it still misbehaves")
    visit.button("Exempt for a time").click()
    answer(visit, "Exempt", end="1 day", reason="a load test")
    visit.sees("It is exempt until")
    visit.work.tick()
    visit.sees("It misbehaves; no step was taken yet, or none is allowed.")
    visit.go(HOST)
    row = visit.page.get_by_role("row").filter(has_text="flood")
    until(lambda: "exempt until" in row.inner_text())
    visit.go(FLOOD)
    visit.button("End the exemption").click()
    visit.button("Exempt for a time").wait_for()
    assert visit.work.store.overrides.all() == []


def test_a_router_without_a_contract_has_no_ladder_to_be_exempt_from(visit: Visit) -> None:
    visit.expects(404)
    visit.work.said["edge-1"] += (report("fresh", 1e3, 1e3),)
    visit.work.tick()
    visit.sign_in("#/hosts/edge-1/routers/fresh")
    visit.sees("It has no contract, so nothing is done to it.")
    assert not visit.button("Exempt for a time").is_visible()


def test_who_may_only_read_sees_overrides_and_no_buttons(visit: Visit) -> None:
    visit.work.store.overrides.put(Override("brake", "on", reason="a drill"), 1, "ann")
    visit.work.store.overrides.put(Override("suspension", "suspended", "edge-1"), None, "ann")
    visit.work.follow()
    with visit.page.expect_response("**/v1/token"):
        visit.sign_in(scope="read")
    visit.sees("On until it is ended, by ann: a drill. No ladder is climbed.")
    assert not visit.button("Switch the brake off").is_visible()
    visit.go(HOST)
    visit.sees("Control is suspended until it is ended, by ann")
    assert not visit.button("Resume control").is_visible()


def test_an_administrator_raises_the_epoch_above_one_that_a_host_obeys(visit: Visit) -> None:
    work = visit.work

    def refuse() -> None:
        live = work.fleet.host("edge-1")
        telemetry: HostTelemetry = replace(live.telemetry, highest_epoch=1_900_000_000)
        work.fleet.put(replace(live, telemetry=telemetry, refusals={"gold": "epoch: 7 is lower"}))

    refuse()
    with visit.page.expect_response("**/v1/token"):
        visit.sign_in(HOST, scope="operate")
    visit.sees("Its daemon obeys epoch 1900000000; the leader's is 7.")
    assert not visit.button("Raise the epoch").is_visible()
    visit.button("Sign out").click()
    visit.sign_in(HOST, scope="admin")
    visit.button("Raise the epoch").click()
    answer(visit, "Raise the epoch")
    until(work.store.overrides.all)
    assert work.store.overrides.all()[0].above == 1_900_000_000


def test_a_reason_is_text_and_no_longer_than_it_may_be(visit: Visit) -> None:
    long = (INJECTION * 9)[:MOST_REASON]
    visit.sign_in(HOST)
    visit.button("Suspend control").click()
    answer(visit, "Suspend control", reason=long + "!")
    visit.sees("Control is suspended until it is ended")
    assert visit.work.store.overrides.all()[0].reason == long
    visit.work.follow()
    visit.go("#/")
    visit.page.get_by_role("row").filter(has_text="suspended").first.wait_for()
    assert "bad" not in visit.page.title()
