"""The plan of the overlay benchmark: who is where, what each of the four networks drops."""

import argparse
from pathlib import Path
from typing import Any

import pytest

from benchmarks.zovn.overlay import Measured, measure_all, point
from benchmarks.zovn.overlay_network import Lost
from benchmarks.zovn.overlay_plan import (
    BACKGROUND_CLASS,
    BACKGROUNDS,
    FOREGROUND_CLASS,
    FRAME_BYTES,
    MODES,
    Request,
    buffers,
    containers,
    locations,
    settings,
    wire_headroom,
)
from common.toml_tables import parse_tables
from lab.fabric.star import StarHost

HOSTS = [StarHost(index, 200_000_000, 0.0) for index in range(1, 5)]


def request(mode: str = "ZZ", **changes: Any) -> Request:
    given: dict[str, Any] = {
        "hosts": 4,
        "workers": 10,
        "line_bps": 200_000_000,
        "delay_s": 20e-6,
        "queue": 64,
        "star_queue": 16,
        "background": "none",
    }
    return Request(mode=mode, **given | changes)


def tables(plan: Request, host: int = 1) -> dict[str, Any]:
    text = settings(plan, HOSTS[host - 1], "/run/c.sock", "/run/locations")
    found: dict[str, Any] = parse_tables(Path("a file"), text)["switch"]
    return found


def test_workers_are_on_all_hosts_in_turn() -> None:
    found = containers(request())
    assert [each.host for each in found.workers] == [1, 2, 3, 4, 1, 2, 3, 4, 1, 2]
    everyone = found.all
    for each in ("name", "address", "mac"):
        assert len({getattr(one, each) for one in everyone}) == len(everyone) == 11


@pytest.mark.parametrize("background", BACKGROUNDS)
def test_background_has_a_container_on_each_host(background: str) -> None:
    plan = request(background=background)
    found = containers(plan).background
    assert [each.host for each in found] == ([] if background == "none" else [1, 2, 3, 4])
    own = background == "own"
    assert {each.class_ for each in found} <= {BACKGROUND_CLASS if own else FOREGROUND_CLASS}
    assert (BACKGROUND_CLASS in plan.classes) == own


@pytest.mark.parametrize("mode", MODES)
def test_the_letters_are_the_virtual_and_the_physical_network(mode: str) -> None:
    plan = request(mode, background="own")
    limits = {table["limit_bytes"] for table in tables(plan)["classes"].values()}
    assert limits == {0 if mode[0] == "Z" else 64 * FRAME_BYTES}
    star = buffers(plan)
    assert set(star.lossless) == ({5, 0} if mode[1] == "Z" else set())


def test_both_kinds_of_stars_have_equal_room_for_what_waits() -> None:
    lossy, lossless = buffers(request("ZL")), buffers(request("ZZ"))
    assert (
        lossy.bytes
        == 16 * FRAME_BYTES
        == lossless.xoff_bytes
        == lossless.bytes - wire_headroom(request())
    )


def test_a_switch_has_its_containers_and_a_wire() -> None:
    ports = tables(request(), host=2)["port"]
    assert [each["name"] for each in ports] == ["c2", "c3", "c4", "wire"]
    assert {each["kind"] for each in ports[:-1]} == {"veth"}
    assert ports[-1]["wire"]["local"] == "10.241.0.2"


@pytest.mark.parametrize("mode", MODES)
def test_wires_have_a_tag_and_pauses_for_each_class(mode: str) -> None:
    """Whether pauses are heard is the star's affair."""
    plan = request(mode, background="own")
    assert set(tables(plan)["port"][-1]["wire"]["pfc"]) == set(plan.classes)


def test_each_container_has_its_hosts_address_in_the_map() -> None:
    lines = locations(request(), HOSTS).splitlines()
    assert lines[0] == "station 02:00:f2:00:01:01 10.241.0.1"
    assert len(lines) == 11


def test_modes_take_turns_and_rounds_add_up() -> None:
    asked: list[tuple[str, str]] = []

    def one(plan: Request, _: argparse.Namespace) -> dict[int, Measured]:
        asked.append((plan.mode, plan.background))
        return {500: Measured([1_000_000], Lost(1, 2, 3, 4, 5, 6))}

    options = argparse.Namespace(
        rounds=2,
        background=["own", "none"],
        modes=list(MODES),
        hosts=2,
        workers=2,
        line=10**6,
        delay_us=1,
        queue=8,
        star_queue=8,
    )
    rows = measure_all(options, one)
    assert asked[:5] == [*((mode, "own") for mode in MODES), ("LL", "none")]
    assert [(row.background, row.mode) for row in rows[::4]] == [("none", "LL"), ("own", "LL")]
    assert {(row.queries, row.dropped_physical) for row in rows} == {(2, 4)}


def test_a_row_without_a_complete_query_has_no_times() -> None:
    assert point("LL", "none", 1, Measured()).p99_ms is None
