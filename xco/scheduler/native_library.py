"""The compiled scheduler's functions and structures (xco/core/scheduler/schedule.h), for ctypes."""

import ctypes
from collections.abc import Mapping, Sequence
from functools import cache
from typing import ClassVar, Final

from xco.core_files import FIX
from xco.errors import CoreError

NONE: Final = 0xFFFFFFFF
FOREVER: Final = 0xFFFFFFFFFFFFFFFF
POLICIES: Final = {"published": 0, "fair": 1}


class RawLink(ctypes.Structure):
    """struct xco_tree_link."""

    _fields_: ClassVar = [
        ("a", ctypes.c_uint32),
        ("b", ctypes.c_uint32),
        ("capacity_bps", ctypes.c_uint64),
    ]


class RawOptions(ctypes.Structure):
    """struct xco_schedule_options."""

    _fields_: ClassVar = [
        ("hosts", ctypes.c_uint32),
        ("switches", ctypes.c_uint32),
        ("links", ctypes.POINTER(RawLink)),
        ("policy", ctypes.c_uint32),
        ("limit_rates", ctypes.c_uint32),
        ("threshold_ns", ctypes.c_uint64),
        ("patience_ns", ctypes.c_uint64),
        ("memory_ns", ctypes.c_uint64),
        ("least_share", ctypes.c_double),
    ]


class RawGrant(ctypes.Structure):
    """struct xco_grant."""

    _fields_: ClassVar = [
        ("host", ctypes.c_uint32),
        ("destination", ctypes.c_uint32),
        ("rate_bps", ctypes.c_uint64),
    ]


_SCHEDULE = ctypes.c_void_p
_U32, _U64 = ctypes.c_uint32, ctypes.c_uint64
_GRANTS, _HOSTS = ctypes.POINTER(RawGrant), ctypes.POINTER(ctypes.c_uint32)
_EVENT: Final = (_SCHEDULE, _U64, _U32, _GRANTS)
_CALLS: Final[Mapping[str, tuple[object, Sequence[object]]]] = {
    "new": (_SCHEDULE, [ctypes.POINTER(RawOptions), ctypes.POINTER(ctypes.c_char_p)]),
    "free": (None, [_SCHEDULE]),
    "backlogged": (ctypes.c_int, [_SCHEDULE, _U64, _U32, _HOSTS, ctypes.c_size_t, _GRANTS]),
    "add": (ctypes.c_int, [_SCHEDULE, _U64, _U32, _U32, _GRANTS]),
    "expired": (ctypes.c_int, _EVENT),
    "gave_up": (ctypes.c_int, _EVENT),
    "leave": (ctypes.c_int, _EVENT),
    "weigh": (ctypes.c_int, [_SCHEDULE, _U32, _U32, ctypes.c_double]),
    "current": (RawGrant, [_SCHEDULE, _U32]),
    "used_bps": (_U64, [_SCHEDULE, _U32]),
    "reserved_bps": (_U64, [_SCHEDULE, _U32]),
    "reserved_for": (_U32, [_SCHEDULE, _U32]),
    "full_rate_bps": (_U64, [_SCHEDULE, _U32, _U32]),
    "backlog": (_U32, [_SCHEDULE, _U32]),
    "bytes": (ctypes.c_size_t, [_SCHEDULE]),
    "check": (ctypes.c_char_p, [_SCHEDULE]),
}


@cache
def loaded(path: str) -> ctypes.CDLL:
    """Load the library and declare its functions' types.

    Raises:
        CoreError: it cannot be loaded, or lacks a function.
    """
    try:
        loaded = ctypes.CDLL(path)
        for name, (result, arguments) in _CALLS.items():
            function = getattr(loaded, f"xco_schedule_{name}")
            function.restype, function.argtypes = result, arguments
    except (OSError, AttributeError) as error:
        raise CoreError(path, f"not the scheduler that is expected: {error}", FIX) from error
    return loaded
