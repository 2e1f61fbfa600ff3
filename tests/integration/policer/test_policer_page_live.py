"""What the page shows second by second, and what it says when the telling stops."""

import re

import msgspec
import pytest
from browser_rig import Visit, until
from page_rig import report

from policer.fleet.live import Leadership
from policer.store import Event
from xtc.wire import Finding

pytest_plugins = ["browser_fixtures"]
pytestmark = pytest.mark.timeout(600)

GOLD = "#/hosts/edge-1/routers/gold"


def now_of(visit: Visit, quantity: str) -> str:
    """Return the text beside the plot: a quantity's value now."""
    head = visit.page.get_by_role("rowheader", name=quantity)
    row = visit.page.get_by_role("row").filter(has=head)
    return str(row.first.get_by_role("cell").first.inner_text())


def points(visit: Visit) -> int:
    return int(visit.page.locator(".plot").first.get_attribute("data-points"))


def painted(visit: Visit) -> int:
    """Return how many pixels of the first plot have the colour of its throughput."""
    count = visit.page.evaluate(
        """() => {
            const plot = document.querySelector(".plot canvas");
            const copy = new OffscreenCanvas(plot.width, plot.height);
            const brush = copy.getContext("2d", { willReadFrequently: true });
            brush.drawImage(plot, 0, 0);
            const { data } = brush.getImageData(0, 0, plot.width, plot.height);
            let count = 0;
            for (let at = 0; at < data.length; at += 4)
                if (data[at] === 11 && data[at + 1] === 92 && data[at + 2] === 173) count += 1;
            return count;
        }"""
    )
    return int(count)


def test_plots_and_numbers_follow_the_fleet(visit: Visit) -> None:
    visit.sign_in(GOLD)
    until(lambda: now_of(visit, "Throughput") == "35.0")
    before, empty = points(visit), painted(visit)
    assert now_of(visit, "Cap") == "none"
    for throughput in range(20, 30):
        told = report("gold", throughput * 1e3, 90e3, setpoint=30e3)
        visit.work.said["edge-1"] = (told,)
        visit.work.tick()
        until(lambda t=throughput: now_of(visit, "Throughput") == f"{t}.0")
    assert now_of(visit, "Offered load") == "90.0"
    assert now_of(visit, "Setpoint") == "30.0"
    assert now_of(visit, "Cap") == "30.0 %"
    assert points(visit) >= before + 10
    until(lambda: painted(visit) > empty + 20)
    row = visit.page.get_by_role("row").filter(has_text="Throughput").first
    assert row.get_by_role("cell").all_inner_texts()[1:3] == ["20.0", "35.0"]


def test_a_host_that_is_gone_is_shown_as_gone_and_comes_back(visit: Visit) -> None:
    page = visit.page
    visit.sign_in("#/hosts/edge-1")
    row = page.get_by_role("row").filter(has_text="gold").first
    row.get_by_text("35.0").wait_for()
    said = visit.work.said.pop("edge-1")
    visit.work.tick(6)
    visit.sees("edge-1 is gone: gone for 6 s.")
    assert "35.0" not in row.inner_text()
    visit.work.said["edge-1"] = said
    visit.work.tick()
    row.get_by_text("35.0").wait_for()
    page.get_by_text("edge-1 is gone").wait_for(state="hidden")


def test_a_router_whose_host_is_gone_shows_no_number_as_of_now(visit: Visit) -> None:
    visit.sign_in(GOLD)
    until(lambda: now_of(visit, "Throughput") == "35.0")
    visit.work.said.pop("edge-1")
    visit.work.tick(6)
    until(lambda: now_of(visit, "Throughput") == "–")  # noqa: RUF001  the page's word for unknown
    visit.sees("edge-1 is gone, or does not know this router: what is shown is old.")


def test_a_starved_router_with_a_guarantee_is_red_below_it_and_amber_above(visit: Visit) -> None:
    visit.sign_in("#/hosts/edge-1")
    row = visit.page.get_by_role("row").filter(has_text="gold")
    for throughput, tone in ((20e3, "bad"), (45e3, "warn")):
        starved = msgspec.structs.replace(
            report("gold", throughput, 60e3, setpoint=60e3), finding=Finding.STARVED
        )
        visit.work.said["edge-1"] = (starved,)
        visit.work.tick()
        row.locator(f".mark.{tone}").get_by_text("starved").wait_for()


def test_a_router_that_is_held_in_bits_is_shown_with_its_bits(visit: Visit) -> None:
    work = visit.work
    work.promise("edge-1", "line", guarantee_bps=28e6, ceiling_bps=56e6)
    fields = {"throughput_bps": 56e6, "setpoint_pps": None, "setpoint_bps": 56e6}
    held = msgspec.structs.replace(report("line", 20e3, 20e3, setpoint=20e3), **fields)
    work.said["edge-1"] = (held,)
    work.tick()
    visit.sign_in("#/hosts/edge-1")
    row = visit.page.get_by_role("row").filter(has_text="line")
    for text in ("28 Mb/s", "56 Mb/s"):
        row.get_by_text(text).first.wait_for()
    visit.page.goto(visit.page.url.replace("hosts/edge-1", "hosts/edge-1/routers/line"))
    visit.sees("56 Mb/s")
    until(lambda: now_of(visit, "Setpoint") == "20.0")


def test_a_host_that_refuses_orders_is_red_and_says_why(visit: Visit) -> None:
    visit.sign_in("")
    visit.work.refusals["edge-1"] = {"gold": "epoch: 7 is lower than 9"}
    visit.work.tick()
    row = visit.page.get_by_role("row").filter(has_text="edge-1")
    row.locator(".mark.bad").get_by_text("refuses orders").wait_for()
    row.get_by_text("refuses 1 order, such as gold: epoch: 7 is lower than 9").wait_for()


def test_the_display_is_held_still_and_let_go(visit: Visit) -> None:
    visit.sign_in(GOLD)
    until(lambda: now_of(visit, "Throughput") == "35.0")
    hold = visit.button("Hold the display")
    hold.click()
    assert hold.get_attribute("aria-pressed") == "true"
    before = points(visit)
    visit.work.said["edge-1"] = (report("gold", 50e3, 50e3),)
    visit.work.tick()
    visit.page.wait_for_timeout(300)
    assert (now_of(visit, "Throughput"), points(visit)) == ("35.0", before)
    hold.click()
    until(lambda: now_of(visit, "Throughput") == "50.0")


def test_what_is_shown_is_stale_while_the_service_is_gone_and_no_event_is_lost(
    visit: Visit,
) -> None:
    visit.expects(unreachable=True)
    page = visit.page
    visit.work.store.events.add([Event("edge-1", "engaged", "before", "gold")])
    visit.sign_in(GOLD)
    page.get_by_role("cell", name="before").wait_for()
    visit.service.stop()
    health = page.locator("#health")
    health.get_by_text(re.compile(r"stale since \d\d:\d\d:\d\d")).wait_for()
    visit.work.store.events.add([Event("edge-1", "engaged", f"while {n}", "gold") for n in "abc"])
    visit.service.start()
    until(lambda: health.inner_text() == "")
    for word in "abc":
        page.get_by_role("cell", name=f"while {word}").wait_for()
    told = page.get_by_role("table", name="Events of gold").locator("tbody tr").all_inner_texts()
    assert sum("while" in line for line in told) == 3
    assert sum("before" in line for line in told) == 1


def test_a_stream_that_falls_silent_is_shown_as_stale_until_it_speaks_again(visit: Visit) -> None:
    visit.sign_in(GOLD)
    until(lambda: now_of(visit, "Throughput") == "35.0")
    health = visit.page.locator("#health")
    with visit.service.hanging():
        health.get_by_text("telemetry of edge-1: stale since").wait_for()
    until(lambda: health.inner_text() == "")


def test_an_answer_that_breaks_off_is_a_service_that_does_not_answer(visit: Visit) -> None:
    visit.go()
    said = visit.page.evaluate(
        r"""async () => {
            const { call } = await import("/js/api.js");
            const late = () => Promise.reject(new DOMException("late", "TimeoutError"));
            const headers = new Headers({ "Content-Type": "application/json" });
            window.fetch = async () => ({ ok: true, status: 200, headers, json: late });
            return call("GET", "/v1/hosts").catch((problem) => problem.title ?? problem.message);
        }"""
    )
    assert said == "The service does not answer."


def test_who_leads_and_a_brake_on_all_ladders_are_shown(visit: Visit) -> None:
    visit.sign_in()
    visit.sees("This policer leads, epoch 7.")
    visit.work.fleet.leadership = Leadership(holder="policer-b")
    visit.work.fleet.braked = True
    visit.sees("policer-b leads.")
    visit.page.get_by_role("status").get_by_text("Escalation is stopped").wait_for()


def test_events_are_cut_anywhere_and_read_alike(visit: Visit) -> None:
    """The parser of the stream, in the browser, on every way to cut a text in three."""
    visit.go()
    told = visit.page.evaluate(
        r"""async () => {
            const { EventParser } = await import("/js/sse.js");
            const text = ": alive\r\nid: 7\r\nevent: event\r\ndata: {\"a\":\r\ndata:1}\r\n\r\n"
                + "data: two\n\nid: 8\rdata:  three\r\r: end\n\n";
            const read = (...pieces) => {
                const parser = new EventParser();
                return JSON.stringify(pieces.flatMap((piece) => parser.feed(piece)));
            };
            const whole = read(text);
            const others = new Set();
            for (let i = 0; i <= text.length; i += 1)
                for (let j = i; j <= text.length; j += 1)
                    others.add(read(text.slice(0, i), text.slice(i, j), text.slice(j)));
            return [JSON.parse(whole), others.size];
        }"""
    )
    assert told == [
        [
            {"id": "7", "event": "event", "data": '{"a":\n1}'},
            {"id": "7", "event": "message", "data": "two"},
            {"id": "8", "event": "message", "data": " three"},
        ],
        1,
    ]


def test_ten_minutes_are_kept_and_a_pause_is_a_gap(visit: Visit) -> None:
    visit.go()
    kept = visit.page.evaluate(
        """async () => {
            const { Series } = await import("/js/series.js");
            const series = new Series(["y"]);
            for (let at = 0; at < 2000; at += 1) series.add(at, { y: at });
            const before = [series.length, series.columns[0][0]];
            series.add(1500, { y: 1 });
            series.add(2010, { y: null });
            const [instants, values] = series.columns;
            return [...before, ...instants.slice(-2), values.at(-2), series.summary("y")];
        }"""
    )
    assert kept[5] == {"now": None, "least": 1410, "most": 1999, "mean": 1704.5}
    assert kept[:4] == [601, 1399, 2000, 2010]
    assert kept[4] is None
