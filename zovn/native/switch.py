"""The compiled switch as an object, with ports in memory that Python sends to and receives from."""

import ctypes
import weakref
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from zovn import core_files
from zovn.errors import CoreError, SettingsError
from zovn.native.library import (
    CLASSES,
    FAULTS,
    MOST_BYTES,
    REASONS,
    RawCounters,
    RawKnown,
    RawOffload,
    RawPortSettings,
    RawSettings,
    loaded,
)

TRUST: Final = ("nothing", "priority", "dscp")


@dataclass(frozen=True)
class Class:
    """One of eight; lossless without a limit, strict without a weight."""

    weight: int = 1
    limit_bytes: int = 0
    mark_bytes: int = 0


@dataclass(frozen=True)
class Settings:
    """What holds for the whole switch; see zovn/core/switch/settings.h."""

    classes: Sequence[Class] = (Class(),) * CLASSES
    class_of_priority: Mapping[int, int] = field(default_factory=dict)
    class_of_dscp: Mapping[int, int] = field(default_factory=dict)
    stall_s: float = 1.0
    age_s: float = 300.0
    addresses: int = 64
    parked: int = 16
    seed: int = 0
    threads: int = 1


@dataclass(frozen=True)
class PortSettings:
    """What holds for a port. A trunk carries `tagged` VLANs."""

    vlan: int = 1
    tagged: Iterable[int] | None = None
    trust: str = "nothing"
    klass: int = 0
    rate_bps: int = 0


@dataclass(frozen=True)
class Offload:
    """What a sender leaves to others."""

    flags: int = 0
    kind: int = 0
    header_bytes: int = 0
    segment_bytes: int = 0
    checksum_start: int = 0
    checksum_offset: int = 0


@dataclass(frozen=True)
class Counters:
    """What a port counts; see zovn/core/switch/counters.h. `into` is its `in`."""

    into: int
    in_bytes: int
    copies: int
    delivered: int
    held: int
    parked: int
    drops: Mapping[str, int]
    """By reason; those that are not 0."""
    out: int
    out_bytes: int
    marked: int
    finished: int
    waiting: int
    waiting_bytes: int
    blocked_ns: int
    longest_ns: int
    stalls: int
    moves: int
    not_learned: int
    beyond: int
    unsound: int
    overruns: int
    pauses_sent: int
    pauses: int
    paused_ns: int

    @property
    def balanced(self) -> bool:
        """Whether each frame is counted as what became of it."""
        ended = self.delivered + self.held + self.parked + sum(self.drops.values())
        return self.into + self.copies == ended


def library() -> ctypes.CDLL:
    """Return the compiled switch.

    Raises:
        CoreError: it is not built, or not the expected version.
    """
    return loaded(str(core_files.library()))


class MemoryPort:
    """A port in this process, seen by its peer. The switch frees it."""

    def __init__(self, sent: int = 16, received: int = 16) -> None:
        self.library, self.sent = library(), sent
        self.handle = self.library.zovn_memory_port_new(sent, received)
        self._room = ctypes.create_string_buffer(MOST_BYTES)
        if not self.handle:
            raise CoreError("port", "no memory for it")

    def offer(self, sends: int, takes: int) -> None:
        """Say which offloads the peer leaves to others, and which it accepts."""
        self.library.zovn_memory_port_offloads(self.handle, sends, takes)

    def cost(self) -> None:
        """Be a port of which each frame that it gets is a system call."""
        self.library.zovn_memory_port_costly(self.handle)

    def send(self, frame: bytes, offload: Offload | None = None) -> bool:
        """Send a frame, if there is room."""
        raw = RawOffload(*vars(offload).values()) if offload else None
        return bool(self.library.zovn_memory_port_send(self.handle, frame, len(frame), raw))

    def receive(self) -> bytes | None:
        """Return a frame, if there is one."""
        length = self.library.zovn_memory_port_receive(self.handle, self._room, None)
        return self._room.raw[:length] if length else None

    def receive_with_offload(self) -> tuple[bytes, Offload] | None:
        """Return a frame with what its sender left, if there is one."""
        raw = RawOffload()
        length = self.library.zovn_memory_port_receive(self.handle, self._room, raw)
        values = (getattr(raw, name) for name, *_ in RawOffload._fields_)
        return (self._room.raw[:length], Offload(*values)) if length else None

    def receive_all(self) -> list[bytes]:
        """Return all frames that are there."""
        return list(iter(self.receive, None))

    def shut(self, classes: Iterable[int] = ()) -> None:
        """Take no frames of these classes from now on; each class is then open by itself."""
        self.library.zovn_memory_port_shut(self.handle, sum(1 << one for one in set(classes)))

    @property
    def free_heads(self) -> int:
        """How many frames may be sent now."""
        return int(self.library.zovn_memory_port_free_heads(self.handle))

    @property
    def notifications(self) -> int:
        """How many times the peer was notified."""
        return int(self.library.zovn_memory_port_notifications(self.handle))


class Switch:
    """The compiled switch. It is freed with the object."""

    def __init__(self, settings: Settings | None = None) -> None:
        self.library = library()
        problem = ctypes.c_char_p()
        raw = _raw_settings(settings or Settings())
        self.handle = self.library.zovn_switch_new(raw, ctypes.byref(problem))
        if not self.handle:
            raise SettingsError((problem.value or b"").decode())
        self.now_ns = 0
        weakref.finalize(self, self.library.zovn_switch_free, self.handle)

    def add(self, port: int, settings: PortSettings | None = None) -> int:
        """Add a port by its handle; return its number.

        Raises:
            SettingsError: a setting cannot be used, or there are too many ports.
        """
        problem = ctypes.c_char_p()
        raw = _raw_port(settings or PortSettings())
        number = self.library.zovn_switch_add(self.handle, port, raw, ctypes.byref(problem))
        if number < 0:
            raise SettingsError((problem.value or b"").decode())
        return int(number)

    def drain(self, number: int) -> bool:
        """Take no new frames from a port; return whether none that was taken is left."""
        return bool(self.library.zovn_switch_drain(self.handle, number))

    def remove(self, number: int) -> Counters:
        """Remove a port; return its last counters."""
        raw = RawCounters()
        self.library.zovn_switch_remove(self.handle, number, raw)
        return _counters(raw)

    def step(self, after_s: float = 0.0) -> int:
        """Let time pass, then take, serve and publish once; return how many frames moved."""
        self.now_ns += round(after_s * 1e9)
        return int(self.library.zovn_switch_step(self.handle, self.now_ns))

    def settle(self) -> None:
        """Step until nothing moves."""
        while self.step():
            pass

    def step_part(self, part: int, after_s: float = 0.0) -> tuple[int, int]:
        """Let time pass, then step one part; return how many moved, and parts shown something."""
        self.now_ns += round(after_s * 1e9)
        shown = ctypes.c_uint32()
        moved = self.library.zovn_switch_step_part(self.handle, part, self.now_ns, shown)
        return int(moved), shown.value

    @property
    def wants_alone(self) -> bool:
        """Whether something waits for `settle_parts`."""
        return bool(self.library.zovn_switch_wants_alone(self.handle))

    def settle_parts(self) -> None:
        """End what is on its way between parts, and do what touches several."""
        self.library.zovn_switch_settle(self.handle)

    def part(self, number: int) -> int:
        """Return which part has a port."""
        return int(self.library.zovn_switch_part(self.handle, number))

    def due_s(self) -> float | None:
        """Return in how many seconds a frame that waits for its port's rate may go, if one does."""
        due_ns = int(self.library.zovn_switch_due(self.handle, 0))
        return None if due_ns == 2**64 - 1 else (due_ns - self.now_ns) / 1e9

    def fix(self, number: int, vlan: int, address: bytes) -> bool:
        """Make an address static, if the port has room and no other has it as a static one."""
        return bool(self.library.zovn_switch_fix(self.handle, number, vlan, address))

    def announce(self, number: int, address: bytes) -> bool:
        """Learn that an address is behind a port, and tell the others, if that can be done now."""
        return bool(self.library.zovn_switch_announce(self.handle, number, address))

    def find(self, vlan: int, address: bytes) -> int | None:
        """Return the port behind which an address is known."""
        found = int(self.library.zovn_switch_find(self.handle, vlan, address))
        return None if found < 0 else found

    def known(self, room: int = 64) -> dict[tuple[int, bytes], tuple[int, bool]]:
        """Return port of each address by its VLAN, and whether it is static, `room` at a time."""
        place, page = ctypes.c_uint32(), (RawKnown * room)()
        found: dict[tuple[int, bytes], tuple[int, bool]] = {}
        while True:
            count = self.library.zovn_switch_known(self.handle, place, page, room)
            for one in page[:count]:
                found[one.vlan, bytes(one.address)] = one.port, one.fixed
            if not place.value:
                return found

    def counters(self, number: int) -> Counters:
        """Return what a port has counted."""
        raw = RawCounters()
        if not self.library.zovn_switch_counters(self.handle, number, raw):
            raise KeyError(number)
        return _counters(raw)

    def fault(self, number: int) -> str:
        """Return why a port was stopped, or "sound"."""
        return FAULTS[self.library.zovn_switch_fault(self.handle, number)]

    def stalled(self, number: int) -> bool:
        """Return whether a port is treated as lossy now, since it takes nothing."""
        return bool(self.library.zovn_switch_stalled(self.handle, number))

    def check(self) -> str | None:
        """Return what does not hold of the laws of zovn/core/switch/switch.h."""
        said = self.library.zovn_switch_check(self.handle)
        return said.decode() if said else None


def _raw_settings(settings: Settings) -> RawSettings:
    raw = RawSettings()
    for index, one in enumerate(settings.classes):
        raw.classes[index].weight = one.weight
        raw.classes[index].limit_bytes = one.limit_bytes
        raw.classes[index].mark_bytes = one.mark_bytes
    for priority, klass in settings.class_of_priority.items():
        raw.class_of_priority[priority] = klass
    for dscp, klass in settings.class_of_dscp.items():
        raw.class_of_dscp[dscp] = klass
    raw.stall_ns, raw.age_ns = round(settings.stall_s * 1e9), round(settings.age_s * 1e9)
    raw.addresses, raw.parked, raw.seed = settings.addresses, settings.parked, settings.seed
    raw.threads = settings.threads
    return raw


def _raw_port(settings: PortSettings) -> RawPortSettings:
    raw = RawPortSettings()
    raw.vlan, raw.trunk = settings.vlan, settings.tagged is not None
    for vlan in settings.tagged or ():
        raw.vlans[vlan // 64] |= 1 << vlan % 64
    raw.trust, raw.klass = TRUST.index(settings.trust), settings.klass
    raw.rate_bps = settings.rate_bps
    return raw


def _counters(raw: RawCounters) -> Counters:
    values = {name: getattr(raw, name) for name, *_ in RawCounters._fields_}
    values["drops"] = {REASONS[i]: count for i, count in enumerate(raw.drops) if count}
    return Counters(**values)
