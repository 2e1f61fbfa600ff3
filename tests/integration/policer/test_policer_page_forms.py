"""Contracts, capacity and pardons changed on the page: errors at their fields, nothing lost."""

from typing import Any

import msgspec
import pytest
from browser_rig import Visit, described, until
from page_rig import Fleetwork, report

from policer.contracts.contract import Contract
from policer.contracts.ladder import Step
from policer.contracts.promised import ANYWHERE
from policer.contracts.schedule import Hours
from policer.errors import Unknown

pytest_plugins = ["browser_fixtures"]
pytestmark = pytest.mark.timeout(600)

GOLD = "#/hosts/edge-1/routers/gold"
FLOOD = "#/hosts/edge-1/routers/flood"
FRESH = "#/hosts/edge-1/routers/fresh"


def kept(work: Fleetwork, vr: str = "gold") -> Contract:
    return work.store.contracts.get("edge-1", vr).value


def open_form(visit: Visit, view: str = GOLD, scope: str = "operate") -> None:
    visit.sign_in(view, scope)
    visit.sees("Version 1, by anna")


def changes(visit: Visit) -> list[str]:
    """Return the methods of all requests that change something."""
    return [method for method, _ in visit.asked if method != "GET"]


def test_an_error_is_told_at_its_field_and_mended_there(visit: Visit) -> None:
    visit.expects(422)
    page = visit.page
    open_form(visit)
    guarantee, ceiling = page.get_by_label("Guarantee,"), page.get_by_label("Ceiling,")
    assert (guarantee.input_value(), ceiling.input_value()) == ("40000", "60000")
    guarantee.fill("70k")
    visit.button("Save").click()
    page.locator("[aria-invalid=true]").wait_for()
    assert "is below the guarantee of 70000" in described(ceiling)
    assert page.evaluate("document.activeElement.name") == "ceiling_pps"
    assert kept(visit.work).guarantee_pps == 40e3
    ceiling.fill("")
    visit.button("Save").click()
    visit.sees("Version 2, by operate")
    assert page.locator("[aria-invalid]").count() == 0
    assert kept(visit.work) == Contract(guarantee_pps=70e3)
    history = page.get_by_role("table", name="Versions of the contract of gold")
    history.get_by_text("guarantee 40000 → 70000, ceiling 60000 → none").wait_for()
    assert history.locator("tbody tr").count() == 2


def test_what_the_form_does_not_show_of_a_contract_stays(visit: Visit) -> None:
    before = kept(visit.work)
    timed = msgspec.structs.replace(before, hours=(Hours("08:00", "18:00"),), zone="Europe/Berlin")
    visit.work.store.contracts.put("edge-1", "gold", timed, 1, "anna")
    visit.sign_in(GOLD, "operate")
    visit.sees("It holds at 1 windows of the week.")
    visit.page.get_by_label("Guarantee,").fill("30k")
    visit.button("Save").click()
    visit.sees("Version 3, by operate")
    assert kept(visit.work) == msgspec.structs.replace(timed, guarantee_pps=30e3)


def test_the_form_of_a_router_that_its_contract_follows_changes_that_contract(
    visit: Visit,
) -> None:
    store = visit.work.store
    store.contracts.put(ANYWHERE, "fresh", Contract(1e3), None, "anna", seen_on="edge-1")
    visit.work.said["edge-1"] = (report("fresh", 1e3, 1e3),)
    visit.work.follows["edge-1"] = {"fresh": "fresh"}
    visit.work.tick()
    visit.sign_in(FRESH, "operate")
    visit.sees("Version 1, by anna")
    visit.page.get_by_label("Guarantee,").fill("2k")
    visit.button("Save").click()
    visit.sees("Version 2, by operate")
    assert store.contracts.get(ANYWHERE, "fresh").value.guarantee_pps == 2e3


def test_a_rate_in_bits_is_kept_as_such_and_its_errors_are_told_at_the_same_field(
    visit: Visit,
) -> None:
    visit.expects(422)
    page = visit.page
    open_form(visit)
    guarantee, ceiling = page.get_by_label("Guarantee,"), page.get_by_label("Ceiling,")
    guarantee.fill("80 Mb/s")
    ceiling.fill("0.04Gbit/s")
    visit.button("Save").click()
    page.locator("[aria-invalid=true]").wait_for()
    assert "40 Mb/s is below the guarantee of 80 Mb/s" in described(ceiling)
    ceiling.fill("100Mbps")
    visit.button("Save").click()
    until(lambda: '"100Mbps" is no number (write digits, such as 20k' in described(ceiling))
    ceiling.fill("123.456 Mb/s")
    page.get_by_label("Packet size,").fill("1000")
    visit.button("Save").click()
    visit.sees("Version 2, by operate")
    sold = Contract(guarantee_bps=80e6, ceiling_bps=123.456e6, packet_bytes=1000)
    assert kept(visit.work) == sold
    shown = guarantee.input_value(), ceiling.input_value()
    assert shown == ("80 Mb/s", "123.456 Mb/s")
    history = page.get_by_role("table", name="Versions of the contract of gold")
    history.get_by_text("guarantee 40000 → 80 Mb/s, ceiling 60000 → 123.456 Mb/s").wait_for()
    visit.button("Save").click()  # nothing was changed by having been shown
    visit.sees("Version 3, by operate")
    assert kept(visit.work) == sold


def test_more_than_the_host_can_forward_is_refused_at_the_guarantee(visit: Visit) -> None:
    visit.expects(422)
    open_form(visit)
    visit.page.get_by_label("Ceiling,").fill("")
    guarantee = visit.page.get_by_label("Guarantee,")
    guarantee.fill("95000")
    guarantee.press("Enter")
    visit.page.locator("[aria-invalid=true]").wait_for()
    assert "can forward 100000 and has promised 10000" in described(guarantee)


def test_what_is_no_number_is_told_without_asking_the_service(visit: Visit) -> None:
    open_form(visit)
    weight = visit.page.get_by_label("Weight")
    weight.fill("heavy")
    visit.button("Save").click()
    assert '"heavy" is no number' in described(weight)
    assert changes(visit) == []


def test_a_number_out_of_range_is_told_at_its_field(visit: Visit) -> None:
    visit.expects(422)
    open_form(visit)
    weight = visit.page.get_by_label("Weight")
    weight.fill("5000")
    visit.button("Save").click()
    visit.page.locator("[aria-invalid=true]").wait_for()
    assert "1000" in described(weight)


def test_a_contract_changed_meanwhile_is_explained_and_not_overwritten(visit: Visit) -> None:
    visit.expects(412)
    open_form(visit)
    theirs = Contract(guarantee_pps=55e3, ceiling_pps=60e3)
    visit.work.store.contracts.put("edge-1", "gold", theirs, 1, "bob")
    guarantee = visit.page.get_by_label("Guarantee,")
    guarantee.fill("30000")
    visit.button("Save").click()
    visit.sees("This contract was changed since you read it.")
    assert guarantee.input_value() == "30000"
    assert kept(visit.work) == theirs
    visit.page.keyboard.press("Enter")  # the focus is on Reload
    visit.sees("Version 2, by bob")
    assert guarantee.input_value() == "55000"
    guarantee.fill("30000")
    visit.button("Save").click()
    visit.sees("Version 3, by operate")


def test_a_contract_is_made_and_removed(visit: Visit) -> None:
    visit.expects(404)
    page = visit.page
    visit.work.said["edge-1"] += (report("fresh", 1e3, 1e3),)
    visit.work.tick()
    visit.sign_in(FRESH)
    visit.sees("This router has no contract.")
    page.get_by_label("Guarantee,").fill("1.5k")
    page.get_by_label("Burst, packets", exact=True).fill("2k")
    page.get_by_label("pause it at the smallest cap").check()
    page.get_by_label("Dry run").check()
    visit.button("Make the contract").click()
    visit.sees("Version 1, by operate")
    measures = (Step.WARN, Step.LOWER, Step.LIMIT, Step.PAUSE)
    made = Contract(guarantee_pps=1500.0, measures=measures, dry_run=True, burst=2e3)
    assert kept(visit.work, "fresh") == made
    visit.button("Remove contract").click()
    page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
    assert kept(visit.work, "fresh") == made
    visit.button("Remove contract").click()
    page.get_by_role("dialog").get_by_role("button", name="Remove").click()
    visit.sees("This router has no contract.")
    with pytest.raises(Unknown):
        kept(visit.work, "fresh")
    page.get_by_role("cell", name="removed").wait_for()


def test_two_who_make_the_same_contract_do_not_overwrite_each_other(visit: Visit) -> None:
    visit.expects(404, 409)
    visit.work.said["edge-1"] += (report("fresh", 1e3, 1e3),)
    visit.work.tick()
    visit.sign_in(FRESH)
    visit.sees("This router has no contract.")
    visit.work.promise("edge-1", "fresh", guarantee_pps=2e3)
    visit.page.get_by_label("Guarantee,").fill("3000")
    visit.button("Make the contract").click()
    visit.sees("This contract was changed since you read it.")
    assert kept(visit.work, "fresh").guarantee_pps == 2e3


def test_a_token_that_may_only_read_is_told_so(visit: Visit) -> None:
    visit.expects(403)
    open_form(visit, scope="read")
    visit.button("Save").click()
    visit.sees("this takes a token with the scope operate")
    assert visit.work.store.contracts.get("edge-1", "gold").version.number == 1


def test_a_second_press_of_the_button_is_no_second_request(visit: Visit) -> None:
    open_form(visit)
    visit.page.get_by_label("Weight").fill("2")
    visit.button("Save").dblclick()
    visit.sees("Version 2, by operate")
    until(lambda: kept(visit.work).weight == 2.0)
    assert changes(visit).count("PUT") == 1


def test_a_capacity_below_what_was_promised_is_refused_at_its_field(visit: Visit) -> None:
    visit.expects(422)
    page = visit.page
    visit.sign_in("#/hosts/edge-1")
    visit.sees("the capacity is from an operator")
    capacity = page.get_by_label("Capacity, packets/s")
    capacity.fill("45k")
    visit.button("Save").click()
    page.locator("[aria-invalid=true]").wait_for()
    assert "is less than the 50000 packets/s that were promised" in described(capacity)
    capacity.fill("80k")
    visit.button("Save").click()
    visit.sees("Version 2, by operate")
    entry = visit.work.store.hosts.get("edge-1").value
    assert (entry.capacity_pps, entry.overcommit) == (80e3, False)


@pytest.fixture
def punished(work: Fleetwork) -> Fleetwork:
    """Flood sends ten times what it is held at, until the ladder's first steps are taken."""
    work.said["edge-1"] = (
        report("gold", 40e3, 55e3, setpoint=55e3),
        report("flood", 10e3, 400e3, setpoint=10e3),
    )
    work.tick(20)
    return work


def test_a_punished_router_is_shown_and_pardoned_once_confirmed(
    punished: Fleetwork, visit: Visit
) -> None:
    page = visit.page
    visit.sign_in("#/punishments")
    row = page.get_by_role("row").filter(has_text="flood")
    row.get_by_text("misbehaves").wait_for()
    row.get_by_role("link", name="flood").click()
    ladder = page.get_by_role("list", name="Steps")
    ladder.locator("[aria-current=step]").get_by_text("in force").wait_for()
    steps = ladder.locator("li").all_inner_texts()
    assert [text.partition(":")[0] for text in steps] == [*Step]
    assert steps[3:] == ["pause: not allowed", "stop: not allowed"]
    answer(visit, "Cancel")
    assert punished.inbox.take_all() == ()
    answer(visit, "Pardon")
    until(lambda: page.locator("#said").inner_text() == "flood is pardoned.")
    (pardon,) = punished.inbox.take_all()
    assert (pardon.host, pardon.vr) == ("edge-1", "flood")
    assert pardon.actor.startswith("operate (")


def answer(visit: Visit, button: str) -> Any:
    visit.page.locator("main").get_by_role("button", name="Pardon").click()
    dialog = visit.page.get_by_role("dialog", name="Pardon flood?")
    dialog.get_by_role("button", name=button).click()
    dialog.wait_for(state="hidden")
