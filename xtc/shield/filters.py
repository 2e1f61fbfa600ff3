"""Our filter on an interface: finds it by place and program name, attaches and removes it."""

import errno
import os
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from xtc.errors import ActuatorError, Denied, Gone, Permanent, Transient, Unsupported
from xtc.kernel import bpf, clsact
from xtc.kernel.clsact import Direction

OBJECT: Final = Path(__file__).with_name("shield.bpf.o")
PROGRAM: Final = "xtc_shield_skb"
LIMIT: Final = 0x7C00
"""Priority and handle of a limit's filter: `tc filter show dev IF egress` shows it as pref
31744."""
SHIELD: Final = 0x7C01
"""The same for a controlled router's shield, which filters what the limit has passed."""
_PLACES: Final = (LIMIT, SHIELD)
_LAST: Final = 1 << 16
_LAYOUT: Final = 7
"""Version of maps and program; a program with another version is replaced, not updated."""
_INTERFACES: Final = 31
_ORIGIN: Final = struct.Struct(f"=I{_INTERFACES}I")


class Filters:
    """The filters at one place in one direction, in the calling thread's network namespace.

    Nothing is pinned: a filter belongs to its interface and stays when the daemon exits, and the
    next one finds it by place and program name.
    """

    def __init__(self, place: int, direction: Direction, program: Path = OBJECT) -> None:
        """Store place and direction; no system call yet."""
        self._place, self._direction, self._object = place, direction, program
        self._programs: dict[str, bpf.Program] = {}
        self._numbers: dict[str, int] = {}
        """Numbers of the interfaces with a filter: an interface keeps its number when renamed."""

    def load(self) -> bpf.Program:
        """Return a program that is not attached yet. Raises OSError, as `bpf.load`."""
        fresh = bpf.load(self._object, PROGRAM)
        _note(fresh, [])
        return fresh

    def ours(self, interface: str) -> bpf.Program | None:
        """Return our program on an interface, adopted if another process attached it.

        Raises:
            OSError: ENODEV, no such interface; EPERM.
        """
        index = index_of(interface)
        number = clsact.attached(index, self._direction, self._place)
        program = self._programs.pop(interface, None)
        if number is None:
            return None
        if program is None or program.id != number:
            program = _in_kernel(number)
        if program is None or program.name != PROGRAM:
            return None
        self._programs[interface], self._numbers[interface] = program, index
        return program

    def put(self, interface: str, program: bpf.Program) -> None:
        """Attach a program to an interface; it atomically replaces one of ours.

        Raises:
            Permanent: another owner's filter is on the interface.
            OSError: the kernel refuses.
        """
        index, old = index_of(interface), self.ours(interface)
        for _, what in self.foreign(interface) if old is None else ():
            fix = f"remove it (tc filter show dev {interface}), or switch the limit off"
            raise Permanent(interface, f"{what} belongs to another owner", fix)
        made = clsact.make_qdisc(index)
        if made or self._is_made_by_us(index):
            _note(program, [*_made_without(program, index), index])
        try:
            clsact.attach(index, self._direction, program, self._place)
        except OSError:
            if made:
                clsact.remove_qdisc(index)
            raise
        self._programs[interface], self._numbers[interface] = program, index

    def remove(self, interface: str) -> None:
        """Remove our filter, and the clsact qdisc with the last filter if we created it.

        Raises:
            OSError: ENODEV, no such interface: the filter is gone with it.
        """
        numbers = {self._numbers.get(interface, 0), self._number(interface)} - {0}
        for index in numbers:
            self._remove(index)
        self.forget(interface)
        if not numbers:
            index_of(interface)

    def _number(self, interface: str) -> int:
        try:
            return index_of(interface)
        except OSError:
            return 0

    def _remove(self, index: int) -> None:
        """Remove our filter from an interface; do nothing if the interface is gone."""
        program = _at(index, self._direction, self._place) if _is_there(index) else None
        if program is None:
            return
        made = self._is_made_by_us(index)
        clsact.detach(index, self._direction, self._place)
        if is_current(program):
            _note(program, _made_without(program, index))  # it may still serve other interfaces
        if made and not any(clsact.filters(index, direction) for direction in Direction):
            clsact.remove_qdisc(index)
        elif made:
            self._hand_on(index)

    def forget(self, interface: str) -> None:
        """Forget an interface that no longer exists."""
        self._programs.pop(interface, None)
        self._numbers.pop(interface, None)

    def foreign(self, interface: str, before: int = _LAST) -> list[tuple[int, str]]:
        """Return priority and name of foreign filters in our direction, in order.

        If a place is given, only of those before it: identifying ours is slow.
        """
        index = index_of(interface)
        found = [(0, "a tcx program")] * clsact.tcx_programs(index, self._direction)
        for one in clsact.filters(index, self._direction):
            if one.priority < before and not self._is_ours(index, one):
                name = f" {one.name}" if one.name else ""
                found.append((one.priority, f"filter {one.kind}{name} (pref {one.priority})"))
        return found

    def is_left(self, interface: str) -> bool:
        """Whether our filter is on an interface, as far as is visible without libbpf."""
        return any(
            (one.priority, one.handle) == (self._place, self._place)
            and one.name.startswith(PROGRAM)
            for one in clsact.filters(index_of(interface), self._direction)
        )

    def _is_ours(self, index: int, one: clsact.Filter) -> bool:
        if one.priority != one.handle or one.priority not in _PLACES:
            return False
        return _at(index, self._direction, one.priority) is not None

    def _is_made_by_us(self, index: int) -> bool:
        """Whether one of our filters on the interface created the clsact qdisc."""
        return any(index in made_qdiscs(program) for program in _every(index))

    def _hand_on(self, index: int) -> None:
        """Pass the ownership of a removed filter's qdisc to our remaining ones."""
        for program in _every(index):
            _note(program, [*_made_without(program, index), index])


def index_of(interface: str) -> int:
    """Return an interface's number. Raises OSError: ENODEV, there is none."""
    try:
        return socket.if_nametoindex(interface)
    except OSError as error:
        raise OSError(errno.ENODEV, os.strerror(errno.ENODEV), interface) from error


def _is_there(index: int) -> bool:
    try:
        socket.if_indextoname(index)
    except OSError:
        return False
    return True


def is_current(program: bpf.Program) -> bool:
    """Whether a program has the maps that this version writes."""
    return _origin(program)[0] == _LAYOUT


def made_qdiscs(program: bpf.Program) -> tuple[int, ...]:
    """Return the numbers of the interfaces with a clsact qdisc created for a program."""
    return _origin(program)[1]


def _made_without(program: bpf.Program, index: int) -> list[int]:
    """Return the numbers of the other interfaces with a qdisc created for a program."""
    return [made for made in made_qdiscs(program) if made != index and _is_there(made)]


def _origin(program: bpf.Program) -> tuple[int, tuple[int, ...]]:
    noted = program.maps.get("origin")
    if noted is None or noted.value_size != _ORIGIN.size:
        return 0, ()
    layout, *made = _ORIGIN.unpack(noted.read(0))
    return layout, tuple(index for index in made if index)


def _note(program: bpf.Program, made: list[int]) -> None:
    """Store the qdiscs created for a program; those beyond the map's size are never removed."""
    kept = list(dict.fromkeys(made))[:_INTERFACES]
    program.maps["origin"].write(0, _ORIGIN.pack(_LAYOUT, *kept, *[0] * (_INTERFACES - len(kept))))


def _every(index: int) -> Iterator[bpf.Program]:
    """Yield our programs on an interface, in each direction and at each place."""
    for direction in Direction:
        for place in _PLACES:
            program = _at(index, direction, place)
            if program is not None and is_current(program):
                yield program


def _at(index: int, direction: Direction, place: int) -> bpf.Program | None:
    number = clsact.attached(index, direction, place)
    program = None if number is None else _in_kernel(number)
    return program if program is not None and program.name == PROGRAM else None


def _in_kernel(number: int) -> bpf.Program | None:
    """Return a program, None if it was removed in between."""
    try:
        return bpf.by_id(number)
    except FileNotFoundError:
        return None


@contextmanager
def explained(interface: str) -> Iterator[None]:
    """Translate an OSError of the kernel or of libbpf for an interface.

    Raises:
        Gone, Denied, Unsupported, Transient: with a fix.
    """
    try:
        yield
    except OSError as error:
        raise explain(interface, error) from error


def explain(interface: str, error: OSError) -> ActuatorError:
    """Return the meaning of a refusal by the kernel or libbpf, and the fix."""
    match error.errno:
        case errno.ENODEV:
            return Gone(interface, "there is no such interface")
        case errno.EPERM:
            return Denied(
                interface, "no filter may be set", "give the daemon CAP_NET_ADMIN and CAP_SYS_ADMIN"
            )
        case errno.ELIBACC:
            return Unsupported(interface, "libbpf is missing", "install libbpf1")
        case errno.ENOENT if str(error.filename).endswith(OBJECT.name):
            fix = "install clang and libbpf-dev, then make -C xtc/shield"
            return Unsupported(interface, f"{OBJECT.name} is not built", fix)
        case errno.EACCES | errno.EINVAL | errno.ENOENT | errno.EOPNOTSUPP | errno.ENOSYS:
            problem = f"the kernel refuses the BPF program or its filter ({error.strerror})"
            fix = "needs cls_bpf, sch_ingress and Linux 5.14 or newer"
            return Unsupported(interface, problem, fix)
        case _:
            return Transient(interface, str(error))
