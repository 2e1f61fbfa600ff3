"""The log of a guest that is migrated: what the switch changes in its memory has its bits set."""

import ctypes
import mmap

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from zovn_guest import BASE, REGION, SECOND, Guest
from zovn_rig import address, build, frame

from zovn.native.switch import MemoryPort, Switch

PAGE = 4096
LOG = (SECOND + REGION) // PAGE // 8 + 1


@pytest.fixture(autouse=True, scope="module")
def _built() -> None:
    build()


def pages(memory: mmap.mmap) -> list[bytes]:
    return [memory[at : at + PAGE] for at in range(0, REGION, PAGE)]


def contents(guest: Guest) -> dict[int, bytes]:
    """Return all pages of the guest, by their numbers."""
    found: dict[int, bytes] = {}
    for base, memory in ((BASE, guest.memory), (SECOND, guest.second)):
        found |= {base // PAGE + at: one for at, one in enumerate(pages(memory))}
    return found


def logged(log: ctypes.Array[ctypes.c_uint8]) -> set[int]:
    marked = ((at, byte) for at, byte in enumerate(log) if byte)
    return {8 * at + bit for at, byte in marked for bit in range(8) if byte >> bit & 1}


@settings(max_examples=25, deadline=None)
@given(
    st.booleans(),
    st.lists(
        st.tuples(
            st.sampled_from(["send", "receive", "post"]), st.integers(14, 6000), st.booleans()
        ),
        max_size=12,
    ),
)
def test_what_changes_is_logged(event_index: bool, actions: list[tuple[str, int, bool]]) -> None:
    log = (ctypes.c_uint8 * LOG)()
    guest, peer, switch = Guest(event_index=event_index), MemoryPort(16, 16), Switch()
    guest.raw_memory.log, guest.raw_memory.log_bytes = ctypes.addressof(log), LOG
    assert guest.handle
    for port, handle in enumerate((guest.handle, peer.handle)):
        switch.add(handle)
        switch.fix(port, 1, address(port))
    for number, (what, length, notify) in enumerate(actions):
        if what == "send":
            guest.send(frame(address(0), address(1), number, length))
        elif what == "receive":
            peer.send(frame(address(1), address(0), number, length))
        elif len(guest.receive.free) > 1:
            guest.post([700, length])
        before = contents(guest)
        ctypes.memset(log, 0, LOG)
        switch.library.zovn_ring_port_ask(guest.handle, notify)
        switch.step()
        after = contents(guest)
        assert {page for page, one in after.items() if one != before[page]} <= logged(log)
        guest.completed()


def test_pages_beyond_the_log_are_not_logged() -> None:
    log = (ctypes.c_uint8 * 16)(*[0] * 16)
    guest, peer, switch = Guest(), MemoryPort(), Switch()
    guest.raw_memory.log, guest.raw_memory.log_bytes = ctypes.addressof(log), 8
    assert guest.handle
    for handle in (guest.handle, peer.handle):
        switch.add(handle)
    guest.send(frame(address(0), address(1)))
    switch.step()
    assert not any(log)
    assert len(guest.completed()) == 1
