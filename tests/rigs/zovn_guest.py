"""A guest's driver of two split virtqueues, which also does what no driver should."""

import ctypes
import mmap
import struct
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Final

from zovn.native.library import (
    NOTIFY,
    RawMemory,
    RawOffload,
    RawRegion,
    RawRing,
    RawRingPair,
    RawRingSettings,
)
from zovn.native.switch import library

NEXT, WRITE, INDIRECT = 1, 2, 4
BASE: Final = 0x4000_0000
"""The guest's address of its memory, which is two regions with a gap between them."""
REGION: Final = 1 << 20
SECOND: Final = BASE + REGION + (1 << 16)
BUFFERS: Final = 0x40000
"""Offset of the buffers in the first region; rings and tables are below."""
PIECE: Final = 4096


class Ring:
    """A split virtqueue in the guest's memory, from the driver's side."""

    def __init__(self, memory: mmap.mmap, at: int, size: int) -> None:
        self.memory, self.size = memory, size
        self.descriptors, self.avail, self.used = at, at + 16 * size, at + 32 * size
        self.avail_index = self.seen = 0
        self.free: deque[int] = deque(range(size))

    def word(self, at: int) -> ctypes.c_uint16:
        """Return a word that is read and written as one; `struct` clears it before it writes."""
        return ctypes.c_uint16.from_buffer(self.memory, at)

    def describe(self, index: int, address: int, length: int, flags: int, following: int) -> None:
        """Write a descriptor."""
        at = self.descriptors + 16 * index
        struct.pack_into("<QIHH", self.memory, at, address, length, flags, following)

    def offer(self, head: int, *, jump: int = 1) -> None:
        """Make a head available."""
        at = self.avail + 4 + 2 * (self.avail_index % self.size)
        self.word(at).value = head
        self.avail_index = (self.avail_index + jump) % 65536
        self.word(self.avail + 2).value = self.avail_index

    def chain(self, segments: Sequence[tuple[int, int]], flags: int = 0) -> int:
        """Describe address and length of each segment in free descriptors; return the head."""
        indices = [self.free.popleft() for _ in segments]
        for (address, length), index, after in zip(
            segments, indices, [*indices[1:], None], strict=True
        ):
            following = flags | (0 if after is None else NEXT)
            self.describe(index, address, length, following, after or 0)
        return indices[0]

    def returned(self) -> list[tuple[int, int]]:
        """Return id and length of each chain that is newly used; its descriptors are free again."""
        index, got = self.used_index(), []
        while self.seen != index:
            at = self.used + 4 + 8 * (self.seen % self.size)
            got.append(struct.unpack_from("<II", self.memory, at))
            self.seen = (self.seen + 1) % 65536
        return got

    def used_index(self) -> int:
        """Return how many chains came back so far, modulo 65536."""
        return self.word(self.used + 2).value

    def release(self, head: int) -> None:
        """Free the descriptors of a chain."""
        while True:
            flags, following = struct.unpack_from(
                "<HH", self.memory, self.descriptors + 16 * head + 12
            )
            self.free.append(head)
            if not flags & NEXT:
                return
            head = following

    def used_event(self, value: int) -> None:
        """Ask for a notification when the device passes this index (2.7.7)."""
        struct.pack_into("<H", self.memory, self.avail + 4 + 2 * self.size, value)

    def avail_event(self) -> int:
        """Return when the device asks for a notification (2.7.10)."""
        return int(struct.unpack_from("<H", self.memory, self.used + 4 + 8 * self.size)[0])

    def raw(self, base: int, memory: RawMemory, **features: bool) -> RawRing:
        """Return the ring as the switch gets it."""
        return RawRing(
            descriptors=base + self.descriptors,
            avail=base + self.avail,
            used=base + self.used,
            memory=ctypes.pointer(memory),
            size=self.size,
            next_avail=self.used_index(),
            next_used=self.used_index(),
            published=self.used_index(),
            **features,
        )


class Guest:
    """A guest with memory, rings and a port; `handle` is for the switch, which frees the port."""

    def __init__(
        self,
        size: int = 16,
        *,
        mergeable: bool = True,
        version_1: bool = True,
        event_index: bool = False,
        indirect: bool = True,
        offloads: int = 0,
        recorded: bool = False,
        heads: int = 0,
    ) -> None:
        self.memory, self.second = self.new_memory(), self.new_memory()
        self.header = 12 if mergeable or version_1 else 10
        self.transmit = Ring(self.memory, 0x1000, size)
        self.receive = Ring(self.memory, 0x10000, size)
        self.table = 0x20000
        self.heads = heads
        self.notified: list[bool] = []
        self.raw_memory = RawMemory(count=2)
        self.bases = [self._base(each) for each in (self.memory, self.second)]
        for index, (address, base) in enumerate(zip((BASE, SECOND), self.bases, strict=True)):
            self.raw_memory.regions[index] = RawRegion(address, REGION, base)
        self.features = {"event_index": event_index, "indirect": indirect}
        self.mergeable, self.version_1, self.offloads = mergeable, version_1, offloads
        self.record = (ctypes.c_uint8 * (16 * (size + 1)))() if recorded else None
        self._notify = NOTIFY(lambda _, _pair, receive: self.notified.append(receive))
        self.handle = self.port()
        self.posted: dict[int, list[tuple[int, int]]] = {}

    def new_memory(self) -> mmap.mmap:
        """Return the memory of a region."""
        return mmap.mmap(-1, REGION)

    def rings(self) -> RawRingPair:
        """Return the rings as the switch gets them."""
        transmit, receive = (
            ring.raw(self.bases[0], self.raw_memory, **self.features)
            for ring in (self.transmit, self.receive)
        )
        if self.record is not None:
            transmit.inflight = ctypes.addressof(self.record)
        return RawRingPair(transmit, receive)

    def port(self) -> int | None:
        """Return the handle of a new port with these rings; None if they are refused."""
        rings = self.rings()
        settings = RawRingSettings(
            transmit=rings.transmit,
            receive=rings.receive,
            mergeable=self.mergeable,
            version_1=self.version_1,
            sends=self.offloads,
            takes=self.offloads,
            notify=self._notify,
            heads=self.heads,
        )
        made: int | None = library().zovn_ring_port_new(ctypes.byref(settings))
        return made

    @staticmethod
    def _base(memory: mmap.mmap) -> int:
        return ctypes.addressof(ctypes.c_char.from_buffer(memory))

    def write(self, address: int, data: bytes) -> None:
        """Write to the guest's memory."""
        memory, at = (self.second, SECOND) if address >= SECOND else (self.memory, BASE)
        memory[address - at : address - at + len(data)] = data

    def read(self, address: int, length: int) -> bytes:
        """Read the guest's memory."""
        memory, at = (self.second, SECOND) if address >= SECOND else (self.memory, BASE)
        return memory[address - at : address - at + length]

    def place(self, which: int) -> int:
        """Return the address of a buffer of its own for a descriptor of the transmit ring."""
        return BASE + BUFFERS + which % 16 * 2 * PIECE

    def send(
        self,
        frame: bytes,
        pieces: Iterable[int] = (),
        *,
        indirect: bool = False,
        offload: RawOffload | None = None,
    ) -> bool:
        """Send a frame, its header and bytes cut into segments of these lengths and a last one."""
        data = bytes(offload or RawOffload()).ljust(self.header, b"\0") + frame
        pieces = list(pieces)
        needed = 1 if indirect else len(pieces) + 1
        if len(self.transmit.free) < needed:
            return False
        address = self.place(self.transmit.free[0])
        self.write(address, data)
        segments, at = [], 0
        for length in [*pieces, len(data) - sum(pieces)]:
            segments.append((address + at, length))
            at += length
        if indirect:
            self.transmit.offer(self.in_table(segments, self.transmit.free[0]))
        else:
            self.transmit.offer(self.transmit.chain(segments))
        return True

    def in_table(self, segments: Sequence[tuple[int, int]], which: int, flags: int = 0) -> int:
        """Describe segments in an indirect table; return the head that names it."""
        at = self.table + 1024 * which
        for index, (address, length) in enumerate(segments):
            more = NEXT if index + 1 < len(segments) else 0
            values = (address, length, flags | more, index + 1)
            struct.pack_into("<QIHH", self.memory, at + 16 * index, *values)
        head = self.transmit.free.popleft()
        self.transmit.describe(head, BASE + at, 16 * len(segments), INDIRECT, 0)
        return head

    def completed(self) -> list[int]:
        """Return the heads of frames that came back, and free them."""
        heads = [head for head, _ in self.transmit.returned()]
        for head in heads:
            self.transmit.release(head)
        return heads

    def post(self, lengths: Sequence[int]) -> int:
        """Post a receive buffer of segments of these lengths; return its head."""
        first = self.receive.free[0]
        address, segments = SECOND + first * 2 * PIECE, []
        for length in lengths:
            segments.append((address, length))
            address += length
        head = self.receive.chain(segments, WRITE)
        self.posted[head] = segments
        self.receive.offer(head)
        return head

    def received(self) -> list[tuple[bytes, bytes]]:
        """Return header and bytes of each frame that arrived; its buffers are free again."""
        got, buffers = [], self.receive.returned()
        while buffers:
            count, data = 1, b""
            while count and buffers:
                head, length = buffers.pop(0)
                whole = b"".join(self.read(*segment) for segment in self.posted.pop(head))
                first = not data
                data += whole[:length]
                if first and self.header == 12 and length >= 12:
                    count = int.from_bytes(data[10:12], "little")
                count -= 1
                self.receive.release(head)
            got.append((data[: self.header], data[self.header :]))
        return got
