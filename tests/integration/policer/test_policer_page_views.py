"""Views of overrides, classes, capacity and the audit log; plans agree with the command line."""

import random
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from browser_rig import Visit, until

from policer.contracts.contract import Contract
from policer.contracts.overrides import Override
from policer.contracts.placement import Guaranteed, Room, fitting, moved
from policer.history.packing import packed
from policer.store import ChunkRow

pytest_plugins = ["browser_fixtures"]
pytestmark = pytest.mark.timeout(600)


def views(visit: Visit) -> list[str]:
    """Return the views that are offered."""
    links = visit.page.get_by_role("navigation", name="Views").get_by_role("link")
    return [str(text) for text in links.all_inner_texts()]


def test_the_audit_log_is_offered_to_administrators_alone(visit: Visit) -> None:
    with visit.page.expect_response("**/v1/token"):
        visit.sign_in("#/audit", scope="operate")
    visit.sees("for tokens with the scope admin")
    assert "Audit" not in views(visit)
    visit.button("Sign out").click()
    visit.sign_in("#/audit", scope="admin")
    visit.page.get_by_role("cell", name="contract edge-1/gold").wait_for()
    assert "Audit" in views(visit)


def test_overrides_are_listed_and_ended_by_those_who_may(visit: Visit) -> None:
    overrides = visit.work.store.overrides
    tomorrow = datetime.now(UTC) + timedelta(days=1)
    overrides.put(Override("suspension", "suspended", "edge-2", reason="new card"), None, "ann")
    exempt = Override("exemption", "exempt", "edge-1", "gold", tomorrow)
    overrides.put(exempt, None, "ann")
    with visit.page.expect_response("**/v1/token"):
        visit.sign_in("#/overrides", scope="read")
    visit.sees("new card")
    assert visit.page.get_by_role("button", name="End the").count() == 0
    visit.button("Sign out").click()
    visit.sign_in("#/overrides")
    visit.button("End the exemption of gold").click()
    visit.page.get_by_role("link", name="gold on edge-1").wait_for(state="detached")
    visit.button("End the suspension of edge-2").click()
    visit.sees("Nothing is overridden.")
    assert overrides.all() == []


def test_classes_say_how_many_contracts_have_them(visit: Visit) -> None:
    visit.work.store.classes.put("silver", Contract(guarantee_bps=8e6), None, "anna")
    visit.work.promise("edge-1", "gold-2", class_name="silver")
    visit.sign_in("#/classes", scope="read")
    row = visit.page.get_by_role("row").filter(has_text="silver")
    row.get_by_text("8 Mb/s").first.wait_for()
    assert row.get_by_role("cell").all_inner_texts()[2] == "1"


def test_a_guarantee_is_fitted_and_the_loss_of_a_host_counted(visit: Visit) -> None:
    page, work = visit.page, visit.work
    work.add_host("edge-3", capacity=45e3)
    work.said["edge-3"] = ()
    work.tick()
    visit.sign_in("#/capacity", scope="read")
    page.get_by_role("checkbox", name="edge-1").check()
    visit.sees("1 of 2 routers find no place; they take 10.0 kp/s in all.")
    table = page.get_by_role("table", name="Routers of the lost hosts")
    rows = [line.split() for line in table.locator("tbody tr").all_inner_texts()]
    assert [(row[0], row[3]) for row in rows] == [("gold", "edge-3"), ("flood", "no")]
    guarantee = page.get_by_label("Guarantee,")
    guarantee.fill("lots")
    visit.button("Find hosts").click()
    page.locator("[aria-invalid=true]").wait_for()
    guarantee.fill("126 Mb/s")  # 45 kp/s of 350 bytes
    visit.button("Find hosts").click()
    visit.sees("It takes 45.0 kp/s; 2 of 2 hosts have room.")
    hosts = page.get_by_role("table", name="Hosts that can keep it").locator("tbody th")
    assert hosts.all_inner_texts() == ["edge-3", "edge-1"]


def test_the_page_plans_as_the_command_line_does(visit: Visit) -> None:
    visit.go()
    dice = random.Random(8)
    for _ in range(20):
        rooms = [Room(f"h{n}", 100.0, dice.randrange(100)) for n in range(6)]
        routers = [Guaranteed(f"h{n % 6}", f"r{n}", dice.randrange(40)) for n in range(18)]
        given = {
            "rooms": [{"host": h, "capacity": c, "promised": p} for h, c, p in rooms],
            "routers": [one._asdict() for one in routers],
        }
        plan = visit.page.evaluate(
            """async ({ rooms, routers }) => {
                const { fitting, moved } = await import("/js/planning.js");
                const moves = moved(rooms, routers, new Set(["h1", "h4"]));
                const fits = fitting(rooms, 30).map(({ host }) => host);
                return [fits, moves.map(({ vr, target }) => [vr, target])];
            }""",
            given,
        )
        moves = moved(rooms, routers, {"h1", "h4"})
        assert plan == [
            [room.host for room in fitting(rooms, 30)],
            [[move.router.vr, move.to] for move in moves],
        ]


def test_the_plot_of_a_host_begins_before_the_visit(visit: Visit) -> None:
    now = int(time.time())
    begin = now - now % 10 - 300
    second: list[Any] = [1.0, 50e3, 20e3, 1.0, 30e3, 0.0, 0.0, 0.0]
    chunk = packed({"gold": second * 10, "flood": second * 10})
    rows = [ChunkRow("edge-1", 1, begin + 10 * n, 1, chunk) for n in range(20)]
    leadership = visit.work.store.leadership("test")
    epoch = leadership.acquire()
    leadership.release()
    assert epoch is not None
    assert visit.work.store.history.put(rows, epoch)
    visit.sign_in("#/hosts/edge-1")
    plot = visit.page.locator(".plot").first
    until(lambda: int(plot.get_attribute("data-points") or 0) >= 190)
    row = visit.page.get_by_role("row").filter(has_text="Throughput").first
    # Both of them, at every instant before the visit; 47.0 is of their daemon.
    until(lambda: row.get_by_role("cell").all_inner_texts()[:3] == ["47.0", "40.0", "47.0"])
