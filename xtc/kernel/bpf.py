"""BPF programs and their maps, through libbpf (Debian: libbpf1), loaded on first use."""

import contextlib
import ctypes
import errno
import os
from collections.abc import Mapping
from ctypes import POINTER, c_bool, c_char_p, c_int, c_uint32, c_uint64, c_void_p
from functools import cache
from pathlib import Path
from typing import Final

_LIBRARY: Final = "libbpf.so.1"
_NEW: Final = 1  # BPF_NOEXIST: the key must not exist
_LOCKED: Final = 4  # BPF_F_LOCK: under the value's own spin lock
_NAME: Final = 16
_MOST_MAPS: Final = 16
_SIGNATURES: Final[Mapping[str, tuple[object, tuple[object, ...]]]] = {
    "bpf_object__open_file": (c_void_p, (c_char_p, c_void_p)),
    "bpf_object__load": (c_int, (c_void_p,)),
    "bpf_object__close": (None, (c_void_p,)),
    "bpf_object__next_program": (c_void_p, (c_void_p, c_void_p)),
    "bpf_object__next_map": (c_void_p, (c_void_p, c_void_p)),
    "bpf_map__fd": (c_int, (c_void_p,)),
    "bpf_prog_bind_map": (c_int, (c_int, c_int, c_void_p)),
    "bpf_prog_query": (
        c_int,
        (c_int, c_int, c_uint32, c_void_p, POINTER(c_uint32 * 64), POINTER(c_uint32)),
    ),
    "bpf_program__name": (c_char_p, (c_void_p,)),
    "bpf_program__set_autoload": (c_int, (c_void_p, c_bool)),
    "bpf_program__fd": (c_int, (c_void_p,)),
    "bpf_prog_get_fd_by_id": (c_int, (c_uint32,)),
    "bpf_map_get_fd_by_id": (c_int, (c_uint32,)),
    "bpf_obj_get_info_by_fd": (c_int, (c_int, c_void_p, POINTER(c_uint32))),
    "bpf_map_lookup_elem_flags": (c_int, (c_int, c_void_p, c_void_p, c_uint64)),
    "bpf_map_update_elem": (c_int, (c_int, c_void_p, c_void_p, c_uint64)),
    "bpf_map_delete_elem": (c_int, (c_int, c_void_p)),
    "libbpf_set_print": (c_void_p, (c_void_p,)),
}


class _ProgramInfo(ctypes.Structure):
    """The first fields of ``struct bpf_prog_info``."""

    _fields_ = (
        ("type", c_uint32),
        ("id", c_uint32),
        ("tag", ctypes.c_uint8 * 8),
        ("jited_len", c_uint32),
        ("xlated_len", c_uint32),
        ("jited", c_uint64),
        ("xlated", c_uint64),
        ("load_time", c_uint64),
        ("created_by_uid", c_uint32),
        ("map_count", c_uint32),
        ("map_ids", c_uint64),
        ("name", ctypes.c_char * _NAME),
    )


class _MapInfo(ctypes.Structure):
    """The first fields of ``struct bpf_map_info``."""

    _fields_ = (
        ("type", c_uint32),
        ("id", c_uint32),
        ("key_size", c_uint32),
        ("value_size", c_uint32),
        ("max_entries", c_uint32),
        ("flags", c_uint32),
        ("name", ctypes.c_char * _NAME),
    )


class Descriptor:
    """A file descriptor, closed with its last reference."""

    def __init__(self, fd: int) -> None:
        self.fd = fd

    def __del__(self) -> None:
        os.close(self.fd)


class Map:
    """A BPF map with 32-bit keys, for one thread; values are read and written as a whole."""

    def __init__(self, fd: int) -> None:
        self._descriptor = Descriptor(fd)
        self._info = _MapInfo()
        _describe(fd, self._info)
        self._index = c_uint32()
        self._value = ctypes.create_string_buffer(self.value_size)

    @property
    def name(self) -> str:
        """The map's name in its program."""
        return bytes(self._info.name).decode()

    @property
    def value_size(self) -> int:
        """Bytes of a value."""
        return int(self._info.value_size)

    def read(self, index: int, *, locked: bool = False) -> bytes:
        """Return a value; under its own spin lock if it has one. Raises OSError."""
        self._index.value = index
        where, flags = ctypes.byref(self._index), _LOCKED if locked else 0
        call("bpf_map_lookup_elem_flags", self._descriptor.fd, where, self._value, flags)
        return self._value.raw

    def add(self, index: int, value: bytes) -> None:
        """Write a new value. Raises OSError: EINVAL, wrong size."""
        with contextlib.suppress(FileExistsError):
            self._update(index, value, _NEW)

    def remove(self, index: int) -> None:
        """Remove the value of a hash map, if there is one. Raises OSError."""
        key = c_uint32(index)
        with contextlib.suppress(FileNotFoundError):
            call("bpf_map_delete_elem", self._descriptor.fd, ctypes.byref(key))

    def write(self, index: int, value: bytes, *, locked: bool = False) -> None:
        """Replace a value; under its spin lock if it has one. Raises OSError: EINVAL, its size."""
        self._update(index, value, _LOCKED if locked else 0)

    def _update(self, index: int, value: bytes, flags: int) -> None:
        if len(value) != self.value_size:
            raise OSError(errno.EINVAL, f"{len(value)} bytes, not {self.value_size}", self.name)
        key = c_uint32(index)
        call("bpf_map_update_elem", self._descriptor.fd, ctypes.byref(key), value, flags)


class Program:
    """A BPF program in the kernel, with its maps by name."""

    def __init__(self, fd: int) -> None:
        self._descriptor = Descriptor(fd)
        self._info = _ProgramInfo()
        ids = (c_uint32 * _MOST_MAPS)()
        self._info.map_count, self._info.map_ids = _MOST_MAPS, ctypes.addressof(ids)
        _describe(fd, self._info)
        found = ids[: min(self._info.map_count, _MOST_MAPS)]
        maps = [Map(call("bpf_map_get_fd_by_id", number)) for number in found]
        self.maps: dict[str, Map] = {one.name: one for one in maps}

    @property
    def fd(self) -> int:
        """Its file descriptor, open as long as this object lives."""
        return self._descriptor.fd

    @property
    def id(self) -> int:
        """Its number in the kernel, reused only after all others."""
        return int(self._info.id)

    @property
    def name(self) -> str:
        """The first 15 characters of its function's name."""
        return bytes(self._info.name).decode()


def load(path: Path, name: str) -> Program:
    """Load one program of an object file; all the file's maps live as long as the program.

    Raises:
        OSError: ENOENT, no such file or program; ELIBACC, no libbpf; EPERM, no CAP_BPF; EINVAL
            or EACCES, the kernel's verifier refuses it (`bpftool prog load` shows why).
    """
    opened = library().bpf_object__open_file(os.fsencode(path), None)
    if not opened:
        raise _error(ctypes.get_errno(), str(path))
    try:
        wanted = _only(opened, name)
        if wanted is None:
            raise OSError(errno.ENOENT, f"has no program {name}", str(path))
        call("bpf_object__load", opened)
        fd = call("bpf_program__fd", wanted)
        _bind_maps(opened, fd)
        return Program(os.dup(fd))
    finally:
        library().bpf_object__close(opened)


def by_id(number: int) -> Program:
    """Return an existing program. Raises OSError: ENOENT, there is none; EPERM."""
    return Program(call("bpf_prog_get_fd_by_id", number))


@cache
def library() -> ctypes.CDLL:
    """Return libbpf 1.x. Raises OSError: ELIBACC, it is not installed."""
    try:
        found = ctypes.CDLL(_LIBRARY, use_errno=True)
    except OSError as error:
        raise OSError(errno.ELIBACC, str(error), _LIBRARY) from error
    for name, (result, arguments) in _SIGNATURES.items():
        function = getattr(found, name)
        function.restype, function.argtypes = result, arguments
    found.libbpf_set_print(None)  # it would write to the daemon's standard error
    return found


def call(function: str, *arguments: object) -> int:
    """Call a libbpf function that returns a number; raise OSError if it is negative."""
    result = int(getattr(library(), function)(*arguments))
    if result < 0:
        raise _error(-result, function)
    return result


def _only(opened: int, name: str) -> int | None:
    """Disable loading of all programs of an object but one; return that one."""
    wanted, program = None, library().bpf_object__next_program(opened, None)
    while program:
        chosen = library().bpf_program__name(program).decode() == name
        wanted = program if chosen else wanted
        library().bpf_program__set_autoload(program, chosen)
        program = library().bpf_object__next_program(opened, program)
    return wanted


def _bind_maps(opened: int, fd: int) -> None:
    """Bind maps to a program that does not use them itself."""
    one = library().bpf_object__next_map(opened, None)
    while one:
        call("bpf_prog_bind_map", fd, call("bpf_map__fd", one), None)
        one = library().bpf_object__next_map(opened, one)


def _describe(fd: int, info: ctypes.Structure) -> None:
    size = c_uint32(ctypes.sizeof(info))
    call("bpf_obj_get_info_by_fd", fd, ctypes.byref(info), ctypes.byref(size))


def _error(code: int, what: str) -> OSError:
    return OSError(code, os.strerror(code), what)
