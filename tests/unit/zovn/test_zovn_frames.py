"""Frames: what is none, and what their senders leave to others."""

import pytest
from zovn_rig import BROADCAST, Rig, address, build, frame, known

from zovn.native.switch import Offload, PortSettings


@pytest.fixture(autouse=True, scope="module")
def _built() -> None:
    build()


# --- what is no frame


@pytest.mark.parametrize(
    ("sent", "reason"),
    [
        (b"\x02" * 13, "malformed"),
        (frame(BROADCAST, address(1)), "malformed"),
        (frame(bytes(6), address(1)), "malformed"),
        (frame(address(0), address(1), length=14)[:12] + b"\x81\x00\x00", "malformed"),
        (frame(address(0), address(1), length=65535 + 19), "too_long"),
        (frame(address(0), bytes.fromhex("0180c2000001")), "reserved"),
        (frame(address(0), address(1), tag=5), "vlan"),
    ],
    ids=["short", "group", "zero", "half a tag", "long", "pause", "tag"],
)
def test_what_is_no_frame_of_this_port_is_dropped_for_its_reason(sent: bytes, reason: str) -> None:
    rig = known(2)
    before = rig.drops(0)
    rig.ports[0].send(sent)
    assert rig.drain() == {0: [], 1: []}
    after = rig.drops(0)
    assert after == before | {reason: before.get(reason, 0) + 1}
    assert rig.ports[0].free_heads == 16, "its sender has it back"


def test_a_priority_tag_is_no_vlan() -> None:
    rig = known(2)
    sent = rig.send(0, 1, tag=0xE000)
    assert sent is not None
    assert rig.drain()[1] == [sent[:12] + sent[16:]]


@pytest.mark.parametrize("hidden", [b"\x81\x00", b"\x88\xa8"])
def test_a_tag_behind_a_tag_is_not_shown_to_a_trunk(hidden: bytes) -> None:
    """A guest of VLAN 1 would get into VLAN 20 else."""
    rig = Rig([PortSettings(vlan=1), PortSettings(vlan=1, tagged=(20,))])
    head, rest = address(1) + address(0), hidden + b"\x00\x14\x08\x00" + bytes(60)
    rig.ports[0].send(head + b"\x81\x00\xe0\x00" + rest)
    assert rig.drain()[1] == [head + b"\x81\x00\xe0\x01" + rest]


@pytest.mark.parametrize("tag", [None, 7])
def test_the_longest_frame_passes_and_one_byte_more_does_not(tag: int | None) -> None:
    """The port it goes to has a tag that the other one does not have."""
    trunk, access = PortSettings(tagged=(7,)), PortSettings(vlan=7)
    rig = Rig([trunk, access] if tag else [access, trunk])
    for more in (0, 1):
        rig.send(0, 1, 65535 + (18 if tag else 14) + more, tag=tag)
    assert [len(got) for got in rig.drain()[1]] == [65535 + (14 if tag else 18)]
    assert rig.drops(0) == {"too_long": 1}


# --- offloads


CHECKSUM = Offload(flags=1, checksum_start=34, checksum_offset=6)
TCP4 = Offload(1, 1, 54, 1448, 34, 16)


@pytest.mark.parametrize(
    ("offload", "sends", "takes", "reason"),
    [
        (CHECKSUM, 1, 1, None),
        (CHECKSUM, 0, 1, "malformed"),
        (TCP4, 3, 3, None),
        (TCP4, 3, 1, "offload"),
        (TCP4, 1, 3, "malformed"),
        (Offload(1, 0x81, 54, 1448, 34, 16), 3, 63, "malformed"),
        (Offload(1, 0x81, 54, 1448, 34, 16), 63, 3, "offload"),
        (Offload(1, 0x81, 54, 1448, 34, 16), 63, 63, None),
        (Offload(1, 0x80, 54, 1448, 34, 16), 63, 63, "malformed"),
        (Offload(1, 2, 54, 1448, 34, 16), 63, 63, "malformed"),
        (Offload(0, 1, 54, 1448, 34, 16), 63, 63, "malformed"),
        (Offload(1, 1, 54, 0, 34, 16), 63, 63, "malformed"),
        (Offload(1, 0, 0, 0, 13, 6), 63, 63, "malformed"),
        (Offload(1, 0, 0, 0, 34, 2965), 63, 63, "malformed"),
        (Offload(1, 0, 0, 0, 34, 65535), 63, 63, "malformed"),
        (Offload(1, 0, 0, 0, 34, 2964), 63, 0, "offload"),
        (Offload(1, 0, 0, 0, 35, 6), 63, 63, "malformed"),
        (Offload(1, 0, 0, 0, 34, 7), 63, 63, "malformed"),
        (Offload(1, 3, 42, 1448, 34, 6), 63, 55, "offload"),
    ],
)
def test_what_a_sender_leaves_passes_where_both_agreed(
    offload: Offload, sends: int, takes: int, reason: str | None
) -> None:
    rig = known(2)
    before = rig.drops(0)
    rig.ports[0].offer(sends, 0)
    rig.ports[1].offer(0, takes)
    sent = rig.send(0, 1, 3000, offload)
    rig.settle()
    got = rig.ports[1].receive_with_offload()
    assert got == (None if reason else (sent, offload))
    assert rig.drops(0) == (before | {reason: before.get(reason, 0) + 1} if reason else before)


def test_where_a_checksum_begins_moves_with_a_tag() -> None:
    rig = Rig([PortSettings(vlan=7), PortSettings(vlan=1, tagged=(7,))])
    rig.ports[0].offer(3, 0)
    rig.ports[1].offer(0, 3)
    rig.send(0, 1, 3000, TCP4)
    rig.settle()
    got = rig.ports[1].receive_with_offload()
    assert got is not None
    assert got[1] == Offload(1, 1, 58, 1448, 38, 16)


def test_a_checksum_that_a_tag_would_move_too_far_is_malformed() -> None:
    rig = Rig([PortSettings(vlan=7), PortSettings(vlan=1, tagged=(7,))])
    rig.ports[0].offer(1, 0)
    rig.ports[1].offer(0, 1)
    for start in (65534, 65530):
        rig.send(0, 1, 65535 + 14, Offload(1, 0, 0, 0, start, 0))
    rig.settle()
    got = rig.ports[1].receive_with_offload()
    assert got is not None
    assert got[1] == Offload(1, 0, 0, 0, 65534, 0)
    assert rig.ports[1].receive_with_offload() is None
    assert rig.drops(0) == {"malformed": 1}


def test_a_report_of_a_valid_checksum_goes_no_further() -> None:
    rig = known(2)
    sent = rig.send(0, 1, offload=Offload(flags=2, header_bytes=7))
    rig.settle()
    assert rig.ports[1].receive_with_offload() == (sent, Offload())


def test_a_flood_that_cannot_be_finished_is_dropped_only_for_those_that_do_not_accept_it() -> None:
    rig = Rig(3)
    rig.ports[0].offer(63, 0)
    rig.ports[1].offer(0, 63)
    sent = frame(address(0), BROADCAST)
    rig.ports[0].send(sent, Offload(1, 3, 42, 1448, 34, 6))
    assert rig.drain() == {0: [], 1: [sent], 2: []}
    assert rig.drops(0) == {"offload": 1}
