"""The star's C code without sockets, in a time of its own, and hosts that obey its pauses."""

import ctypes
import heapq
import struct
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, Final

from lab.traffic import build
from lab.traffic.star import CLASSES, Buffers

NS: Final = 1_000_000_000
NEVER: Final = (1 << 64) - 1
TO_THE_NEIGHBOUR: Final = bytes.fromhex("0180c2000001")
SANITIZED: Final = ("-g", "-fsanitize=undefined", "-fno-sanitize-recover=all")
_NAMES: Final = ("packets_in", "bytes_in", "packets", "bytes", "unknown", "floods", "copies")
_ARRAYS: Final = ("dropped", "overflowed", "most_bytes", "xoff_sent", "xon_sent")
_HEARD: Final = ("xoff_received", "xon_received", "paused_ns")


class Settings(ctypes.Structure):
    _fields_ = [
        (name, ctypes.c_uint64)
        for name in ("ports", "frames", "lossless", "bytes", "xoff", "xon", "quanta")
    ]


class Counts(ctypes.Structure):
    _fields_ = [
        *((name, ctypes.c_uint64) for name in (*_NAMES, "missed", "refused", "latest_ns")),
        *((name, ctypes.c_uint64 * CLASSES) for name in (*_ARRAYS, *_HEARD)),
    ]


class Pfc(ctypes.Structure):
    _fields_ = [("vector", ctypes.c_uint), ("quanta", ctypes.c_uint16 * CLASSES)]


@cache
def library() -> Any:
    """Return the traffic program as a library that ends where behaviour is undefined."""
    path = Path(mkdtemp(prefix="star-rig-")) / "traffic.so"
    build.compile_to(path, "-Werror", "-shared", "-fPIC", *SANITIZED)
    made = ctypes.CDLL(str(path))
    path.unlink()
    path.parent.rmdir()
    made.star_new.restype = ctypes.c_void_p
    made.star_counts.restype = ctypes.POINTER(Counts)
    made.star_departure.restype = ctypes.c_void_p
    for name in ("star_due_ns", "star_held_bytes", "pfc_ns"):
        getattr(made, name).restype = ctypes.c_uint64
    made.pfc_read.restype = ctypes.c_bool
    made.star_enter.restype = ctypes.c_bool
    return made


def address(port: int) -> bytes:
    """Return the address of the host at a port."""
    return bytes([2, 0, 0, 0, 0, port])


def frame(to: int, of: int, number: int, priority: int = 0, length: int = 1000) -> bytes:
    """Return a frame with a VLAN tag and a number."""
    tag = struct.pack("!HHH", 0x8100, priority << 13 | 1, 0x88B5)
    return (address(to) + address(of) + tag + struct.pack("!I", number)).ljust(length, b"\0")


def pfc_frame(quanta: Iterable[int], vector: int) -> bytes:
    """Return a PFC frame, from the standard's own words."""
    words = struct.pack("!9H", vector, *quanta)
    head = TO_THE_NEIGHBOUR + address(0xFF) + bytes.fromhex("88080101")
    return (head + words).ljust(60, b"\0")


def paused(data: bytes) -> dict[int, int] | None:
    """Return quanta by class of a PFC frame; None for another frame."""
    if data[12:16] != bytes.fromhex("88080101"):
        return None
    vector, *quanta = struct.unpack_from("!9H", data, 16)
    return {each: quanta[each] for each in range(CLASSES) if vector >> each & 1}


class Star:
    """A star with equal lines."""

    def __init__(
        self,
        rates: Iterable[int],
        buffers: Buffers,
        *,
        delay_ns: int = 0,
        frames: int = 4096,
    ) -> None:
        self.rates = list(rates)
        settings = Settings(
            len(self.rates),
            frames,
            sum(1 << each for each in buffers.lossless),
            buffers.bytes,
            buffers.xoff_bytes,
            buffers.xon_bytes,
            buffers.quanta,
        )
        self._library = library()
        self._star = ctypes.c_void_p(self._library.star_new(ctypes.byref(settings)))
        self.delay_ns = delay_ns
        for port, rate in enumerate(self.rates):
            line = (ctypes.c_uint64(rate), ctypes.c_uint64(delay_ns), address(0xF0 + port))
            self._library.star_line(self._star, ctypes.c_size_t(port), *line)
            assert self._library.star_enter(self._star, address(port), ctypes.c_size_t(port))

    def __del__(self) -> None:
        self._library.star_free(self._star)

    def arrive(self, port: int, data: bytes, now_ns: int) -> None:
        length = ctypes.c_size_t(len(data))
        where = ctypes.c_size_t(port)
        self._library.star_arrive(self._star, where, data, length, ctypes.c_uint64(now_ns))

    def run(self, now_ns: int) -> list[tuple[int, bytes]]:
        """Do what is due; return what comes out, with its port."""
        self._library.star_run(self._star, ctypes.c_uint64(now_ns))
        return [(port, data) for port in range(len(self.rates)) for data in self._out(port, now_ns)]

    def _out(self, port: int, now_ns: int) -> Iterable[bytes]:
        length, now = ctypes.c_size_t(), ctypes.c_uint64(now_ns)
        where = ctypes.c_size_t(port)
        ask = (self._star, where, now, ctypes.byref(length))
        while data := self._library.star_departure(*ask):
            yield ctypes.string_at(data, length.value)
            self._library.star_sent(self._star, where, ctypes.c_bool(True), now)

    def due_ns(self) -> int:
        found: int = self._library.star_due_ns(self._star)
        return found

    def held_bytes(self, port: int) -> int:
        found: int = self._library.star_held_bytes(self._star, ctypes.c_size_t(port))
        return found

    def counts(self, port: int) -> Counts:
        found: Counts = self._library.star_counts(self._star, ctypes.c_size_t(port)).contents
        return found

    def total(self, name: str) -> int:
        """Return a counter of all ports, and of all classes if it has them."""
        found = [getattr(self.counts(port), name) for port in range(len(self.rates))]
        return sum(each if isinstance(each, int) else sum(each) for each in found)


@dataclass
class Host:
    """Sends its frames back to back at its line's rate, and obeys pauses."""

    port: int
    rate: int
    frames: list[bytes]
    obeys: bool = True
    reaction_ns: int = 0
    free_ns: int = 0
    until_ns: dict[int, int] = field(default_factory=lambda: defaultdict(int))

    def begins_ns(self) -> int:
        """Return when it begins its next frame; the end of time if it has none."""
        if not self.frames:
            return NEVER
        return max(self.free_ns, self.until_ns[self.frames[0][14] >> 5])

    def begin(self, now_ns: int) -> tuple[int, int, bytes]:
        """Begin it; return when it has left, the port, and the frame."""
        data = self.frames.pop(0)
        self.free_ns = now_ns + len(data) * 8 * NS // self.rate
        return self.free_ns, self.port, data

    def hear(self, data: bytes, now_ns: int) -> None:
        heard = paused(data)
        for each, quanta in (heard or {}).items() if self.obeys else ():
            lasts = quanta * 512 * NS // self.rate
            self.until_ns[each] = now_ns + self.reaction_ns + lasts


def play(star: Star, hosts: Iterable[Host], until_ns: int = 1 << 62) -> list[tuple[int, bytes]]:
    """Let hosts send until all is delivered or the time is over; return the data frames in order.

    A host that hears a pause stops behind the frame that it has begun.
    """
    by_port = {host.port: host for host in hosts}
    ended: list[tuple[int, int, bytes]] = []
    delivered: list[tuple[int, bytes]] = []
    while (now := _next_ns(star, by_port.values(), ended)) <= until_ns:
        while ended and ended[0][0] <= now:
            at, port, data = heapq.heappop(ended)
            star.arrive(port, data, at)
        for port, data in star.run(now):
            if paused(data) is None:
                delivered.append((port, data))
            elif port in by_port:
                by_port[port].hear(data, now)
        for host in by_port.values():
            if host.begins_ns() <= now:
                heapq.heappush(ended, host.begin(now))
    return delivered


def _next_ns(star: Star, hosts: Iterable[Host], ended: list[tuple[int, int, bytes]]) -> int:
    """Return when something happens next."""
    begins = [host.begins_ns() for host in hosts]
    return min([star.due_ns(), *begins, *(at for at, _, _ in ended[:1])])
