"""Runs of frames from guest to guest end where the next frame is not like those before."""

from collections.abc import Sequence

import pytest
from zovn_guest import Guest
from zovn_rig import address, build, frame, serial

from zovn.native.switch import Class, PortSettings, Settings, Switch

SIZE = 16


@pytest.fixture(autouse=True, scope="module")
def _built() -> None:
    build()


class Guests:
    """Guests with as many receive buffers as frames that they may send."""

    def __init__(
        self,
        settings: Settings | None = None,
        ports: Sequence[PortSettings] = (PortSettings(),) * 3,
        *,
        fixed: bool = True,
        buffers: int = SIZE,
    ) -> None:
        self.switch = Switch(settings)
        self.threads = settings.threads if settings else 1
        self.guests = [Guest(4 * SIZE) for _ in ports]
        for number, (guest, port) in enumerate(zip(self.guests, ports, strict=True)):
            self.switch.add(guest.handle or 0, port)
            if fixed:
                self.switch.fix(number, 1, address(number))
            for _ in range(buffers):
                guest.post((2000,))

    def send(self, source: int, to: int, numbers: Sequence[int], length: int = 64) -> None:
        """Send frames with these numbers."""
        for number in numbers:
            assert self.guests[source].send(frame(address(source), address(to), number, length))

    def step(self, after_s: float = 0.0) -> None:
        """Step all parts, until all that they pass has come; and check."""
        self.switch.step(after_s)
        for part in (1, 0) if self.threads == 2 else ():
            self.switch.step_part(part)
        assert self.switch.check() is None

    def got(self, number: int) -> list[int]:
        """Return the numbers of what a guest has received."""
        return [serial(data) for _, data in self.guests[number].received()]


@pytest.mark.parametrize("threads", [1, 2])
def test_all_frames_of_a_run_arrive_in_order_and_are_given_back(threads: int) -> None:
    rig = Guests(Settings(threads=threads))
    for begin in range(0, 400, 8):
        rig.send(0, 1, range(begin, begin + 8))
        rig.send(0, 2, range(1000 + begin, 1000 + begin + 8))
        rig.step()
        assert rig.got(1) == list(range(begin, begin + 8))
        assert rig.got(2) == list(range(1000 + begin, 1000 + begin + 8))
        assert len(rig.guests[0].completed()) == 16
        for guest in rig.guests[1:]:
            for _ in range(8):
                guest.post((2000,))


@pytest.mark.parametrize("threads", [1, 2])
def test_a_run_waits_for_room_where_it_was(threads: int) -> None:
    rig = Guests(Settings(threads=threads), buffers=3)
    rig.send(0, 1, range(8))
    rig.step()
    assert rig.got(1) == [0, 1, 2]
    assert rig.guests[0].completed() == [0, 1, 2]
    for _ in range(SIZE):
        rig.guests[1].post((2000,))
    rig.step()
    assert rig.got(1) == [3, 4, 5, 6, 7]


def test_a_buffer_in_pieces_ends_no_frame_of_a_run() -> None:
    rig = Guests(buffers=0)
    for number in range(6):
        rig.guests[1].post((40, 40, 40) if number == 2 else (2000,))
    rig.guests[1].post((30,))
    rig.guests[1].post((100,))
    rig.send(0, 1, range(7))
    rig.step()
    assert rig.got(1) == list(range(7))


def test_what_was_found_ends_when_an_address_moves() -> None:
    """The frame in the middle comes from the address of the destination."""
    rig = Guests(fixed=False)
    rig.send(1, 2, [0])
    rig.send(2, 1, [0])
    rig.step()
    assert rig.got(1) == [0]
    rig.send(0, 1, [1, 2])
    rig.guests[0].send(frame(address(1), address(2), 3))
    rig.send(0, 1, [4, 5])
    rig.step()
    assert rig.got(1) == [1, 2]
    assert rig.switch.counters(0).drops == {"no_destination": 2}


def test_what_was_found_ends_with_the_step() -> None:
    """The destination has sent nothing for too long: frames for it go to all."""
    rig = Guests(Settings(age_s=5.0), fixed=False)
    rig.send(1, 2, [0])
    rig.step()
    rig.send(0, 1, [1, 2, 3])
    rig.step()
    rig.send(0, 1, [4, 5, 6])
    rig.step(after_s=6.0)
    assert rig.got(1) == [1, 2, 3, 4, 5, 6]
    assert rig.got(2) == [0, 4, 5, 6]


def test_a_class_by_its_dscp_is_that_of_the_frame_alone() -> None:
    rig = Guests(
        Settings(classes=(Class(1),) * 7 + (Class(0),), class_of_dscp={46: 7}),
        (PortSettings(trust="dscp"),) * 2,
    )
    for number in range(6):
        made = frame(address(0), address(1), number)
        tos = b"\xb8" if number > 2 else b"\0"
        rig.guests[0].send(made[:12] + b"\x08\0\x45" + tos + made[16:])
    rig.step()
    assert rig.got(1) == [3, 4, 5, 0, 1, 2]


def test_a_lossy_class_takes_no_more_of_a_run_than_its_limit() -> None:
    rig = Guests(Settings(classes=(Class(limit_bytes=700),) * 8), buffers=0)
    rig.send(0, 1, range(SIZE), 100)
    rig.step()
    assert rig.switch.counters(1).waiting == 7
    assert rig.switch.counters(0).drops == {"congestion": SIZE - 7}


def test_a_run_ends_with_its_turn() -> None:
    rig = Guests(buffers=2 * SIZE)
    for source in (0, 1):
        rig.send(source, 2, range(100 * source, 100 * source + 6), 1000)
    rig.step()
    turns = [number // 100 for number in rig.got(2)]
    first = turns[0]
    assert turns == [first] * 3 + [1 - first] * 3 + [first] * 3 + [1 - first] * 3


def test_a_run_is_not_faster_than_the_rate_of_its_port() -> None:
    rig = Guests(ports=(PortSettings(), PortSettings(rate_bps=10_000_000)))
    rig.send(0, 1, range(4), 1500)
    for number in range(4):
        rig.step(after_s=0.0012)
        assert rig.got(1) == [number]


def test_frames_of_a_run_are_marked_while_others_wait() -> None:
    rig = Guests(Settings(classes=(Class(mark_bytes=100),) * 8))
    for number in range(5):
        made = frame(address(0), address(1), number)
        rig.guests[0].send(made[:12] + b"\x08\0\x45\x01" + made[16:])
    rig.step()
    assert rig.switch.counters(1).marked == 4


def test_frames_of_a_run_get_the_tag_of_a_trunk() -> None:
    rig = Guests(ports=(PortSettings(vlan=2), PortSettings(vlan=1, tagged=(2,))), fixed=False)
    rig.switch.fix(1, 2, address(1))
    rig.send(0, 1, range(4))
    rig.step()
    got = [data for _, data in rig.guests[1].received()]
    assert [data[12:16] for data in got] == [b"\x81\0\0\x02"] * 4
