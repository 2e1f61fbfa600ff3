"""A coordinator on a real interface obeys what is authentic, fresh and for it, and nothing else."""

import signal
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import pairwise

import msgspec
import pytest

from benchmarks.xco_gate_rig import KEY, LINE_BPS, Capture, Rig, Running, StandIn, rig
from xco.cli_report import print_machine
from xco.coordinator_status import Metrics, Served, status
from xco.status import Machine
from xco.wire import Directive, Flag, Leave, Mode, Permit, Status, encode

pytestmark = pytest.mark.root
TO_B = Permit(1, LINE_BPS)
MS = 1_000_000


@pytest.fixture
def bench() -> Iterator[Rig]:
    with rig("xcoco") as made:
        yield made


def held(
    bench: Rig, packets_per_s: float = 20_000, **changes: object
) -> tuple[StandIn, Running, Capture]:
    """Start a coordinator, and a flow that waits behind its closed gate."""
    capture, stand_in = bench.capture(), bench.stand_in()
    return stand_in, started(bench, stand_in, capture, packets_per_s, **changes), capture


def started(
    bench: Rig, stand_in: StandIn, capture: Capture, packets_per_s: float, **changes: object
) -> Running:
    running = bench.start(bench.config(**changes))
    stand_in.wait_for(lambda: stand_in.reports)
    stand_in.direct(Mode.CLOSED, 0, 0)
    bench.send(rate=packets_per_s)
    stand_in.keep_until(lambda: stand_in.reports[-1].waiting, Mode.CLOSED)
    stand_in.keep(0.1, Mode.CLOSED)
    capture.take()
    return running


def counted(running: Running, key: str) -> int:
    time.sleep(0.15)  # it publishes ten times a second
    return running.statistics().values[key]


def refused(stand_in: StandIn, capture: Capture, make: Callable[[], bytes]) -> bool:
    """Whether a datagram that would open the gate, sent five times, opens nothing."""
    stand_in.keep(0.02, Mode.CLOSED)
    capture.take()
    datagram = make()
    for _ in range(5):
        stand_in.send(datagram)
        time.sleep(0.002)
    arrived = capture.take()
    stand_in.keep(0.05, Mode.CLOSED)
    return arrived == []


def lowered(directive: Directive, epoch: int) -> Directive:
    return replace(directive, header=replace(directive.header, epoch=epoch, sequence=2**40))


def opening(stand_in: StandIn) -> Directive:
    return stand_in.directive(Mode.RATE, 0, 0, TO_B)


def test_forged_and_stale_directives_are_ignored_and_counted(bench: Rig) -> None:
    stand_in, running, capture = held(bench)
    whole = encode(opening(stand_in), KEY)  # old by the time that it is sent
    misdirected = partial(stand_in.directive, Mode.RATE, 0, 0, TO_B)
    assert refused(stand_in, capture, lambda: encode(opening(stand_in), bytes(32)))
    assert refused(stand_in, capture, lambda: whole[:-1] + bytes([whole[-1] ^ 1]))
    assert refused(stand_in, capture, lambda: b"no message")
    assert refused(stand_in, capture, lambda: encode(replace(misdirected(), to=2), KEY))
    assert refused(stand_in, capture, lambda: whole)
    assert refused(stand_in, capture, lambda: encode(lowered(opening(stand_in), 0), KEY))
    keys = ("forged", "malformed", "misdirected", "stale", "lower_epochs")
    counts = [counted(running, key) for key in keys]
    # of the misdirected one, those after the first are duplicates
    assert counts == [10, 5, 1, 4 + 5, 5]
    stand_in.keep(0.05, Mode.RATE, TO_B)
    assert len(capture.take()) > 100  # the true one is obeyed


def test_a_lower_epoch_is_refused_even_after_a_restart(bench: Rig) -> None:
    stand_in, running, capture = held(bench)
    stand_in.epoch = 7
    stand_in.keep(0.1, Mode.CLOSED)
    running.process.send_signal(signal.SIGTERM)
    assert running.process.wait(3) == 0
    stand_in.hear(0.1)
    assert isinstance(stand_in.others[-1], Leave)
    stand_in.reports.clear()
    again = started(bench, stand_in, capture, 1)
    assert refused(stand_in, capture, lambda: encode(lowered(opening(stand_in), 6), KEY))
    assert counted(again, "lower_epochs") == 5
    assert status(again.config).epoch == 7


def test_a_higher_epoch_takes_over_at_once(bench: Rig) -> None:
    stand_in, running, capture = held(bench)
    stand_in.epoch, stand_in.sequence = 2, 0  # a standby with sequences of its own
    stand_in.keep(0.2, Mode.RATE, TO_B)
    assert len(capture.take()) > 100
    values = running.statistics().values
    assert (values["epoch"], values["fallbacks"]) == (2, 0)


@pytest.mark.parametrize("skew_ns", [-40_000 * MS, 0, 7 * MS, 3_600_000 * MS])
def test_slices_keep_their_place_however_the_clocks_differ(bench: Rig, skew_ns: int) -> None:
    capture, stand_in = bench.capture(), bench.stand_in()
    stand_in.skew_ns = skew_ns
    started(bench, stand_in, capture, 0)
    inside = outside = 0
    for _ in range(40):
        stand_in.keep(0.01, Mode.CLOSED)
        capture.take()
        start = time.monotonic_ns() + 2 * MS
        stand_in.direct(Mode.SLICE, start, start + 4 * MS, TO_B)
        time.sleep(0.008)
        stamps = [at - start for at, _, _ in capture.take()]
        inside += sum(0 <= at <= 4 * MS for at in stamps)
        outside += sum(not -MS // 4 <= at <= 4.25 * MS for at in stamps)
    assert inside > 40 * 20
    assert outside < inside / 20  # a busy machine is late by itself


def test_an_unused_slice_is_given_up_after_the_hysteresis(bench: Rig) -> None:
    stand_in, running, _ = held(bench, packets_per_s=300, flow_threshold="1KB")
    stand_in.keep(0.3, Mode.RATE, TO_B)  # nothing waits any more
    given_up = []
    for _ in range(10):
        stand_in.keep(0.01, Mode.CLOSED)
        start = time.monotonic_ns() + MS
        slice_ = stand_in.direct(Mode.SLICE, start, start + 8 * MS, TO_B)
        stand_in.hear(0.012)
        deadline = time.monotonic() + 0.012
        while time.monotonic() < deadline:
            stand_in.hear(0.001)
        for report, at in zip(stand_in.reports, stand_in.heard_ns, strict=True):
            if report.gave_up_sequence == slice_.header.sequence:
                given_up.append(at - start)
                break
    assert len(given_up) >= 8
    assert min(given_up) >= 50_000
    assert sorted(given_up)[len(given_up) // 2] < 3 * MS
    assert counted(running, "given_up") == len(given_up)


def test_a_slice_that_is_used_is_not_given_up(bench: Rig) -> None:
    stand_in, running, capture = held(bench, packets_per_s=0)
    for _ in range(10):
        stand_in.keep(0.02, Mode.CLOSED)
        start = time.monotonic_ns() + MS
        stand_in.direct(Mode.SLICE, start, start + 2 * MS, TO_B)
    stand_in.keep(0.1, Mode.CLOSED)
    assert counted(running, "given_up") <= 1
    assert len(capture.take()) + len(capture.take()) > 1


def widest_gap(stand_in: StandIn, capture: Capture) -> int:
    """Return the longest pause around the border of two slices, in ns."""
    stand_in.keep(0.02, Mode.CLOSED)
    capture.take()
    start = time.monotonic_ns() + 4 * MS
    stand_in.direct(Mode.SLICE, start, start + 6 * MS, TO_B)
    while time.monotonic_ns() < start + 2 * MS:
        pass
    stand_in.direct(Mode.SLICE, start + 6 * MS, start + 10 * MS, TO_B)
    time.sleep(0.015)
    stamps = sorted(at - start for at, _, _ in capture.take() if at > start)
    around = [at for at in stamps if 5 * MS < at < 7 * MS]
    return max((b - a for a, b in pairwise([5 * MS, *around, 7 * MS])), default=2 * MS)


def test_slices_that_follow_each_other_leave_no_gap(bench: Rig) -> None:
    stand_in, _, capture = held(bench, packets_per_s=0)
    # a busy machine pauses by itself, but not every time
    assert min(widest_gap(stand_in, capture) for _ in range(10)) < MS // 2


def test_backlog_is_reported_at_once_and_by_heartbeat(bench: Rig) -> None:
    capture, stand_in = bench.capture(), bench.stand_in()
    bench.start(bench.config(heartbeat="20ms", silence="200ms"))
    stand_in.silence_ns = 200 * MS
    stand_in.wait_for(lambda: stand_in.reports)
    stand_in.keep_until(lambda: stand_in.reports[-1].flags == Flag.NONE, Mode.OPEN)
    stand_in.keep(0.3, Mode.OPEN)
    gaps = [b - a for a, b in pairwise(stand_in.heard_ns[-8:])]
    assert 15 * MS < sorted(gaps)[len(gaps) // 2] < 40 * MS
    bench.send(rate=20_000)
    stand_in.keep_until(lambda: stand_in.reports[-1].waiting, Mode.CLOSED)
    entry = stand_in.reports[-1].waiting[0]
    assert entry.destination == 1
    assert entry.backlog_bytes > 0
    capture.take()


def test_a_refusal_is_said_and_the_host_keeps_to_its_safe_share(
    bench: Rig, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    stand_in = bench.stand_in()
    stand_in.status = Status.TOPOLOGY_DIFFERS
    running = bench.start(bench.config())
    stand_in.wait_for(lambda: len(stand_in.others) > 2)
    assert "refused by the controller: its topology is another one" in bench.log.read_text()
    assert counted(running, "joined") == 0
    found = status(running.config)
    assert found.mode == "fallback"
    print_machine(Machine(at_ns=0, coordinator=msgspec.to_builtins(found)))
    assert "fallback, refused by the controller: the log says why" in capsys.readouterr().out


def test_metrics_say_how_it_is(bench: Rig) -> None:
    stand_in, running, _ = held(bench)
    stand_in.keep(0.2, Mode.CLOSED)
    with Served(running.config):
        families = {family.name: family for family in Metrics(running.config).collect()}
    modes = {s.labels["mode"]: s.value for s in families["xco_coordinator_mode"].samples}
    assert modes["closed"] == 1
    assert sum(modes.values()) == 1
    assert families["xco_coordinator_flows"].samples[0].value == 1
    served = bench.config(metrics="127.0.0.1:9769")
    with Served(served):
        text = urllib.request.urlopen("http://127.0.0.1:9769/metrics").read().decode()
    assert 'xco_coordinator_directives_total{interface="e0"}' in text
