"""PFC by byte and by time: what is sent, when it is refreshed, and how long it is obeyed."""

import ctypes

import pytest
from hypothesis import given
from hypothesis import strategies as st
from zovn_rig import build

from zovn.native.wire import (
    RawHeadroom,
    RawPfc,
    RawReceiver,
    RawSender,
    core,
    pfc_frame,
    pfc_quanta,
)

SOURCE = bytes.fromhex("020000000001")
MOST_QUANTA = 0xFFFF
QUANTA = st.dictionaries(st.integers(0, 7), st.integers(0, MOST_QUANTA))
RATES = st.integers(1_000_000, 100_000_000_000)
XOFF, XON = 20_000, 10_000


@pytest.fixture(autouse=True, scope="module")
def _built() -> None:
    build()


# --- frames


def test_a_frame_has_the_bytes_of_the_standard() -> None:
    frame = pfc_frame(SOURCE, {0: 0, 3: 0xFFFF, 7: 0x0102})
    assert frame.hex() == (
        "0180c2000001" + "020000000001" + "8808" + "0101" + "0089"
        "0000" + "0000" + "0000" + "ffff" + "0000" + "0000" + "0000" + "0102" + "00" * 26
    )


@given(QUANTA)
def test_what_is_written_is_read(quanta: dict[int, int]) -> None:
    assert pfc_quanta(pfc_frame(SOURCE, quanta)) == quanta


@given(QUANTA, st.integers(0, 33))
def test_a_part_of_a_frame_is_none(quanta: dict[int, int], length: int) -> None:
    assert pfc_quanta(pfc_frame(SOURCE, quanta)[:length]) is None


@pytest.mark.parametrize("at", [0, 5, 12, 13, 14, 15])
def test_another_address_type_or_operation_is_no_pfc(at: int) -> None:
    frame = bytearray(pfc_frame(SOURCE, {1: 1}))
    frame[at] ^= 0x10
    assert pfc_quanta(bytes(frame)) is None


TO, CONTROL = bytes.fromhex("0180c2000001"), bytes.fromhex("88080101")


@given(
    st.sampled_from([TO, SOURCE]) | st.binary(max_size=6),
    st.sampled_from([CONTROL, CONTROL[:2] + b"\0\x01"]) | st.binary(max_size=4),
    st.binary(max_size=40),
)
def test_any_bytes_are_a_frame_only_with_its_address_and_type(
    to: bytes, control: bytes, rest: bytes
) -> None:
    frame = to + SOURCE + control + rest
    found = pfc_quanta(frame)
    assert (found is not None) == (len(frame) >= 34 and frame[:6] == TO and frame[12:16] == CONTROL)
    for klass, quanta in (found or {}).items():
        assert frame[17] >> klass & 1
        assert quanta == int.from_bytes(frame[18 + 2 * klass : 20 + 2 * klass], "big")


# --- time


@given(st.integers(0, MOST_QUANTA), RATES)
def test_a_quantum_is_512_bit_times(quanta: int, rate: int) -> None:
    assert core().zovn_pfc_quanta_ns(quanta, rate) == quanta * 512 * 10**9 // rate


class Sender:
    """One side's decisions, as its port makes them."""

    def __init__(self, rate: int, classes: int = 0xFF) -> None:
        self.raw = RawSender(xoff_bytes=XOFF, xon_bytes=XON, rate_bps=rate, classes=classes)
        self.held = (ctypes.c_uint64 * 8)()

    def due(self, now_ns: int) -> dict[int, int] | None:
        """Return what has to be sent now, as the quanta of classes, and note it as sent."""
        raw = RawPfc()
        sender, found = ctypes.byref(self.raw), ctypes.byref(raw)
        if not core().zovn_pfc_due(sender, self.held, now_ns, found):
            return None
        core().zovn_pfc_sent(sender, found, now_ns)
        return {klass: raw.quanta[klass] for klass in range(8) if raw.enabled >> klass & 1}

    @property
    def refresh_ns(self) -> int:
        """When the next pause is refreshed."""
        return int(core().zovn_pfc_refresh(ctypes.byref(self.raw)))


class Receiver:
    """The other side."""

    def __init__(self, rate: int) -> None:
        self.raw = RawReceiver(rate_bps=rate)

    def obey(self, quanta: dict[int, int], now_ns: int) -> None:
        raw = RawPfc()
        assert core().zovn_pfc_read(pfc_frame(SOURCE, quanta), 60, ctypes.byref(raw))
        core().zovn_pfc_obey(ctypes.byref(self.raw), ctypes.byref(raw), now_ns)

    def paused(self, now_ns: int) -> set[int]:
        found = int(core().zovn_pfc_paused(ctypes.byref(self.raw), now_ns))
        return {klass for klass in range(8) if found >> klass & 1}


@given(
    st.lists(
        st.tuples(st.integers(0, 7), st.integers(0, 40_000), st.integers(0, 50_000_000)),
        max_size=60,
    ),
    RATES,
    st.integers(0, 255),
)
def test_a_class_is_paused_from_above_xoff_to_xon_and_never_expires_in_between(
    events: list[tuple[int, int, int]], rate: int, classes: int
) -> None:
    """The sender acts on each change, and when a refresh is due; the peer sees it immediately."""
    sender, receiver, now, full = Sender(rate, classes), Receiver(rate), 0, set[int]()
    for klass, held, after in events:
        if sender.refresh_ns <= now + after < sender.refresh_ns + 20 * 10**6:
            now = sender.refresh_ns
        else:
            now = min(now + after, sender.refresh_ns)
        sender.held[klass] = held
        if classes >> klass & 1 and (held > XOFF or (klass in full and held > XON)):
            full.add(klass)
        else:
            full.discard(klass)
        said = sender.due(now)
        if said is not None:
            receiver.obey(said, now)
            assert {k for k, quanta in said.items() if quanta} == full
        assert receiver.paused(now) == full


@given(RATES)
def test_a_pause_is_refreshed_at_half_of_its_time_and_expires_without(rate: int) -> None:
    sender, receiver = Sender(rate), Receiver(rate)
    sender.held[3] = XOFF + 1
    said = sender.due(0)
    assert said == {3: MOST_QUANTA}
    receiver.obey(said, 0)
    whole = MOST_QUANTA * 512 * 10**9 // rate
    assert sender.refresh_ns == whole // 2
    assert sender.due(whole // 2 - 1) is None
    assert receiver.paused(whole - 1) == {3}
    assert receiver.paused(whole) == set()
    assert sender.due(whole // 2) == {3: MOST_QUANTA}


def test_a_class_that_is_empty_again_is_resumed_once() -> None:
    sender = Sender(10**9)
    sender.held[5] = XOFF + 1
    assert sender.due(0) == {5: MOST_QUANTA}
    sender.held[5] = XON
    assert sender.due(1) == {5: 0}
    assert sender.due(2) is None
    assert sender.refresh_ns == 2**64 - 1


# --- headroom

SIZES = st.integers(0, 200_000)


def headroom(rate: int, delay: int, response: int, most: int, ring: int) -> RawHeadroom:
    return RawHeadroom(rate, delay, response, most, ring)


@given(RATES, st.integers(0, 10**7), st.integers(0, 10**7), st.integers(64, 10_000), SIZES)
def test_headroom_covers_all_that_can_come_after_the_pause(
    rate: int, delay: int, response: int, most: int, ring: int
) -> None:
    """The peer sends without a gap until the pause has gone over and is obeyed."""
    raw = headroom(rate, delay, response, most, ring)
    starts = most * 8 / rate  # the frame that delays the pause
    obeyed = starts + 84 * 8 / rate + delay / 1e9 + response / 1e9
    comes = (obeyed + delay / 1e9) * rate / 8 + most + ring
    assert core().zovn_headroom_bytes(ctypes.byref(raw)) >= comes * (1 - 1e-12)


@given(RATES, st.integers(0, 10**6), st.integers(64, 10_000), SIZES, SIZES)
def test_a_buffer_is_divided_or_refused(
    rate: int, delay: int, most: int, ring: int, buffer: int
) -> None:
    raw = headroom(rate, delay, 2 * delay, most, ring)
    xoff, xon = ctypes.c_uint64(), ctypes.c_uint64()
    needed = core().zovn_headroom_bytes(ctypes.byref(raw))
    least = core().zovn_headroom_least(ctypes.byref(raw))
    fits = core().zovn_headroom_divide(
        ctypes.byref(raw), buffer, ctypes.byref(xoff), ctypes.byref(xon)
    )
    assert fits == (buffer >= least)
    if fits:
        assert xoff.value + needed == buffer
        assert most <= xon.value < xoff.value
