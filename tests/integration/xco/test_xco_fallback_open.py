"""`fallback = "open"`: a host without a controller sends at its line's rate, as before xco."""

import time
from collections.abc import Iterator

import pytest
from support.inconclusive import inconclusive
from support.stalls import Stalls
from support.waiting import eventually

from benchmarks.xco.gates.rig import (
    DEEP_ROOM_BYTES,
    HOST,
    PAYLOAD,
    RECEIVER,
    Capture,
    Rig,
    StandIn,
    rig,
)
from xco.coordinator.status import status
from xco.protocol.wire import Mode

pytestmark = [pytest.mark.root, pytest.mark.timeout(180)]
FRAME_BYTES = PAYLOAD + 42
LINE_BPS = 100_000_000
HOSTS = 11
SAFE_BPS = LINE_BPS // (HOSTS - 1)
"""Ten senders may cross the receiver's link."""
PACED_BPS = LINE_BPS // 100 * 98
SILENCE_NS = 200_000_000


@pytest.fixture(params=["bpf", "u32"])
def bench(request: pytest.FixtureRequest) -> Iterator[Rig]:
    with rig("xcoop") as made:
        made.classifier = request.param
        (made.folder / "many.toml").write_text(topology())
        yield made


def topology() -> str:
    """Return a star of so many hosts that a safe share is a tenth of the line."""
    names = [chr(ord("a") + number) for number in range(HOSTS)]
    addresses = {"a": HOST, "b": RECEIVER}
    parts = ["[switch.s]"]
    for end, name in enumerate(names):
        parts.append(f'[host.{name}]\naddresses = ["{addresses.get(name, f"10.88.0.{end}")}"]')
    parts += [f'[[link]]\nbetween = ["{name}", "s"]\ncapacity = "{LINE_BPS}"' for name in names]
    return "\n".join(parts)


def settings(bench: Rig, fallback: str = "open") -> dict[str, object]:
    return {"fallback": fallback, "topology": str(bench.folder / "many.toml")}


def stamps_of(capture: Capture, count: int) -> list[int]:
    """Return when each of so many datagrams arrived."""
    stamps: list[int] = []

    def enough() -> bool:
        stamps.extend(at for at, _, _ in capture.take())
        return len(stamps) >= count

    eventually(enough)
    return stamps[:count]


def check_uncoordinated(stalls: Stalls, stamps: list[int]) -> None:
    """Check that frames left at the line's rate: five times a safe share at least.

    Raises:
        Inconclusive: they were slower, and the CPUs' stalls may have held them up.
    """
    seconds = (stamps[-1] - stamps[0]) / 1e9
    rate_bps = (len(stamps) - 1) * FRAME_BYTES * 8 / seconds
    assert rate_bps < 1.1 * PACED_BPS
    lost = stalls.lost(stamps[0] / 1e9, stamps[-1] / 1e9)
    least_bps = 5 * SAFE_BPS
    if rate_bps < least_bps <= rate_bps * seconds / max(seconds - lost, 1e-9):
        inconclusive(f"{rate_bps:.3g} bit/s; CPUs stood still for {lost:.3g} of {seconds:.3g} s")
    assert rate_bps >= least_bps


def test_without_a_controller_the_line_is_uncoordinated(bench: Rig, stalls: Stalls) -> None:
    running, capture = bench.start(bench.config(**settings(bench))), bench.capture()
    eventually(lambda: "open at the line's rate until" in bench.log.read_text())
    bench.send(rate=0, room=DEEP_ROOM_BYTES)
    eventually(lambda: status(running.config).counters["flows"] == 1)
    stamps_of(capture, 500)  # what left before the flow had a queue
    check_uncoordinated(stalls, stamps_of(capture, 2_000))
    now = status(running.config)
    assert now.mode == "fallback"
    assert now.flows[0].open_bps == pytest.approx(PACED_BPS, rel=0.01)


def held(bench: Rig, fallback: str) -> tuple[StandIn, Capture]:
    """Return a coordinator behind whose closed gate 2,000 frames and more wait."""
    capture, stand_in = bench.capture(), bench.stand_in()
    bench.start(bench.config(**settings(bench, fallback)))
    stand_in.wait_for(lambda: stand_in.reports)
    stand_in.direct(Mode.CLOSED, 0, 0)
    bench.send(rate=5_000, room=DEEP_ROOM_BYTES)
    stand_in.keep_until(lambda: backlog(stand_in) > 2_200 * FRAME_BYTES, Mode.CLOSED)
    capture.take()
    return stand_in, capture


def backlog(stand_in: StandIn) -> int:
    return sum(entry.backlog_bytes for entry in stand_in.reports[-1].waiting)


def die(stand_in: StandIn) -> int:
    """Have the controller say its last word; return when, in ns."""
    stand_in.allow_silence(SILENCE_NS)
    stand_in.direct(Mode.CLOSED, 0, 0)
    return time.monotonic_ns()


def test_a_controller_that_dies_under_load_leaves_the_line_uncoordinated(
    bench: Rig, stalls: Stalls
) -> None:
    stand_in, capture = held(bench, "open")
    died_ns = die(stand_in)
    stamps = stamps_of(capture, 2_000)
    stalls.check_within(died_ns / 1e9, stamps[0] / 1e9, SILENCE_NS / 1e9 + 0.05)
    check_uncoordinated(stalls, stamps)
    assert "gates stand open at the line's rate" in bench.log.read_text()


def test_the_same_with_safe_shares_is_a_tenth(bench: Rig) -> None:
    stand_in, capture = held(bench, "safe")
    die(stand_in)
    stamps = stamps_of(capture, 300)
    assert 299 * FRAME_BYTES * 8e9 / (stamps[-1] - stamps[0]) < 1.3 * SAFE_BPS
