"""Figures of the lab's dumbbell are those of its samples, whatever the ways do."""

import json
from pathlib import Path

import pytest

from benchmarks.demo import gcc as demo
from benchmarks.xco.gcc_lab import cases, controlled, options
from benchmarks.xco.gcc_summary import Case, Row, Summary, spread, summaries, table, text
from benchmarks.xco.gcc_ways import DEFAULT, WAYS, LabWay, lacks, settings
from benchmarks.xco.phases import Recording, Sample
from benchmarks.xco.phases_judged import Figures, ideal_mbps, judge, judge_mice
from benchmarks.xco.rig import topology_text
from lab.errors import MissingRequirementError
from lab.fabric.plan import incast
from lab.traffic.counts import FlowsSent

PORT_BPS = 100_000_000
MB = 1_000_000 // 8
"""Bytes of a megabit."""


def recording(tagged: tuple[int, int, int], other: tuple[int, int, int]) -> Recording:
    """Return one of two senders with these megabits in phases of 2, 1 and 1 s."""
    found = Recording(samples=[Sample(10.0, (7, 9), 5, 3, 2)], edges=[0])
    for at_s, mine, theirs, drops, marks in zip(
        (12.0, 13.0, 14.0), tagged, other, (10, 20, 0), (0, 5, 1), strict=True
    ):
        last = found.samples[-1]
        sizes = (last.bytes[0] + mine * MB, last.bytes[1] + theirs * MB)
        wire = last.wire_bytes + (mine + theirs) * MB
        found.samples.append(Sample(at_s, sizes, wire, last.drops + drops, last.marks + marks))
        found.edges.append(len(found.samples) - 1)
    return found


def test_figures_are_of_the_phases_that_were_measured() -> None:
    found = judge(recording((0, 30, 80), (160, 60, 0)), PORT_BPS)
    assert found.tagged_mbps == pytest.approx(110 / 4)
    assert found.ideal_mbps == pytest.approx((50 + 100) / 4 * 1448 / 1514)
    assert found.of_ideal == pytest.approx(found.tagged_mbps / found.ideal_mbps)
    assert found.jain == pytest.approx(90**2 / (2 * (30**2 + 60**2)))
    assert found.phases_mbps == pytest.approx((0, 30, 80))
    assert found.used == pytest.approx((0.8, 0.9, 0.8))
    assert (found.drops, found.drops_in_second, found.marks) == (30, 20, 6)
    assert found.mice is None


def test_the_ideal_is_that_of_the_paper_where_headers_do_not_count() -> None:
    for senders, paper in ((4, 416), (8, 375), (16, 354), (32, 344)):
        ideal = ideal_mbps((10, 10, 10), 10**9, senders) * 1514 / 1448
        assert ideal == pytest.approx(paper, abs=1)


def test_a_foreign_sender_leaves_less_to_all_in_the_second_phase() -> None:
    assert ideal_mbps((1, 1, 1), PORT_BPS, 4, 0.3) < ideal_mbps((1, 1, 1), PORT_BPS, 4)
    assert ideal_mbps((1, 0, 1), PORT_BPS, 4, 0.3) == ideal_mbps((1, 0, 1), PORT_BPS, 4)


def test_mice_have_a_mean_and_a_tail_once_two_have_ended() -> None:
    took = tuple(range(1_000_000, 101_000_000, 1_000_000))
    found = judge_mice(FlowsSent(0, 0, 100, 3, took, 0))
    assert (found.flows, found.failed, found.mean_ms) == (100, 3, 50.5)
    assert found.p99_ms == pytest.approx(99.01)
    assert judge_mice(FlowsSent(0, 0, 1, 0, took[:1], 0)).mean_ms is None


def figures(tagged: int) -> Figures:
    return judge(recording((0, tagged, tagged), (10, 10, 10)), PORT_BPS)


def summarised(*tagged: int) -> Summary:
    case = Case(3, "udp", 0.0, mice=False)
    rows = [Row(case, "gcc", number, figures(each)) for number, each in enumerate(tagged)]
    other = Row(case, "none", 0, figures(1))
    first, second = summaries([*rows, other])
    assert (first.way, second.way, second.repetitions) == ("gcc", "none", 1)
    return first


def test_a_summary_has_medians_with_the_least_and_the_most() -> None:
    found = summarised(10, 40, 20)
    assert found.repetitions == 3
    assert found.tagged_mbps == spread([5.0, 20.0, 10.0])
    assert (found.tagged_mbps.least, found.tagged_mbps.median) == (5.0, 10.0)
    assert text(found.tagged_mbps, 0) == "10 (5-20)"
    assert text(found.mice_p99_ms, 0) == "-"
    assert table([found]).row_count == 1


def test_the_demo_draws_and_writes_what_it_found(tmp_path: Path) -> None:
    turns = [
        demo.Turn(way, found, judge(found, PORT_BPS))
        for way, mine in (("none", 1), ("rate", 30), ("none", 3), ("rate", 32))
        for found in [recording((0, mine, 80), (160, 40, 0))]
    ]
    lines = demo.summary(turns)
    demo.write(turns, lines, tmp_path)
    none, rate = json.loads((tmp_path / "summary.json").read_text())
    assert (none["way"], none["rounds"], none["tagged_with_others_mbps"]) == ("none", 2, 2.0)
    assert {"tagged_mbps", "ideal_mbps", "jain", "drops", "marks"} <= rate.keys()
    assert (tmp_path / "demo-gcc.png").stat().st_size > 0
    assert demo.table(lines).row_count == 2
    assert demo.fairer(lines)
    assert not demo.fairer(lines[::-1])


def test_all_ways_of_the_demo_exist() -> None:
    assert set(demo.SHOWN) <= WAYS.keys()


def test_a_way_that_cannot_run_is_left_out_with_its_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def missing() -> None:
        raise MissingRequirementError(["There is no 'clang'"])

    monkeypatch.setattr("benchmarks.xco.gcc_ways.built", missing)
    assert lacks(WAYS["none"]) is lacks(WAYS["rate"]) is None
    assert "There is no 'clang'" in (lacks(WAYS["ecn"]) or "")
    assert lacks(LabWay("x", "", congestion="vegas-of-no-kernel")) == (
        "this kernel has no vegas-of-no-kernel"
    )


def test_hosts_count_marks_only_where_the_port_marks() -> None:
    assert settings(WAYS["gcc"]).coordinator["marks"] == "hide"
    assert "marks" not in settings(WAYS["rate"]).coordinator


def test_each_program_is_told_its_published_law() -> None:
    laws = {
        name: (settings(way).controller.get("law"), settings(way).coordinator.get("law"))
        for name, way in WAYS.items()
    }
    assert laws.pop("gcc-published") == ("published", None)
    assert laws.pop("hygenicc-published") == (None, "published")
    assert set(laws.values()) == {(None, None)}


def test_only_timeslices_leave_the_usual_pace() -> None:
    assert settings(WAYS["timeslice"]).coordinator["pace"] > 0.98
    assert "pace" not in settings(WAYS["gcc"]).coordinator


def test_a_foreign_host_is_in_no_topology() -> None:
    plan = incast(2, 10**8, 32_000, 10**8).describe()
    described = topology_text(plan, frozenset({"h2"}))
    assert "[host.h1]" in described
    assert "h2" not in described
    assert described.count("[[link]]") == 2


def test_the_command_line_names_cases_and_ways(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.xco.gcc_lab.require", lambda _parser: None)
    chosen = options(["--senders", "3,7", "--others", "tcp", "--foreign", "0.3", "--mice"])
    assert cases(chosen) == [Case(3, "tcp", 0.3, mice=True), Case(7, "tcp", 0.3, mice=True)]
    assert chosen.ways == list(DEFAULT)
    assert options(["--ways", "gcc-published"]).ways == ["gcc-published"]
    late = cases(options(["--senders", "3", "--others", "udp", "--delay", "0,50"]))
    assert [case.words for case in late] == ["3 udp", "3 udp, 50 ms late"]
    assert {way.name for way in controlled([WAYS[name] for name in DEFAULT])} == {
        *("rate", "timeslice", "gcc", "hygenicc")
    }
    quick = options(["--quick", "--ways", "none,rate"])
    assert (cases(quick), quick.repetitions) == ([Case(3, "udp", 0.0, mice=False)], 1)
    for wrong in (["--ways", "none,magic"], ["--foreign", "1"], ["--delay", "-1"]):
        with pytest.raises(SystemExit):
            options(wrong)
