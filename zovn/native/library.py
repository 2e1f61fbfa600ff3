"""The functions and structures of the compiled switch (zovn/core), for ctypes."""

import ctypes
from collections.abc import Mapping, Sequence
from functools import cache
from typing import ClassVar, Final

from zovn.core_files import FIX
from zovn.errors import CoreError

CLASSES: Final = 8
MOST_PORTS: Final = 72
MOST_BYTES: Final = 65535 + 18
MOST_REGIONS: Final = 64
REASONS: Final = (
    *("congestion", "stalled", "malformed", "too_long", "no_destination", "reserved", "vlan"),
    *("offload", "stopped", "removed", "no_location", "refused"),
)
"""Why frames are dropped, in the order of enum zovn_reason."""
FAULTS: Final = ("sound", "avail_jump", "head_range", "head_twice", "peer_gone", "memory_gone")
"""Why a port is stopped, in the order of enum zovn_fault."""

_U8, _U16, _U32, _U64 = ctypes.c_uint8, ctypes.c_uint16, ctypes.c_uint32, ctypes.c_uint64


class RawClass(ctypes.Structure):
    """struct zovn_class_settings."""

    _fields_: ClassVar = [("limit_bytes", _U64), ("mark_bytes", _U64), ("weight", _U32)]


class RawSettings(ctypes.Structure):
    """struct zovn_settings."""

    _fields_: ClassVar = [
        ("classes", RawClass * CLASSES),
        ("class_of_priority", _U8 * 8),
        ("class_of_dscp", _U8 * 64),
        ("stall_ns", _U64),
        ("age_ns", _U64),
        ("seed", _U64),
        ("addresses", _U32),
        ("parked", _U32),
        ("threads", _U32),
    ]


class RawPortSettings(ctypes.Structure):
    """struct zovn_port_settings."""

    _fields_: ClassVar = [
        ("vlans", _U64 * 64),
        ("rate_bps", _U64),
        ("vlan", _U16),
        ("trunk", _U8),
        ("trust", _U8),
        ("klass", _U8),
    ]


class RawCounters(ctypes.Structure):
    """struct zovn_counters."""

    _fields_: ClassVar = [
        *((name, _U64) for name in ("into", "in_bytes", "copies", "delivered", "held", "parked")),
        ("drops", _U64 * len(REASONS)),
        *((name, _U64) for name in ("out", "out_bytes", "marked", "finished")),
        *((name, _U64) for name in ("waiting", "waiting_bytes")),
        *((name, _U64) for name in ("blocked_ns", "longest_ns", "stalls", "moves", "not_learned")),
        *((name, _U64) for name in ("beyond", "unsound", "overruns")),
        *((name, _U64) for name in ("pauses_sent", "pauses", "paused_ns")),
    ]


class RawKnown(ctypes.Structure):
    """struct zovn_known."""

    _fields_: ClassVar = [
        ("address", _U8 * 6),
        ("vlan", _U16),
        ("port", _U8),
        ("fixed", ctypes.c_bool),
    ]


class RawOffload(ctypes.Structure):
    """struct zovn_offload."""

    _fields_: ClassVar = [
        ("flags", _U8),
        ("kind", _U8),
        ("header_bytes", _U16),
        ("segment_bytes", _U16),
        ("checksum_start", _U16),
        ("checksum_offset", _U16),
    ]


class RawRegion(ctypes.Structure):
    """struct zovn_region."""

    _fields_: ClassVar = [("address", _U64), ("bytes", _U64), ("base", ctypes.c_void_p)]


class RawMemory(ctypes.Structure):
    """struct zovn_memory."""

    _fields_: ClassVar = [
        ("count", _U32),
        ("lost", ctypes.c_bool),
        ("log", ctypes.c_void_p),
        ("log_bytes", _U64),
        ("regions", RawRegion * MOST_REGIONS),
    ]


class RawRing(ctypes.Structure):
    """struct zovn_split_ring."""

    _fields_: ClassVar = [
        ("descriptors", ctypes.c_void_p),
        ("avail", ctypes.c_void_p),
        ("used", ctypes.c_void_p),
        ("memory", ctypes.POINTER(RawMemory)),
        ("size", _U32),
        ("event_index", ctypes.c_bool),
        ("indirect", ctypes.c_bool),
        ("next_avail", _U16),
        ("next_used", _U16),
        ("published", _U16),
        ("known", _U16),
        ("fault", ctypes.c_int),
        ("inflight", ctypes.c_void_p),
        ("taken", _U64),
    ]


NOTIFY: Final = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_bool)


class RawRingPair(ctypes.Structure):
    """struct zovn_ring_pair."""

    _fields_: ClassVar = [("transmit", RawRing), ("receive", RawRing)]


class RawRingSettings(ctypes.Structure):
    """struct zovn_ring_settings."""

    _fields_: ClassVar = [
        ("transmit", RawRing),
        ("receive", RawRing),
        ("mergeable", ctypes.c_bool),
        ("version_1", ctypes.c_bool),
        ("sends", _U32),
        ("takes", _U32),
        ("notify", NOTIFY),
        ("context", ctypes.c_void_p),
        ("closed", ctypes.c_void_p),
        ("heads", _U32),
    ]


_P, _BOOL = ctypes.c_void_p, ctypes.c_bool
_PROBLEM = ctypes.POINTER(ctypes.c_char_p)
_CALLS: Final[Mapping[str, tuple[object, Sequence[object]]]] = {
    "settings_default": (None, [ctypes.POINTER(RawSettings)]),
    "switch_new": (_P, [ctypes.POINTER(RawSettings), _PROBLEM]),
    "switch_free": (None, [_P]),
    "switch_add": (ctypes.c_int32, [_P, _P, ctypes.POINTER(RawPortSettings), _PROBLEM]),
    "switch_drain": (_BOOL, [_P, _U32]),
    "switch_remove": (None, [_P, _U32, ctypes.POINTER(RawCounters)]),
    "switch_step": (_U32, [_P, _U64]),
    "switch_step_part": (_U32, [_P, _U32, _U64, ctypes.POINTER(_U32)]),
    "switch_wants_alone": (_BOOL, [_P]),
    "switch_settle": (None, [_P]),
    "switch_due": (_U64, [_P, _U32]),
    "switch_part": (ctypes.c_int32, [_P, _U32]),
    "switch_fix": (_BOOL, [_P, _U32, _U16, ctypes.c_char_p]),
    "switch_announce": (_BOOL, [_P, _U32, ctypes.c_char_p]),
    "switch_find": (ctypes.c_int32, [_P, _U16, ctypes.c_char_p]),
    "switch_known": (_U32, [_P, ctypes.POINTER(_U32), ctypes.POINTER(RawKnown), _U32]),
    "switch_counters": (_BOOL, [_P, _U32, ctypes.POINTER(RawCounters)]),
    "switch_fault": (ctypes.c_int, [_P, _U32]),
    "switch_stalled": (_BOOL, [_P, _U32]),
    "switch_check": (ctypes.c_char_p, [_P]),
    "memory_port_new": (_P, [_U32, _U32]),
    "memory_port_offloads": (None, [_P, _U32, _U32]),
    "memory_port_costly": (None, [_P]),
    "memory_port_send": (_BOOL, [_P, ctypes.c_char_p, _U32, ctypes.POINTER(RawOffload)]),
    "memory_port_receive": (_U32, [_P, _P, ctypes.POINTER(RawOffload)]),
    "memory_port_shut": (None, [_P, _U32]),
    "memory_port_free_heads": (_U32, [_P]),
    "memory_port_notifications": (_U64, [_P]),
    "rest_steps": (_U32, [_U32]),
    "rest_ns": (_U64, [_U32, _U64, _U64]),
    "veth_probe": (ctypes.c_int, [ctypes.c_char_p]),
    "ring_port_new": (_P, [ctypes.POINTER(RawRingSettings)]),
    "ring_port_add": (_BOOL, [_P, ctypes.POINTER(RawRingPair)]),
    "ring_port_ask": (None, [_P, _BOOL]),
    "ring_port_bad_buffers": (_U64, [_P]),
}


@cache
def loaded(path: str) -> ctypes.CDLL:
    """Load the library and declare its functions' types.

    Raises:
        CoreError: it cannot be loaded, or lacks a function.
    """
    try:
        library = ctypes.CDLL(path)
        for name, (result, arguments) in _CALLS.items():
            function = getattr(library, f"zovn_{name}")
            function.restype, function.argtypes = result, arguments
    except (OSError, AttributeError) as error:
        raise CoreError(path, f"not the switch that is expected: {error}", FIX) from error
    return library
