"""Partition-aggregate over zovn without packets: options, settings, records, the demo's files."""

import argparse
import json
import os
import threading
import tomllib
from collections.abc import Iterator
from dataclasses import asdict, replace
from itertools import product
from pathlib import Path
from queue import Queue

import pytest

from benchmarks.demo import zovn as demo
from benchmarks.zovn import partition_ways
from benchmarks.zovn.partition_aggregate import arguments, numbers_of, plan_of, size_of, sizes_of
from benchmarks.zovn.partition_network import Losses
from benchmarks.zovn.partition_points import (
    Measured,
    Record,
    Round,
    Setting,
    point,
    points,
    table,
)
from benchmarks.zovn.partition_run import Load, Plan, alone, measure
from benchmarks.zovn.partition_switch import settings_of
from lab.errors import BadRequestError
from lab.fabric.plan import FabricPlan, incast
from zovn.switch.config import checked

SETTING = Setting("zovn", 64, 32, 2, 12_000, tail_probes=False)
MS = 1_000_000


def test_sizes_and_numbers_of_the_command_line() -> None:
    assert sizes_of("2KB,1MB,7B") == [2_000, 1_000_000, 7]
    assert numbers_of("8,16") == [8, 16]
    for wrong in ("2", "KB", "-1KB", "0KB", "1.5KB"):
        with pytest.raises(argparse.ArgumentTypeError):
            size_of(wrong)
    for wrong in ("", "0", "8,", "a"):
        with pytest.raises(argparse.ArgumentTypeError):
            numbers_of(wrong)


@pytest.fixture
def able(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that has all that the networks need."""
    for module in ("partition_ways", "partition_aggregate"):
        monkeypatch.setattr(f"benchmarks.zovn.{module}.missing", lambda _: [])


@pytest.mark.usefixtures("able")
def test_the_command_line_becomes_a_plan() -> None:
    words = "--sizes 2KB,6KB --tail-probes yes no --queries 50 --rounds 5 --congestion bbr"
    plan = plan_of(arguments(words.split()))
    assert plan.cases == [(2_000, True), (2_000, False), (6_000, True), (6_000, False)]
    assert (plan.rounds, plan.load.queries, plan.load.congestion) == (5, 10, "bbr")
    assert plan_of(arguments(["--quick"])).load.queries == 10


def test_what_is_missing_ends_the_program_with_its_words(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lacking = ["Ports to containers are lossy on this kernel: too old."]
    monkeypatch.setattr("lab.system.requirements.missing", list)
    monkeypatch.setattr(partition_ways, "switch_missing", lambda: lacking)
    assert partition_ways.missing(["bridge"]) == []
    assert partition_ways.missing(["bridge", "zovn-lossy"]) == lacking
    for read, words in ((arguments, ["--ways", "zovn"]), (demo.arguments, [])):
        with pytest.raises(SystemExit, match="1"):
            read(words)
        assert lacking[0] in capsys.readouterr().err
    assert arguments([]).ways == ["bridge"]
    assert f"without zovn: {lacking[0]}" in capsys.readouterr().err


@pytest.fixture
def plan() -> FabricPlan:
    return incast(3, 10**9, 64 * 1_514, 10**9)


def test_settings_of_the_lossless_switch(plan: FabricPlan) -> None:
    config = checked(tomllib.loads("[switch]\n" + settings_of(plan, "1Gbps", 0))["switch"])
    assert config.table.classes["0"].limit_bytes == 0
    ports = config.table.port
    assert [(port.kind, port.interface) for port in ports] == [
        ("veth", f"h{n}") for n in range(1, 5)
    ]
    assert [port.addresses for port in ports] == [(host.mac,) for host in plan.hosts]
    assert [port.rate for port in ports[:3]] == [None] * 3
    assert ports[3].rate == "1000000000bit/s"


def test_a_lossy_switch_differs_by_its_limit(plan: FabricPlan) -> None:
    lossless, lossy = (settings_of(plan, "1Gbps", limit) for limit in (0, 96_896))
    assert lossless.replace("limit_bytes = 0", "limit_bytes = 96896") == lossy
    with pytest.raises(BadRequestError, match="bottleneck"):
        settings_of(plan, "fast", 0)


def test_a_point_without_a_complete_query_has_no_times() -> None:
    lost = Losses(9, 2, 1, 4, 1) + Losses(1) - Losses(0, 1)
    found = point(SETTING, Measured([], lost))
    assert (found.queries, found.mean_ms, found.p99_ms) == (0, None, None)
    assert (found.dropped, found.timeouts, found.probes) == (10, 1, 1)
    assert (found.retransmitted, found.spurious) == (4, 1)
    assert table([found]).row_count == 1


def turn(setting: Setting, number: int, *times_ms: int, dropped: int = 0) -> Round:
    took = [time * MS for time in times_ms]
    return Round(setting, number, {"queries": 2}, took, Losses(dropped, dropped))


def test_rounds_of_a_setting_are_one_point() -> None:
    other = replace(SETTING, tail_probes=True)
    found = points([turn(SETTING, 0, 1, 2), turn(other, 0, 9), turn(SETTING, 1, 6, dropped=3)])
    assert [(each.tail_probes, each.queries, each.mean_ms) for each in found] == [
        (False, 3, 3.0),
        (True, 1, 9.0),
    ]
    assert (found[0].dropped, found[0].timeouts, found[0].p99_ms) == (3, 3, 6.0)


def test_a_record_is_read_again_but_for_a_line_that_was_not_finished(tmp_path: Path) -> None:
    path = tmp_path / "rounds"
    kept = turn(SETTING, 0, 1, 2, dropped=5)
    Record(path).add(kept)
    with path.open("a") as file:
        file.write(json.dumps(asdict(turn(SETTING, 1, 3)))[:-5])
    again = Record(path)
    assert again.rounds == [kept]
    assert again.find(SETTING, 0, {"queries": 2}) == kept
    assert again.find(SETTING, 0, {"queries": 3}) is None
    assert again.find(replace(SETTING, workers=8), 0, {"queries": 2}) is None


def test_a_record_goes_on_behind_a_line_that_was_not_finished(tmp_path: Path) -> None:
    path = tmp_path / "rounds"
    path.write_text('{"setting": ')
    record = Record(path)
    record.add(turn(SETTING, 0, 1))
    assert Record(path).rounds == [turn(SETTING, 0, 1)]


def test_what_is_recorded_is_not_measured_again() -> None:
    """No network is built: the way does not exist."""
    load = Load(2, 1.0, "1Gbps")
    settings = [Setting("none", 64, 32, 2, size, tail_probes=True) for size in (100, 200)]
    record = Record()
    for setting, number in product(settings, range(2)):
        record.add(Round(setting, number, asdict(load), [MS], Losses()))
    plan = Plan(["none"], [(100, True), (200, True)], 2, load)
    found = measure(32, 64, plan, record, pytest.fail)
    assert [(each.setting.size_bytes, each.turn) for each in found] == [
        (100, 0),
        (200, 0),
        (100, 1),
        (200, 1),
    ]


def test_a_second_measurement_waits_for_the_end_of_the_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("benchmarks.zovn.partition_run.LOCK", f"\0zovn-test-{os.getpid()}")
    said: Queue[str] = Queue()
    order: list[str] = []

    def second() -> None:
        with alone(said.put):
            order.append("second")

    with alone(pytest.fail):
        waiting = threading.Thread(target=second)
        waiting.start()
        assert "waiting" in said.get(timeout=60)
        order.append("first")
    waiting.join()
    assert order == ["first", "second"]


def shown(lossless_ms: int) -> Iterator[Round]:
    for queue, size in product(demo.QUEUES, (12_000, 24_000)):
        for mode, time, dropped in (("zovn-lossy", 50, 7), ("zovn", lossless_ms, 0)):
            setting = Setting(mode, queue, demo.WORKERS, 2, size, tail_probes=False)
            yield turn(setting, 0, time, time, dropped=dropped)


def test_the_demo_writes_a_list_and_a_picture(tmp_path: Path) -> None:
    lines = demo.write(list(shown(5)), tmp_path / "demo")
    written = json.loads((tmp_path / "demo" / "summary.json").read_text())
    assert len(written) == 8
    assert written[0] == {
        "mode": "lossy",
        "queue": 256,
        "workers": 32,
        "size_bytes": 12_000,
        "mean_ms": 50.0,
        "p99_ms": 50.0,
        "dropped": 7,
        "timeouts": 7,
    }
    assert written[1]["mode"] == "lossless"
    assert (tmp_path / "demo" / "demo-zovn.png").stat().st_size > 0
    assert [demo.speed_up(*pair) for pair in demo.pairs(lines)] == [10.0] * 4
    assert demo.table("title", lines).row_count == 4


def test_the_demo_is_sound_if_the_lossless_switch_loses_nothing_and_is_faster() -> None:
    lines = demo.summary(points(shown(5)))
    assert demo.sound(lines)
    assert not demo.sound(demo.summary(points(shown(60))))
    assert not demo.sound([replace(line, dropped=1) for line in lines])


def test_the_demo_copes_with_a_point_without_a_complete_query(tmp_path: Path) -> None:
    first, *others = shown(5)
    lines = demo.write([replace(first, query_ns=[]), *others], tmp_path)
    assert demo.speed_up(*next(demo.pairs(lines))) is None
    assert demo.table("title", lines).row_count == 4


def test_rounds_with_tail_probes_are_not_in_the_summary() -> None:
    rounds = [turn(SETTING, 0, 1), turn(replace(SETTING, tail_probes=True), 0, 2)]
    assert demo.with_tail_probes(rounds, on=False) == rounds[:1]
    assert demo.with_tail_probes(rounds, on=True) == rounds[1:]
