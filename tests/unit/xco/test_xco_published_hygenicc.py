"""HyGenICC as published on the coordinator's engine: it is Python's law, and ignores offers."""

import ctypes
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from xco_coordinator_rig import LINE, MS, NOW, SILENCE, build
from xco_peers_rig import TAKEN, Peer, Told

from xco.laws import hygenicc

UNIT = hygenicc.scale(LINE, 1514, 0.01)
PERIOD_S, LEAST = 0.01, 0.01


@pytest.fixture(scope="module")
def shim(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    library = build(tmp_path_factory.mktemp("shim"))
    for name in ("follow", "allowed"):
        getattr(library, f"xco_steps_{name}").restype = ctypes.c_double
    return library


@given(st.lists(st.one_of(st.just(0), st.integers(1, 1000)), max_size=200))
def test_the_compiled_law_is_that_of_python(shim: ctypes.CDLL, periods: list[int]) -> None:
    line, found, expected = ctypes.c_double(LINE), float(LINE), hygenicc.Sent(LINE, 0.0)
    for at, marks in enumerate(periods):
        now = at * PERIOD_S
        expected = replace(expected, senttime=now)
        if marks:
            expected = hygenicc.feedback_arrived(expected, marks, now)
        after = hygenicc.timer(expected, now, LINE, UNIT, 2 * PERIOD_S)
        assert after is not None
        expected = after
        found = shim.xco_steps_follow(ctypes.c_double(found), ctypes.c_double(marks), line)
        assert found == pytest.approx(expected.R, rel=1e-9, abs=1e-3)
        allowed = shim.xco_steps_allowed(ctypes.c_double(found), line)
        assert allowed == pytest.approx(max(expected.R, LEAST * LINE), rel=1e-9)


def told(shim: ctypes.CDLL, *marks: int, offer: int = 0) -> Peer:
    """Return a sender by the published law that was told so many new marks in each period."""
    peer, total = Peer(shim, 0, 3).publish(), 0
    gate = peer.gate(NOW, 1)
    for at, count in enumerate([0, *marks]):
        total += count
        now = NOW + at * 10 * MS
        peer.core.look(now, gate, 10**6, at + 1)
        peer.allow(now)
        assert peer.take(now, 1, Told(0, 10**6 * at, 10**9 * at, total, offer)) == TAKEN
    peer.allow(NOW + len(marks) * 10 * MS)
    return peer


@pytest.mark.parametrize("offer", [0, 1, LINE // 10])
def test_a_sender_obeys_marks_and_no_offers(shim: ctypes.CDLL, offer: int) -> None:
    assert told(shim, offer=offer).allowed(1) == LINE
    assert told(shim, 300, offer=offer).allowed(1) == pytest.approx(LINE - 300 * UNIT, abs=1)


def test_the_guaranteed_part_remains(shim: ctypes.CDLL) -> None:
    peer = told(shim, 10**5)
    assert peer.allowed(1) == LINE // 4 // 20, "of the safe share"
    peer.gate(NOW, 2)
    assert shim.xco_steps_allowed(ctypes.c_double(0), ctypes.c_double(LINE)) == LEAST * LINE


def test_a_pair_that_sent_nothing_for_a_second_begins_again(shim: ctypes.CDLL) -> None:
    peer, now = told(shim, 300), NOW + 10 * MS
    peer.core.look(now, peer.gates[1], 0, 2)
    for at in range(1, 111):
        now = NOW + 10 * MS + at * 10 * MS
        peer.take(now, 1, Told(0, 10**7, 10**10, 300))
        peer.allow(now)
        if at == 90:
            assert peer.allowed(1) < LINE - 200 * UNIT
    assert peer.allowed(1) == LINE


def test_without_messages_a_host_keeps_to_its_safe_share(shim: ctypes.CDLL) -> None:
    peer = told(shim, 300)
    peer.allow(NOW + 10 * MS + SILENCE)
    assert peer.allowed(1) == 0


def reported(shim: ctypes.CDLL, publish: bool) -> Told:
    """Return what a receiver tells of a port in use that marks."""
    peer = Peer(shim, 0, 3)
    if publish:
        peer.publish()
    peer.count(NOW, {1: (0, 0, 0)})
    peer.count(NOW + 10 * MS, {1: (1000, 1_100_000, 900)})
    (message,) = peer.written(NOW + 10 * MS)
    return message


def test_a_receiver_reports_all_marks_and_still_makes_offers(shim: ctypes.CDLL) -> None:
    assert (reported(shim, True).marks, reported(shim, False).marks) == (900, 0)
    assert reported(shim, True).offer_bps == reported(shim, False).offer_bps > 0


U64 = st.integers(0, 2**64 - 1)


@given(st.lists(st.tuples(U64, U64, U64, U64), min_size=1, max_size=20))
def test_no_message_stops_traffic_or_lets_it_exceed_the_line(
    shim: ctypes.CDLL, messages: list[tuple[int, int, int, int]]
) -> None:
    peer, now = Peer(shim, 0, 3).publish(), NOW
    peer.gate(now, 1)
    for at, (packets, count, marks, offer) in enumerate(messages):
        now += 10 * MS
        peer.core.look(now, peer.gates[1], 10**6, at)
        peer.take(now, 1, Told(0, packets, count, marks, offer))
        peer.allow(now)
        assert LEAST * LINE <= peer.rate(now, 1) <= LINE
