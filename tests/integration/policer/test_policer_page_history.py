"""What the page shows of the time before the visit: plots, and reports that print."""

import csv
import io
import time
from datetime import UTC, date, datetime
from pathlib import Path

import pytest
from browser_rig import Visit, until

from policer.contracts.contract import Contract
from policer.history.packing import packed
from policer.store import ChunkRow, DayRow

pytest_plugins = ["browser_fixtures"]
pytestmark = pytest.mark.timeout(600)

GOLD = "#/hosts/edge-1/routers/gold"


def points(visit: Visit) -> int:
    return int(visit.page.locator(".plot").first.get_attribute("data-points"))


def lead(visit: Visit) -> int:
    leadership = visit.work.store.leadership("test")
    epoch = leadership.acquire()
    leadership.release()
    assert epoch is not None
    return epoch


def test_a_plot_begins_with_what_was_before_the_visit(visit: Visit) -> None:
    now = int(time.time())
    begin = now - now % 10 - 300
    second = [1.0, 50e3, 20e3, 1.0, 30e3, 0.0, 0.0, 0.0]
    rows = [
        ChunkRow("edge-1", 1, begin + 10 * n, 1, packed({"gold": second * 10})) for n in range(20)
    ]
    assert visit.work.store.history.put(rows, lead(visit))
    visit.sign_in(GOLD)
    until(lambda: points(visit) >= 200)
    visit.work.tick()
    until(lambda: points(visit) >= 202)
    row = visit.page.get_by_role("row").filter(has_text="Throughput").first
    # Lowest is of the time before, and now of the daemon.
    until(lambda: row.get_by_role("cell").all_inner_texts()[:2] == ["35.0", "20.0"])


def test_a_report_is_looked_at_printed_and_saved(visit: Visit, tmp_path: Path) -> None:
    today = datetime.now(UTC).date()
    row = DayRow("edge-1", "gold", today, 1, data_s=3600.0, breach_s=3661.0, missing=12345.0)
    assert visit.work.store.sla.put([row], lead(visit))
    page = visit.page
    visit.sign_in("#/reports")
    line = page.get_by_role("row").filter(has_text="gold")
    line.get_by_text("1:01:01").wait_for()
    assert "12 345" in line.inner_text().replace("\u202f", " ")
    assert page.get_by_role("row").count() == 2  # a contract of this moment is in no report yet
    with page.expect_download() as saved:
        visit.button("Save as CSV").click()
    path = tmp_path / saved.value.suggested_filename
    saved.value.save_as(path)
    assert path.name == f"sla-{today:%Y-%m}.csv"
    rows = list(csv.DictReader(io.StringIO(path.read_text())))
    assert [row["vr"] for row in rows] == ["gold"]
    page.emulate_media(media="print")
    assert not page.get_by_role("navigation", name="Views").is_visible()
    assert not visit.button("Print").is_visible()
    assert line.is_visible()


def test_a_report_names_all_hosts_of_a_contract_that_follows(visit: Visit) -> None:
    day = datetime.now(UTC).date()
    visit.work.store.contracts.put("", "roaming", Contract(1.0), None, "test")
    rows = [DayRow(h, "x", day, 1, data_s=60.0, follows="roaming") for h in ("edge-1", "edge-9")]
    assert visit.work.store.sla.put(rows, lead(visit))
    visit.sign_in("#/reports")
    line = visit.page.get_by_role("row").filter(has_text="roaming")
    line.get_by_role("link", name="edge-9").wait_for()
    links = line.get_by_role("link").all()
    assert [link.inner_text() for link in links] == ["edge-1", "edge-9"]
    assert "edge-1, edge-9" in line.inner_text()


def test_another_month_is_chosen_and_one_that_cannot_be_is_said(visit: Visit) -> None:
    visit.sign_in("#/reports")
    visit.page.get_by_label("Month").fill("2001-01")
    visit.expects(422)
    visit.button("Show").click()
    visit.sees("a month that is no longer kept")
    assert visit.page.url.endswith("#/reports?month=2001-01")
    first = date.today().replace(day=1)  # noqa: DTZ011  any month that is kept will do
    visit.page.get_by_label("Month").fill(f"{first:%Y-%m}")
    visit.button("Show").click()
    visit.page.get_by_role("heading", name=f"Service levels in {first:%Y-%m}").wait_for()
