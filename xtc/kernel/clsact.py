"""BPF filters of the clsact qdisc, in the calling thread's network namespace (tc-bpf(8)).

Each call opens its own netlink socket. Functions with changes raise the kernel's OSError: ENODEV,
no such interface; EPERM, no CAP_NET_ADMIN; EINVAL or ENOENT, the kernel has no clsact or no
cls_bpf, or the interface has an ingress qdisc.
"""

import ctypes
import errno
import os
import socket
import struct
from ctypes import c_int, c_size_t, c_uint32
from dataclasses import dataclass
from enum import Enum
from typing import Final

from xtc.kernel.bpf import Program, library
from xtc.kernel.netlink import attributes, dump, text

_PARENTS: Final = {1: 0xFFFF_FFF2, 2: 0xFFFF_FFF3}
_TCX: Final = {1: 46, 2: 47}  # BPF_TCX_INGRESS, BPF_TCX_EGRESS
_BOTH: Final = 3  # BPF_TC_INGRESS | BPF_TC_EGRESS: the qdisc itself
_REPLACE: Final = 1  # BPF_TC_F_REPLACE
_RTM_GETTFILTER: Final = 46
_TCA_KIND, _TCA_OPTIONS, _TCA_BPF_NAME = 1, 2, 7
_MESSAGE: Final = struct.Struct("=BxxxiIII")
"""``struct tcmsg``: family, interface, handle, parent, and priority with protocol."""


class Direction(Enum):
    """Direction of a filter, with libbpf's numbers."""

    INGRESS = 1
    """Packets that the interface receives."""
    EGRESS = 2
    """Packets that are sent through the interface."""


@dataclass(frozen=True, slots=True)
class Filter:
    """A filter of any owner."""

    kind: str
    priority: int
    handle: int
    name: str
    """Its owner's name for it, "" where filters of its kind have no names."""


class _Hook(ctypes.Structure):
    _fields_ = (
        ("sz", c_size_t),
        ("ifindex", c_int),
        ("attach_point", c_int),
        ("parent", c_uint32),
    )


class _Options(ctypes.Structure):
    _fields_ = (
        ("sz", c_size_t),
        ("prog_fd", c_int),
        ("flags", c_uint32),
        ("prog_id", c_uint32),
        ("handle", c_uint32),
        ("priority", c_uint32),
    )


def make_qdisc(index: int) -> bool:
    """Give an interface a clsact qdisc; return False if it has one, or an ingress qdisc."""
    try:
        _call("bpf_tc_hook_create", _hook(index, _BOTH))
    except FileExistsError:
        return False
    return True


def remove_qdisc(index: int) -> None:
    """Remove the clsact qdisc with all filters, if there is one."""
    try:
        _call("bpf_tc_hook_destroy", _hook(index, _BOTH))
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.EINVAL):
            raise


def attach(index: int, direction: Direction, program: Program, place: int) -> None:
    """Put a program at a priority and handle (the same number); replace any other."""
    options = _options(place, prog_fd=program.fd, flags=_REPLACE)
    _call("bpf_tc_attach", _hook(index, direction.value), options)


def attached(index: int, direction: Direction, place: int) -> int | None:
    """Return the number of the program at a place, None if there is none."""
    options = _options(place)
    try:
        _call("bpf_tc_query", _hook(index, direction.value), options)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.EINVAL):  # no filter, or no clsact
            return None
        raise
    return int(options.prog_id)


def detach(index: int, direction: Direction, place: int) -> None:
    """Remove the filter at a place."""
    _call("bpf_tc_detach", _hook(index, direction.value), _options(place))


def filters(index: int, direction: Direction) -> tuple[Filter, ...]:
    """Return the filters of one direction in the kernel's order."""
    request = _MESSAGE.pack(socket.AF_UNSPEC, index, 0, _PARENTS[direction.value], 0)
    found = [_filter(message) for message in dump(_RTM_GETTFILTER, request)]
    return tuple(sorted((one for one in found if one.handle), key=lambda one: one.priority))


def tcx_programs(index: int, direction: Direction) -> int:
    """Return how many programs the kernel runs before any filter; 0 before Linux 6.6."""
    count = c_uint32(0)  # with no room for their numbers: returns only the count
    query, point = library().bpf_prog_query, _TCX[direction.value]
    result = query(index, point, 0, None, None, ctypes.byref(count))
    return int(count.value) if result == 0 else 0


def _filter(message: bytes) -> Filter:
    _, _, handle, _, info = _MESSAGE.unpack_from(message)
    found = attributes(message, _MESSAGE.size)
    kind = text(found.get(_TCA_KIND, b""))
    options = attributes(found.get(_TCA_OPTIONS, b"")) if kind == "bpf" else {}
    return Filter(kind, info >> 16, handle, text(options.get(_TCA_BPF_NAME, b"")))


def _hook(index: int, point: int) -> _Hook:
    return _Hook(sz=ctypes.sizeof(_Hook), ifindex=index, attach_point=point)


def _options(place: int, *, prog_fd: int = 0, flags: int = 0) -> _Options:
    size = ctypes.sizeof(_Options)
    return _Options(sz=size, prog_fd=prog_fd, flags=flags, handle=place, priority=place)


def _call(function: str, *arguments: ctypes.Structure) -> None:
    call = getattr(library(), function)
    call.restype = c_int
    result = call(*map(ctypes.byref, arguments))
    if result < 0:
        raise OSError(-result, os.strerror(-result), function)
