"""A front end of vhost-user as QEMU is one, with a guest whose rings the test drives."""

import mmap
import os
import socket
import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Final

from support.waiting import PATIENCE_S, eventually
from zovn_guest import BASE, REGION, SECOND, Guest, Ring
from zovn_switch_rig import RunningSwitch

GET_FEATURES, SET_FEATURES, SET_OWNER, SET_MEM_TABLE = 1, 2, 3, 5
SET_LOG_BASE: Final = 6
SET_VRING_NUM, SET_VRING_ADDR, SET_VRING_BASE, GET_VRING_BASE = 8, 9, 10, 11
SET_VRING_KICK, SET_VRING_CALL = 12, 13
GET_PROTOCOL_FEATURES, SET_PROTOCOL_FEATURES, SET_VRING_ENABLE = 15, 16, 18
GET_QUEUE_NUM: Final = 17
SEND_RARP: Final = 19
GET_INFLIGHT_FD, SET_INFLIGHT_FD = 31, 32
VERSION, NEED_REPLY = 1, 8
MRG_RXBUF, LOG_ALL, INDIRECT_DESC, EVENT_IDX, PROTOCOL = 15, 26, 28, 29, 30
VERSION_1, PACKED, IN_ORDER = 32, 34, 35
MQ: Final = 22
RARP: Final = 2
REPLY_ACK: Final = 3
INFLIGHT_SHMFD: Final = 12
RECEIVE, TRANSMIT = 0, 1


class FrontEnd(Guest):
    """A guest of a running switch; each message waits until the switch has handled it."""

    def __init__(self, path: str, *, event_index: bool = False, inflight: bool = False) -> None:
        self.files: list[int] = []
        super().__init__(event_index=event_index)
        self.calls, self.kicks = [self._event(), self._event()], [self._event(), self._event()]
        self.inflight = b""
        self.socket = socket.socket(socket.AF_UNIX)
        with ExitStack() as on_failure:
            on_failure.callback(self.close)
            self._negotiate(path)
            if inflight:
                self._get_inflight()
                self._set_inflight()
            for ring in (RECEIVE, TRANSMIT):
                self.begin(ring, 0)
            on_failure.pop_all()

    def _negotiate(self, path: str) -> None:
        self.socket.settimeout(PATIENCE_S)
        self.socket.connect(path)
        self.offered = self.ask(GET_FEATURES)
        chosen = [MRG_RXBUF, INDIRECT_DESC, PROTOCOL, VERSION_1]
        chosen += [EVENT_IDX] * self.features["event_index"]
        self._send(SET_OWNER, b"", 0)
        self.chosen = sum(1 << bit for bit in chosen)
        self._send(SET_FEATURES, struct.pack("<Q", self.chosen), 0)
        self.protocol = self.ask(GET_PROTOCOL_FEATURES)
        protocol = 1 << REPLY_ACK | 1 << INFLIGHT_SHMFD
        self._send(SET_PROTOCOL_FEATURES, struct.pack("<Q", protocol), 0)
        for ring in (RECEIVE, TRANSMIT):
            self.call_by(ring, self.calls[ring])
        assert self.share()

    def again(self, path: str) -> None:
        """Connect to a switch that was started again; go on, as QEMU does after a lost connection.

        It does not know what its switch had taken: it reads on from what came back (used index).
        """
        self.socket.close()
        self.socket = socket.socket(socket.AF_UNIX)
        self._negotiate(path)
        if self.inflight:
            self._set_inflight()
        for number in (RECEIVE, TRANSMIT):
            self.begin(number, self.ring(number).used_index())

    def _get_inflight(self) -> None:
        """Have the switch make the memory of its record."""
        self._send(GET_INFLIGHT_FD, struct.pack("<QQHH4x", 0, 0, 2, self.transmit.size), 0)
        self.inflight = self.receive_records()

    def receive_records(self) -> bytes:
        """Receive the file of records that the switch has made; return what it says of them."""
        reply, files, _, _ = socket.recv_fds(self.socket, 12 + 24, 1)
        self.inflight_file = files[0]
        self.files += files
        return reply[12:]

    def _set_inflight(self) -> None:
        assert self.tell(SET_INFLIGHT_FD, self.inflight, [self.inflight_file])

    def new_memory(self) -> mmap.mmap:
        """Return memory that the switch can map."""
        file = os.memfd_create("guest")
        os.ftruncate(file, REGION)
        self.files.append(file)
        return mmap.mmap(file, REGION)

    def port(self) -> int | None:
        """Make none here: the running switch has it."""
        return None

    def _event(self) -> int:
        file = os.eventfd(0, os.EFD_NONBLOCK)
        self.files.append(file)
        return file

    def close(self) -> None:
        """Leave without a word, as a process that is killed does."""
        self.socket.close()
        for file in self.files:
            os.close(file)
        self.files = []

    def _send(self, request: int, payload: bytes, flags: int, files: Sequence[int] = ()) -> None:
        header = struct.pack("<III", request, VERSION | flags, len(payload))
        socket.send_fds(self.socket, [header + payload], list(files))

    def _reply(self) -> bytes:
        _, _, length = struct.unpack("<III", self.socket.recv(12, socket.MSG_WAITALL))
        return self.socket.recv(length, socket.MSG_WAITALL)

    def ask(self, request: int) -> int:
        """Return a number of the switch."""
        self._send(request, b"", 0)
        return int.from_bytes(self._reply(), "little")

    def tell(self, request: int, payload: bytes, files: Sequence[int] = ()) -> bool:
        """Send a message; return whether it was accepted."""
        self._send(request, payload, NEED_REPLY, files)
        return not any(self._reply())

    def refused(self, request: int, payload: bytes, files: Sequence[int] = ()) -> bool:
        """Send a message; return whether the answer is a refusal, and not what was asked for."""
        self._send(request, payload, NEED_REPLY, files)
        return self._reply() == struct.pack("<Q", 1)

    def state(self, request: int, ring: int, value: int) -> bool:
        """Set a number of a ring."""
        return self.tell(request, struct.pack("<II", ring, value))

    def share(self, files: Sequence[int] | None = None, *, turned: bool = False) -> bool:
        """Share the guest's memory; a table with its regions turned around is another one."""
        regions = [(BASE, self.files[0]), (SECOND, self.files[1])][:: -1 if turned else 1]
        table = struct.pack("<II", 2, 0)
        for at, _ in regions:
            table += struct.pack("<QQQQ", at, REGION, at, 0)
        return self.tell(SET_MEM_TABLE, table, files or [file for _, file in regions])

    def ring(self, number: int) -> Ring:
        """Return a ring by its number."""
        return self.receive if number == RECEIVE else self.transmit

    def begin(self, number: int, base: int) -> None:
        """Start a ring; the switch reads on from `base`."""
        ring = self.ring(number)
        assert self.state(SET_VRING_NUM, number, ring.size)
        assert self.state(SET_VRING_BASE, number, base)
        self.locate(number)
        assert self.tell(SET_VRING_KICK, struct.pack("<Q", number), [self.kicks[number]])
        self.call_by(number, self.calls[number])
        assert self.state(SET_VRING_ENABLE, number, 1)

    def call_by(self, number: int, file: int) -> None:
        """Be notified of a ring by another file."""
        assert self.tell(SET_VRING_CALL, struct.pack("<Q", number), [file])

    def log_to(self, size: int) -> mmap.mmap:
        """Share a log of written pages of so many bytes."""
        file = os.memfd_create("log")
        os.ftruncate(file, size)
        self.files.append(file)
        self._send(SET_LOG_BASE, struct.pack("<QQ", size, 0), 0, [file])
        assert not self._reply()
        return mmap.mmap(file, size)

    def set_logging(self, *, on: bool) -> None:
        """Have written pages logged, or not, as QEMU does: it says again where the rings are."""
        features = self.chosen | (1 << LOG_ALL if on else 0)
        assert self.tell(SET_FEATURES, struct.pack("<Q", features))
        for number in (RECEIVE, TRANSMIT):
            self.locate(number, logged=on)

    def locate(self, number: int, *, logged: bool = False) -> None:
        """Say where a ring is."""
        ring = self.ring(number)
        used = BASE + ring.used
        places = (BASE + ring.descriptors, used, BASE + ring.avail, used if logged else 0)
        assert self.tell(SET_VRING_ADDR, struct.pack("<IIQQQQ", number, logged, *places))

    def stop(self, number: int) -> int:
        """Stop a ring; return where it stands."""
        self._send(GET_VRING_BASE, struct.pack("<II", number, 0), 0)
        return int(struct.unpack("<II", self._reply())[1])

    def kick(self) -> None:
        """Notify the switch of both rings."""
        for file in self.kicks:
            os.eventfd_write(file, 1)

    def wait_for_call(self, number: int) -> None:
        """Wait until the switch notifies of a ring."""

        def called() -> bool:
            try:
                return os.eventfd_read(self.calls[number]) > 0
            except BlockingIOError:
                return False

        eventually(called)

    def frames(self, count: int) -> list[bytes]:
        """Wait for so many frames and return them."""
        got: list[bytes] = []

        def arrived() -> bool:
            got.extend(data for _, data in self.received())
            return len(got) >= count

        eventually(arrived, state=lambda: len(got))
        return got


def accepted(path: str, *, event_index: bool = False) -> FrontEnd:
    """Return a front end; until the switch has seen the end of the one before, it refuses."""
    refused: list[OSError | struct.error] = []

    def tried() -> FrontEnd | None:
        try:
            return FrontEnd(path, event_index=event_index)
        except (OSError, struct.error) as error:
            refused.append(error)
            return None

    return eventually(tried, state=lambda: refused[-1])


@contextmanager
def connections(switch: RunningSwitch) -> Iterator[Callable[..., FrontEnd]]:
    """Yield what connects a front end to a port by name, and waits until it is attached."""
    with ExitStack() as stack:

        def connected(
            name: str, *, inflight: bool = False, of: type[FrontEnd] = FrontEnd
        ) -> FrontEnd:
            made = of(switch.socket(name), inflight=inflight)
            stack.callback(made.close)
            eventually(lambda: switch.port(name).attached)
            return made

        yield connected
