"""SLA reports: what was promised, wanted and delivered in a month, as JSON and as safe CSV."""

import csv
import io
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest
from history_filled import NOW, day, told
from hypothesis import given
from hypothesis import strategies as st
from rest_rig import PROMISE, Rig

from policer.contracts.contract import Contract
from policer.contracts.schedule import Hours
from policer.reports.sla import Line, Month, csv_of, line_of, month_of, safe_cell
from policer.store import Change, ContractDays, Kept

HOUR = 3600.0


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    with told(tmp_path) as rig:
        yield rig


def lines(rig: Rig, month: str = "2026-11", **query: Any) -> Any:
    answer = rig.client("read").get(f"/v1/reports/{month}", params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()["items"]


def test_a_month_adds_its_days_up(rig: Rig) -> None:
    for of in (1, 22, 23):
        day(
            rig,
            of,
            data_s=HOUR,
            promised=72e6,
            wanted=50e6,
            delivered=60e6,
            missing=100.0,
            breach_s=2.0,
            punished_s=10.0,
            punishments=1,
        )
    (line,) = lines(rig)
    in_force = NOW - 120.0 - datetime(2026, 11, 1, tzinfo=UTC).timestamp()
    assert line == {
        "host": "gold",
        "vr": "r1",
        "guarantee_pps": 20e3,
        "in_force_s": in_force,
        "data_s": 3 * HOUR,
        "no_data_s": in_force - 3 * HOUR,
        "promised_packets": 216e6,
        "wanted_packets": 150e6,
        "delivered_packets": 180e6,
        "missing_packets": 300.0,
        "breach_s": 6.0,
        "punishments": 3,
        "punished_s": 30.0,
        "hosts": ["gold"],
    }


def test_a_contract_that_was_not_in_force_has_no_line(rig: Rig) -> None:
    assert lines(rig, "2026-10") == []


def test_pages_hold_each_contract_once(rig: Rig) -> None:
    for number in range(2, 9):
        rig.store.contracts.put("gold", f"r{number}", Contract(1.0), None, "test")
    found, after = [], None
    while True:
        page = rig.client().get(
            "/v1/reports/2026-11", params={"limit": 3} | ({"after": after} if after else {})
        )
        found += page.json()["items"]
        after = page.json()["next"]
        if after is None:
            break
    assert [line["vr"] for line in found] == [f"r{n}" for n in range(1, 9)]


@pytest.mark.parametrize("how", ["accept", "format"])
def test_a_report_is_given_as_csv(rig: Rig, how: str) -> None:
    day(rig, 23, data_s=HOUR, wanted=0.5)
    headers, query = ({"Accept": "text/csv"}, {}) if how == "accept" else ({}, {"format": "csv"})
    answer = rig.client("read").get("/v1/reports/2026-11", headers=headers, params=query)
    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    assert answer.headers["content-disposition"] == 'attachment; filename="sla-2026-11.csv"'
    (row,) = csv.DictReader(io.StringIO(answer.text))
    assert (row["month"], row["host"], row["vr"], row["guarantee_pps"]) == (
        "2026-11",
        "gold",
        "r1",
        "20000",
    )
    assert (row["data_s"], row["wanted_packets"], row["punishments"]) == ("3600", "0.5", "0")
    assert row["hosts"] == "gold"


def test_a_client_that_takes_anything_gets_json(rig: Rig) -> None:
    answer = rig.client().get("/v1/reports/2026-11", headers={"Accept": "*/*"})
    assert answer.headers["content-type"] == "application/json"


def test_format_says_it_louder_than_accept(rig: Rig) -> None:
    answer = rig.client().get(
        "/v1/reports/2026-11", params={"format": "json"}, headers={"Accept": "text/csv"}
    )
    assert answer.headers["content-type"] == "application/json"


def test_the_terms_of_a_class_are_read_from_the_store(rig: Rig) -> None:
    rig.store.classes.put("silver", Contract(5.0), None, "test")
    rig.store.contracts.put("gold", "r2", Contract(class_name="silver"), None, "test")
    assert [line["guarantee_pps"] for line in lines(rig)] == [20e3, 5.0]


def test_csv_has_no_pages(rig: Rig) -> None:
    answer = rig.client().get("/v1/reports/2026-11", params={"format": "csv", "limit": 3})
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["field"] == "limit"


@pytest.mark.parametrize(
    ("month", "problem"),
    [
        ("2026-12", "to come"),
        ("2024-10", "no longer kept"),
        ("0000-01", "no month"),
        ("2026-13", ""),
        ("november", ""),
    ],
)
def test_a_month_that_cannot_be_is_refused_in_words(rig: Rig, month: str, problem: str) -> None:
    answer = rig.client().get(f"/v1/reports/{month}")
    assert answer.status_code == 422
    (error,) = answer.json()["errors"]
    assert error["field"] == "month"
    assert problem in error["problem"]


def test_the_last_month_that_there_can_be_is_read() -> None:
    far = datetime(9999, 12, 31, tzinfo=UTC)
    assert month_of("9999-12", datetime(2000, 1, 1, tzinfo=UTC).date(), far).first.year == 9999


# --- when a contract was in force


def at(day: int) -> datetime:
    return datetime(2026, 11, day, tzinfo=UTC)


END = at(30)
MONTH = month_of("2026-11", datetime(2020, 1, 1, tzinfo=UTC).date(), END)


def of(*changes: tuple[datetime, float | None], now: datetime = END, **kept: float) -> Any:
    """Return the line of a contract that was changed at these instants."""
    texts = [
        Change(when, None if rate is None else f'{{"guarantee_pps": {rate}}}')
        for when, rate in changes
    ]
    days = ContractDays("gold", "r1", Kept(**kept), texts)  # type: ignore[arg-type]
    return line_of(days, MONTH, min(now, MONTH.end), {})


def of_terms(classes: dict[str, Contract], *terms: Contract, month: Month = MONTH) -> Any:
    """Return the line of a contract that had these terms, others each day from 3 November on."""
    texts = [
        Change(at(3 + number), msgspec.json.encode(one).decode())
        for number, one in enumerate(terms)
    ]
    return line_of(ContractDays("gold", "r1", Kept(), texts), month, month.end, classes)


def test_a_contract_counts_from_when_it_was_made_to_when_it_was_removed() -> None:
    line = of((at(3), 5.0), (at(5), 7.0), (at(10), None), (at(20), 9.0), now=at(21))
    assert line.in_force_s == (7 + 1) * 86400
    assert line.guarantee_pps == 9.0


def test_a_contract_of_long_ago_counts_from_the_months_beginning() -> None:
    line = of((datetime(2025, 1, 1, tzinfo=UTC), 5.0), now=datetime(2027, 1, 1, tzinfo=UTC))
    assert line.in_force_s == 30 * 86400
    assert line.no_data_s == line.in_force_s


def test_a_guarantee_in_bits_is_told_in_packets_of_the_size_sold() -> None:
    line = of_terms({}, Contract(guarantee_bps=8e6, packet_bytes=1000))
    assert line.guarantee_pps == 1000.0


def test_a_contract_of_a_class_is_told_with_its_terms() -> None:
    classes = {"gold": Contract(5.0), "night": Contract(7.0)}
    assert of_terms(classes, Contract(class_name="gold")).guarantee_pps == 5.0
    assert of_terms({}, Contract(class_name="gold")).guarantee_pps == 0.0


def test_of_hours_the_largest_guarantee_is_told() -> None:
    classes = {"gold": Contract(5.0), "night": Contract(7.0)}
    night, by_day = Hours("20:00", "06:00", class_name="night"), Hours("06:00", "20:00")
    for contract, largest in (
        (Contract(class_name="gold", hours=(night, by_day)), 7.0),
        (Contract(3.0, hours=(by_day,)), 3.0),
        (Contract(9.0, hours=(by_day, night)), 9.0),
    ):
        assert of_terms(classes, contract).guarantee_pps == largest


def test_a_contract_counts_within_its_dates() -> None:
    line = of_terms({}, Contract(5.0, valid_from=at(5), valid_until=at(10)))
    assert (line.in_force_s, line.guarantee_pps) == (5 * 86400, 5.0)
    assert of_terms({}, Contract(5.0, valid_until=at(10))).in_force_s == 7 * 86400
    assert of_terms({}, Contract(5.0, valid_from=at(1))).in_force_s == 28 * 86400


def test_a_contract_that_ended_has_no_line_in_later_months() -> None:
    new_year = datetime(2027, 1, 1, tzinfo=UTC)
    december = month_of("2026-12", datetime(2020, 1, 1, tzinfo=UTC).date(), new_year)
    assert of_terms({}, Contract(5.0), month=december).in_force_s == 31 * 86400
    assert of_terms({}, Contract(5.0, valid_until=at(10)), month=december) is None


def test_a_version_that_has_not_begun_changes_no_guarantee() -> None:
    later = datetime(2026, 12, 5, tzinfo=UTC)
    line = of_terms({}, Contract(5.0), Contract(8.0, valid_from=later))
    assert (line.guarantee_pps, line.in_force_s) == (5.0, 86400)


def test_what_was_changed_after_the_month_is_not_told_of_it() -> None:
    later = datetime(2026, 12, 5, tzinfo=UTC)
    line = of((at(3), 5.0), (later, 8.0), now=datetime(2027, 1, 1, tzinfo=UTC))
    assert (line.guarantee_pps, line.in_force_s) == (5.0, 28 * 86400)


def test_a_contract_that_was_removed_before_has_no_line() -> None:
    october = datetime(2026, 10, 1, tzinfo=UTC)
    assert of((october, 5.0), (datetime(2026, 10, 2, tzinfo=UTC), None)) is None
    assert of((datetime(2026, 12, 5, tzinfo=UTC), 5.0)) is None


def test_seconds_without_data_are_never_less_than_none() -> None:
    assert of((at(29), 5.0), data_s=90_000.0).no_data_s == 0.0


# --- CSV


def test_no_cell_is_a_formula() -> None:
    assert safe_cell("=cmd|' /C calc'!A0") == "'=cmd|' /C calc'!A0"
    assert [safe_cell(f"{mark}1") for mark in "+-@\t\r"] == [f"'{mark}1" for mark in "+-@\t\r"]
    assert safe_cell("customer-7") == "customer-7"


@given(st.text(max_size=20), st.text(max_size=20))
def test_any_name_is_one_cell_and_no_formula(host: str, vr: str) -> None:
    line = Line(host, vr, *[1.5] * 9, 2, 0.0)
    text = csv_of(MONTH, [line], headings=False)
    (row,) = csv.reader(io.StringIO(text, newline=""))
    assert len(row) == 1 + len(Line.__struct_fields__)
    assert not row[1].startswith(("=", "+", "-", "@", "\t", "\r"))
    assert row[2].removeprefix("'") == vr.removeprefix("'")


def test_a_large_export_comes_in_parts(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("policer.rest.handlers.reports.AT_ONCE", 3)
    for number in range(2, 12):
        rig.store.contracts.put("gold", f"r{number:02}", PROMISE.__class__(1.0), None, "test")
    answer = rig.client().get("/v1/reports/2026-11", params={"format": "csv"})
    assert len(list(csv.DictReader(io.StringIO(answer.text)))) == 11
