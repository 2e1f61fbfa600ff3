"""SDN-GCC as published on the controller's engine: it is Python's law, and not fair."""

import ctypes
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from xco_controller_rig import node_library
from xco_controller_scenes import MS, Scene
from xco_counters_rig import GBPS, Counters

from xco.laws import gcc
from xco.laws.hygenicc import scale
from xco.simulate.dumbbell.control import Period
from xco.simulate.dumbbell.laws import PublishedGcc
from xco.simulate.dumbbell.port import PACKET_BITS
from xco.topology.shapes import star_topology

TICK_NS = 1_953_125
"""1/512 s, which floats have exactly."""
PERIOD_TICKS, INACTIVE_TICKS = 5, 512
UNIT = scale(GBPS, 1514, 0.01)
LEAST = 0.01
SINK, SWITCH = 65, 66
AIM = 0.98


class Source(ctypes.Structure):
    """struct xco_source."""

    _fields_ = (
        ("rate_bps", ctypes.c_double),
        ("sent_ns", ctypes.c_uint64),
        ("congested_ns", ctypes.c_uint64),
        ("destination", ctypes.c_uint16),
    )


PERIODS = st.lists(
    st.tuples(st.integers(1, 2 * INACTIVE_TICKS), st.integers(0, 2000), st.booleans()), max_size=60
)


@given(PERIODS, st.integers(1, 7))
def test_the_compiled_law_is_that_of_python(
    periods: list[tuple[int, int, bool]], senders: int
) -> None:
    library, ticks = node_library(), INACTIVE_TICKS
    library.xco_source_updated.restype = ctypes.c_bool
    unit, share = ctypes.c_double(UNIT), ctypes.c_double(GBPS)
    period = ctypes.c_uint64(PERIOD_TICKS * TICK_NS)
    found, expected = Source(GBPS, ticks * TICK_NS, 0), gcc.Source(GBPS, 1.0)
    for gap, alpha, sends in periods:
        ticks += gap
        now_ns, now_s = ctypes.c_uint64(ticks * TICK_NS), ticks / 512
        if sends:
            found.sent_ns, expected = now_ns.value, replace(expected, sent_time=now_s)
        marks = gcc.shares(alpha, [str(at) for at in range(senders)]).get("0", 0.0)
        place = ctypes.byref(found)
        library.xco_source_notified(place, ctypes.c_double(marks), now_ns, unit, period)
        kept = library.xco_source_updated(place, now_ns, share, unit, period)
        period_s = PERIOD_TICKS / 512
        told = gcc.notified(expected, marks, now_s, UNIT, period_s)
        raised = gcc.updated(told, now_s, GBPS, UNIT, period_s)
        assert kept == (raised is not None)
        expected = gcc.bounded(raised or replace(told, R=GBPS), LEAST * GBPS)
        found.rate_bps = max(found.rate_bps if kept else GBPS, LEAST * GBPS)
        assert found.rate_bps == pytest.approx(expected.R, rel=1e-9)


class Port:
    """A port that carries half of what the topology states, and marks what is beyond."""

    def __init__(self, folder: Path, law: str) -> None:
        topology = star_topology(SINK + 1, "1Gbps")
        self.scene = Scene(
            folder, topology, strategy="gcc", law=law, pace=AIM, silence="30s", drop="60s"
        )
        self.scene.join()
        self.counters = Counters(self.scene, SWITCH, SINK, SINK)

    def rates(self, *hosts: int) -> list[float]:
        """Return what hosts may send to the sink, as shares of a line; 0 before a message."""
        found = [self.scene.hosts[host].directive.permits for host in hosts]
        return [permits[0].rate_bps / GBPS if permits else 0.0 for permits in found]

    def run(self, milliseconds: int, *hosts: int) -> list[float]:
        """Let hosts send all that they may; return what they may at the end."""
        for _ in range(milliseconds // 10):
            for host in hosts:
                self.scene.report(host, SINK)
            asked = sum(self.rates(*hosts))
            used = min(0.5, asked)
            self.counters.run(10, used, used, marked=0.1 if asked > used else 0.0)
        return self.rates(*hosts)


@pytest.fixture
def published(tmp_path: Path) -> Iterator[Port]:
    made = Port(tmp_path, "published")
    yield made
    made.scene.node.close()


@given(st.lists(st.integers(0, 900), min_size=1, max_size=12), st.integers(1, 4))
def test_the_engine_sets_the_rates_of_the_simulators_law(
    tmp_path_factory: pytest.TempPathFactory, marks: list[int], senders: int
) -> None:
    """Time of the simulator is in periods; marks count in the period after their report."""
    port = Port(tmp_path_factory.mktemp("port"), "published")
    law = PublishedGcc(GBPS, senders, 1.0, UNIT, by_bytes=False)
    for host in range(senders):
        port.scene.report(host, SINK)
    port.counters.run(10, used=0.5, coordinated=0.5)
    every, nothing = np.ones(senders, np.bool_), np.zeros(senders)
    for at, count in enumerate(marks):
        port.counters.marks += count
        port.counters.run(10, used=0.5, coordinated=0.5)
        bits = count * PACKET_BITS
        seen = Period(at + 1.0, 1.0, every, every * 1.0, nothing, nothing, 0.0, bits, 0.0)
        expected = law.decide(seen)
    port.scene.run_until(port.scene.now_ns + 11 * MS)
    assert port.rates(*range(senders)) == pytest.approx(list(expected / GBPS), abs=1e-8)
    port.scene.node.close()


def test_a_newcomer_keeps_its_lead(published: Port) -> None:
    (alone,) = published.run(1000, 0)
    assert alone == pytest.approx(0.5, abs=0.1)
    first, newcomer = published.run(1000, 0, 1)
    assert newcomer > 3 * first
    assert first + newcomer == pytest.approx(0.5, abs=0.15)


def test_a_newcomer_has_an_equal_share_by_the_fair_law(tmp_path: Path) -> None:
    port = Port(tmp_path, "fair")
    port.run(1000, 0)
    first, newcomer = port.run(100, 0, 1)
    assert first == pytest.approx(newcomer, rel=1e-6)
    port.scene.node.close()


def test_marks_take_at_most_all_but_the_guaranteed_part(published: Port) -> None:
    for _ in range(30):
        published.scene.report(0, SINK)
        published.counters.run(10, used=1.0, coordinated=1.0, marked=1.0)
    assert published.rates(0) == [pytest.approx(LEAST)]


def test_more_marks_than_packets_take_no_more(published: Port) -> None:
    published.run(100, 0)
    published.counters.marks = 2**63
    published.run(30, 0)
    assert published.rates(0) == [pytest.approx(LEAST, rel=0.2)]


def test_a_calm_period_gives_one_unit_back(published: Port) -> None:
    for _ in range(30):
        published.scene.report(0, SINK)
        published.counters.run(10, used=1.0, coordinated=1.0, marked=1.0)
    published.run(500, 0)
    (rate,) = published.rates(0)
    assert rate == pytest.approx(LEAST + 50 * UNIT / GBPS, abs=2 * UNIT / GBPS)


@pytest.mark.parametrize(("silent_ms", "full"), [(900, False), (1100, True)])
def test_a_pair_that_sent_nothing_for_a_second_begins_again(
    published: Port, silent_ms: int, full: bool
) -> None:
    published.run(500, 0)
    scene = published.scene
    scene.report(0)
    scene.run_until(scene.now_ns + silent_ms * MS)
    scene.report(0, SINK)
    scene.run_until(scene.now_ns + MS)
    assert (published.rates(0) == [1.0]) == full


def test_pairs_of_a_source_share_its_line(published: Port) -> None:
    destinations = range(1, 65)
    scene = published.scene
    scene.report(0, *destinations)
    scene.run_until(scene.now_ns + MS)
    permits = scene.hosts[0].directive.permits
    assert {permit.rate_bps for permit in permits} == {GBPS // 64}


def test_a_source_of_ever_new_pairs_is_remembered_within_bounds(published: Port) -> None:
    scene = published.scene
    for first in (1, 33, 2, 17):
        destinations = [(first + at) % 65 + 1 for at in range(64)]
        scene.report(0, *(one for one in destinations if one))
        scene.run_until(scene.now_ns + 10 * MS)
        granted = [permit.destination for permit in scene.hosts[0].directive.permits]
        assert sorted(granted) == sorted(destinations)


def test_no_turns_are_taken_while_no_host_sends(published: Port) -> None:
    scene = published.scene
    published.run(100, 0)
    scene.report(0)
    scene.run_until(scene.now_ns + 2000 * MS)
    before = scene.node.counters["plans_computed"]
    scene.run_until(scene.now_ns + 1000 * MS)
    assert scene.node.counters["plans_computed"] == before
