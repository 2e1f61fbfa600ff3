"""The pure parts of ports between hosts (zovn/core/wire), for tests."""

import ctypes
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from ipaddress import IPv4Address
from pathlib import Path
from typing import ClassVar, Final

from zovn.errors import SettingsError
from zovn.native.switch import library

CLASSES: Final = 8
PFC_BYTES: Final = 60
VXLAN_HEADERS: Final = 54
RESULTS: Final = ("sound", "others", "fragment", "broken", "flags", "foreign", "short")
"""What was found of a frame, in the order of enum zovn_vxlan_result."""

_U8, _U16, _U32, _U64 = ctypes.c_uint8, ctypes.c_uint16, ctypes.c_uint32, ctypes.c_uint64


class RawPfc(ctypes.Structure):
    """struct zovn_pfc."""

    _fields_: ClassVar = [("quanta", _U16 * CLASSES), ("enabled", _U8)]


class RawSender(ctypes.Structure):
    """struct zovn_pfc_sender."""

    _fields_: ClassVar = [
        ("refresh_ns", _U64 * CLASSES),
        ("xoff_bytes", _U64),
        ("xon_bytes", _U64),
        ("rate_bps", _U64),
        ("classes", _U8),
        ("paused", _U8),
    ]


class RawReceiver(ctypes.Structure):
    """struct zovn_pfc_receiver."""

    _fields_: ClassVar = [("until_ns", _U64 * CLASSES), ("rate_bps", _U64)]


class RawHeadroom(ctypes.Structure):
    """struct zovn_headroom."""

    _fields_: ClassVar = [
        (name, _U64) for name in ("rate_bps", "delay_ns", "response_ns", "most_bytes", "ring_bytes")
    ]


class RawWireSettings(ctypes.Structure):
    """struct zovn_wire_settings."""

    _fields_: ClassVar = [
        ("interface", ctypes.c_char_p),
        ("locations", ctypes.c_char_p),
        ("rate_bps", _U64),
        ("delay_ns", _U64),
        ("response_ns", _U64),
        ("ring_bytes", _U64),
        ("buffer_bytes", _U64),
        ("vni", _U32),
        ("local", _U8 * 4),
        ("pfc", _U8),
        ("klass", _U8),
    ]


class RawEndpoint(ctypes.Structure):
    """struct zovn_endpoint."""

    _fields_: ClassVar = [("ethernet", _U8 * 6), ("address", _U8 * 4)]


class RawPath(ctypes.Structure):
    """struct zovn_vxlan_path."""

    _fields_: ClassVar = [
        ("source", RawEndpoint),
        ("to", RawEndpoint),
        ("vni", _U32),
        ("klass", _U8),
        ("tagged", ctypes.c_bool),
    ]


class RawInner(ctypes.Structure):
    """struct zovn_vxlan_inner."""

    _fields_: ClassVar = [("at", _U32), ("length", _U32), ("klass", _U8), ("source", _U8 * 4)]


_P, _BYTES, _BOOL = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_bool
_CALLS: Final[Mapping[str, tuple[object, Sequence[object]]]] = {
    "pfc_write": (None, [_P, _BYTES, _P]),
    "pfc_read": (_BOOL, [_BYTES, _U32, _P]),
    "pfc_quanta_ns": (_U64, [_U16, _U64]),
    "pfc_due": (_BOOL, [_P, _P, _U64, _P]),
    "pfc_sent": (None, [_P, _P, _U64]),
    "pfc_refresh": (_U64, [_P]),
    "pfc_obey": (None, [_P, _P, _U64]),
    "pfc_paused": (_U8, [_P, _U64]),
    "pfc_expiry": (_U64, [_P, _U64]),
    "headroom_bytes": (_U64, [_P]),
    "headroom_least": (_U64, [_P]),
    "headroom_divide": (_BOOL, [_P, _U64, _P, _P]),
    "vxlan_write": (_U32, [_P, _U32, _P]),
    "vxlan_read": (ctypes.c_int, [_BYTES, _U32, _P, _U32, _P]),
    "vxlan_source_port": (_U16, [_BYTES, _U32]),
    "arp_write": (None, [_P, _P, _BYTES]),
    "arp_read": (_BOOL, [_BYTES, _U32, _P]),
    "locations_read": (_P, [_P, _P]),
    "locations_free": (None, [_P]),
    "locations_find": (ctypes.c_int32, [_P, _BYTES]),
    "wire_port_new": (_P, [_P, _BYTES]),
    "wire_port_wake": (ctypes.c_int, [_P]),
    "wire_port_ask": (None, [_P, _BOOL]),
    "wire_port_mtu": (_U32, [_P]),
    "wire_port_limit": (None, [_P, _U32]),
    "wire_port_end": (None, [_P]),
    "wire_port_locate": (_BOOL, [_P, _BYTES, _BYTES]),
}


@cache
def core() -> ctypes.CDLL:
    """Return the library, with the types of these functions declared.

    Raises:
        CoreError: it is not built, or not the expected version.
    """
    loaded = library()
    for name, (result, arguments) in _CALLS.items():
        function = getattr(loaded, f"zovn_{name}")
        function.restype, function.argtypes = result, arguments
    return loaded


def endpoint(ethernet: bytes, address: bytes) -> RawEndpoint:
    """Return one end of a tunnel."""
    return RawEndpoint((_U8 * 6)(*ethernet), (_U8 * 4)(*address))


def pfc_frame(source: bytes, quanta: Mapping[int, int]) -> bytes:
    """Return a PFC frame for classes with their quanta."""
    raw, frame = RawPfc(), ctypes.create_string_buffer(PFC_BYTES)
    for klass, one in quanta.items():
        raw.quanta[klass] = one
        raw.enabled |= 1 << klass
    core().zovn_pfc_write(frame, source, ctypes.byref(raw))
    return frame.raw


def pfc_quanta(frame: bytes) -> dict[int, int] | None:
    """Return the quanta of the classes that a PFC frame names; None if it is no such frame."""
    raw = RawPfc()
    if not core().zovn_pfc_read(frame, len(frame), ctypes.byref(raw)):
        return None
    return {klass: raw.quanta[klass] for klass in range(CLASSES) if raw.enabled >> klass & 1}


def encapsulated(inner: bytes, path: RawPath) -> bytes:
    """Return a frame with the headers of a tunnel before it."""
    room = ctypes.create_string_buffer(b"\0" * VXLAN_HEADERS + inner, VXLAN_HEADERS + len(inner))
    at = ctypes.addressof(room) + VXLAN_HEADERS
    headers = int(core().zovn_vxlan_write(at, len(inner), ctypes.byref(path)))
    return room.raw[VXLAN_HEADERS - headers :]


def decapsulated(frame: bytes, own: RawEndpoint, vni: int) -> tuple[str, bytes, int]:
    """Return what was found, the frame inside, and the class of the outer tag (255: none)."""
    inner = RawInner()
    found = core().zovn_vxlan_read(frame, len(frame), ctypes.byref(own), vni, ctypes.byref(inner))
    return RESULTS[found], frame[inner.at : inner.at + inner.length], inner.klass


class Locations:
    """At which host a station is, by the text of a map."""

    def __init__(self, text: str) -> None:
        """Read the text.

        Raises:
            ValueError: with the line, and what is wrong there.
        """
        problem = ctypes.create_string_buffer(128)
        room = ctypes.create_string_buffer(text.encode())
        self._handle = core().zovn_locations_read(room, problem)
        if not self._handle:
            raise ValueError(problem.value.decode())

    def find(self, station: bytes) -> int | None:
        """Return the number of a station's host."""
        found = int(core().zovn_locations_find(self._handle, station))
        return None if found < 0 else found

    def __del__(self) -> None:
        if getattr(self, "_handle", None):
            core().zovn_locations_free(self._handle)


@dataclass(frozen=True)
class WireSettings:
    """What an operator chooses for a wire; see zovn/core/wire/wire_port.h."""

    interface: str
    local: str
    locations: Path
    vni: int = 42
    rate_bps: int = 10**9
    delay_s: float = 0.0
    response_s: float = 0.0
    ring_bytes: int = 0
    buffer_bytes: int = 344_064
    pfc: Iterable[int] = range(CLASSES)
    klass: int = 0

    def raw(self) -> RawWireSettings:
        """Return them as the library reads them."""
        return RawWireSettings(
            self.interface.encode(),
            str(self.locations).encode(),
            self.rate_bps,
            round(self.delay_s * 1e9),
            round(self.response_s * 1e9),
            self.ring_bytes,
            self.buffer_bytes,
            self.vni,
            (_U8 * 4)(*IPv4Address(self.local).packed),
            sum(1 << one for one in set(self.pfc)),
            self.klass,
        )


class WirePort:
    """A wire in this process. The switch that it is added to frees it."""

    def __init__(self, settings: WireSettings) -> None:
        """Open it in the calling thread's network namespace.

        Raises:
            SettingsError: the settings, the interface or the map cannot be used.
        """
        problem = ctypes.create_string_buffer(256)
        self.handle = core().zovn_wire_port_new(ctypes.byref(settings.raw()), problem)
        if not self.handle:
            raise SettingsError(problem.value.decode())

    @property
    def wake(self) -> int:
        """A file that is readable when something came or is due."""
        return int(core().zovn_wire_port_wake(self.handle))

    def ask(self, *, notify: bool) -> None:
        """Keep that file's clock up to date, or do not."""
        core().zovn_wire_port_ask(self.handle, notify)

    @property
    def mtu(self) -> int:
        """The MTU that the interface has now; 0: it is not known."""
        return int(core().zovn_wire_port_mtu(self.handle))

    def limit(self, mtu: int) -> None:
        """Refuse frames that are too long for an MTU from now on."""
        core().zovn_wire_port_limit(self.handle, mtu)

    def end(self) -> None:
        """Count what waits to be sent as lost from now on: the port is about to be removed."""
        core().zovn_wire_port_end(self.handle)

    def locate(self, path: Path) -> None:
        """Read the map again.

        Raises:
            SettingsError: it cannot be used; the old one stays.
        """
        problem = ctypes.create_string_buffer(128)
        if not core().zovn_wire_port_locate(self.handle, str(path).encode(), problem):
            raise SettingsError(problem.value.decode())
