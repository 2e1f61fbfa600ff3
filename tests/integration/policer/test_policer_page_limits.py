"""The page of a limited token: what it may not do is not offered, and no request is refused."""

from typing import Any

import pytest
from browser_rig import Visit, until
from page_rig import Fleetwork

from policer.actor import Actor
from policer.contracts.contract import Contract
from policer.contracts.reach import Reach
from policer.contracts.tenant import Tenant

pytest_plugins = ["browser_fixtures"]
pytestmark = pytest.mark.timeout(600)

ACME = Reach(tenants=("acme",))
GOLD = "#/hosts/edge-1/routers/gold"


@pytest.fixture
def owned(work: Fleetwork) -> Fleetwork:
    """A fleet in which gold is of acme."""
    terms = Contract(guarantee_pps=40e3, ceiling_pps=60e3, tenant="acme")
    work.store.tenants.put("acme", Tenant(), None, "anna")
    work.store.contracts.put("edge-1", "gold", terms, 1, Actor("anna", "a11a", "192.0.2.1"))
    work.tick(2)
    return work


def cell_texts(visit: Visit) -> list[str]:
    return [str(text) for text in visit.page.locator("tbody tr").all_inner_texts()]


def asked_of(visit: Visit, part: str) -> list[str]:
    return [url for _, url in visit.asked if part in url]


def test_a_tenant_sees_its_routers_and_no_host(owned: Fleetwork, visit: Visit) -> None:
    visit.sign_in(reach=ACME)
    visit.page.get_by_role("heading", name="Routers", level=1).wait_for()
    visit.page.get_by_role("link", name="gold").wait_for()
    assert len(cell_texts(visit)) == 1
    assert visit.page.get_by_role("link", name="Routers").is_visible()
    for hidden in ("Capacity", "Audit"):
        assert visit.page.get_by_role("link", name=hidden).count() == 0
    visit.page.get_by_role("link", name="Overrides").click()
    visit.sees("Nothing is overridden.")
    assert visit.page.get_by_role("heading", name="Brake").count() == 0
    visit.page.get_by_role("link", name="Classes").click()
    visit.sees("There is no class.")
    visit.page.get_by_role("link", name="Routers").click()
    visit.page.get_by_role("link", name="edge-1").click()
    visit.page.get_by_role("heading", name="edge-1", level=1).wait_for()
    visit.page.get_by_role("link", name="gold").click()
    visit.sees("Version 2, by operator")
    assert "flood" not in visit.page.locator("body").inner_text()
    assert asked_of(visit, "leadership") == []
    assert owned.fleet.hosts


def test_a_tenant_changes_its_contract_and_keeps_its_tenant(owned: Fleetwork, visit: Visit) -> None:
    visit.sign_in(GOLD, reach=ACME)
    visit.sees("Version 2, by operator")
    tenant = visit.page.get_by_label("Tenant")
    assert tenant.input_value() == "acme"
    assert not tenant.is_editable()
    visit.page.get_by_label("Weight").fill("3")
    visit.button("Save").click()
    visit.sees("Version 3, by operate")
    kept = owned.store.contracts.get("edge-1", "gold").value
    assert (kept.weight, kept.tenant) == (3.0, "acme")


def test_who_may_only_read_is_offered_no_change(owned: Fleetwork, visit: Visit) -> None:
    visit.sign_in(GOLD, scope="read", reach=ACME)
    visit.sees("Version 2, by operator")
    for name in ("Save", "Remove contract", "Pardon", "Exempt for a time"):
        assert not visit.button(name).is_visible(), name
    assert owned.inbox.take_all() == ()


def test_of_a_host_that_is_reached_the_capacity_is_not_changed(
    owned: Fleetwork, visit: Visit
) -> None:
    visit.sign_in("#/hosts/edge-1", reach=Reach(hosts=("edge-1",)))
    visit.page.get_by_role("link", name="flood").wait_for()
    assert visit.page.get_by_label("Capacity, packets/s").count() == 0
    visit.page.evaluate("location.hash = '#/'")
    visit.page.get_by_role("heading", name="Fleet", level=1).wait_for()
    until(lambda: len(cell_texts(visit)) == 1)
    assert visit.page.get_by_role("heading", name="Brake").count() == 0
    assert owned.fleet.hosts


def test_an_unlimited_token_gives_a_router_to_a_tenant(owned: Fleetwork, visit: Visit) -> None:
    visit.sign_in("#/hosts/edge-1/routers/flood")
    visit.sees("Version 1, by anna")
    visit.page.get_by_label("Tenant").fill("beta")
    visit.expects(422)
    visit.button("Save").click()
    visit.sees("there is no tenant 'beta'")
    owned.store.tenants.put("beta", Tenant(), None, "anna")
    visit.button("Save").click()
    visit.sees("Version 2, by operate")
    assert owned.store.contracts.get("edge-1", "flood").value.tenant == "beta"
    visit.sees("tenant none → beta")
    visit.page.get_by_label("Tenant").fill("no name!")
    visit.expects(422)
    visit.button("Save").click()
    visit.sees("it has the wrong form")


def test_access_says_what_the_token_is(owned: Fleetwork, visit: Visit) -> None:
    visit.sign_in("#/access", scope="read", reach=ACME)
    text = words_of(visit)
    assert "acme" in text
    assert "policer token add" not in text
    assert "Changes" not in text
    assert owned.fleet.hosts


def test_an_administrator_reads_who_changed_what(owned: Fleetwork, visit: Visit) -> None:
    visit.sign_in("#/audit", scope="admin")
    visit.sees("contract edge-1/gold")
    text = visit.page.locator("main").inner_text()
    assert "a11a" in text
    assert "192.0.2.1" in text
    visit.go("#/access")
    assert "policer token add" in words_of(visit)
    assert owned.fleet.hosts


def words_of(visit: Visit) -> Any:
    visit.page.get_by_role("heading", name="Your token").wait_for()
    return visit.page.locator("main").inner_text()
