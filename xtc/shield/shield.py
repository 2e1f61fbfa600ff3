"""Limits what passes an interface with a BPF program before the queueing discipline.

The program (`shield.bpf.c`) decides on each packet before the host has queued it or carried it to
the router. It counts packets or bits exactly, those in joined packets too, and lets the protocols
that keep routing alive through up to a rate of their own.

It belongs to the interface, not to the daemon: it stays in force when the daemon ends, and the
next one finds it by its place and its name. Everything needed to update or remove it is in its
own maps; nothing is pinned.
"""

import errno
import os
import socket
import struct
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from xtc.errors import ActuatorError, Denied, Gone, Permanent, Transient, UnitError, Unsupported
from xtc.kernel import bpf, clsact
from xtc.kernel.clsact import Direction
from xtc.shield.bucket import State, Terms, in_bits, in_packets
from xtc.shield.exemptions import DEFAULT, Exemptions
from xtc.shield.ways import Findings
from xtc.units import BitsPerSecond, PacketsPerSecond

OBJECT: Final = Path(__file__).with_name("shield.bpf.o")
PROGRAM: Final = "xtc_shield_skb"
PLACE: Final = 0x7C00
"""Priority and handle of our filter: `tc filter show dev IF egress` has it as pref 31744."""
EXEMPT_RATE: Final = PacketsPerSecond(1_000.0)
"""What exempt traffic gets for itself, on each interface."""
EXEMPT_BURST_S: Final = 0.25
"""What of it passes at once, in time: routing tables are exchanged in bursts."""
_LAYOUT: Final = 1
"""Of the maps; a program with another is replaced, not updated."""
_ORIGIN: Final = struct.Struct("=II")
_ORDINARY, _EXEMPT = 0, 1


@dataclass(frozen=True, slots=True)
class Counts:
    """Packets since the limit was set; a joined packet counts as those that it holds."""

    passed: int
    """Within the limit."""
    dropped: int
    """Above it, exempt ones included."""
    exempt_passed: int
    """Exempt packets within their own rate."""
    exempt_dropped: int
    """Exempt packets above their own rate for which the limit had no room either."""


class Shield:
    """Sets limits on interfaces of the calling thread's network namespace."""

    def __init__(
        self,
        exempt: Exemptions | None = None,
        exempt_rate: PacketsPerSecond = EXEMPT_RATE,
        *,
        direction: Direction = Direction.EGRESS,
        program: Path = OBJECT,
    ) -> None:
        """Limit one direction; by default exempt what routers speak to their neighbours."""
        self._exempt = Exemptions.parse(DEFAULT) if exempt is None else exempt
        self._exempt_terms = in_packets(exempt_rate, EXEMPT_BURST_S)
        self._direction, self._object = direction, program
        self._programs: dict[str, bpf.Program] = {}

    def limit(self, interface: str, rate: PacketsPerSecond) -> None:
        """Limit an interface in packets/s; 10 ms of packets may pass at once, at least 16.

        A limit that is in force is changed in place: no packet passes unlimited meanwhile.

        Raises:
            Gone: there is no such interface.
            Permanent: the rate is none, or another owner's filter is on the interface.
            Denied: no CAP_NET_ADMIN or no CAP_SYS_ADMIN.
            Unsupported: the kernel has no clsact or BPF, or the program or libbpf is missing.
        """
        self._set(interface, lambda: in_packets(rate))

    def limit_bits(self, interface: str, rate: BitsPerSecond) -> None:
        """Limit an interface in bits/s of Ethernet frames; otherwise like `limit`."""
        self._set(interface, lambda: in_bits(rate))

    def lift(self, interface: str) -> None:
        """Remove our limit; an interface that is gone or has none is done already.

        Raises:
            Denied: no CAP_NET_ADMIN.
            Unsupported: there is one, and libbpf, which removes it, is missing.
        """
        try:
            with _explained(interface):
                self._remove(interface, _index(interface))
        except Gone:
            self._programs.pop(interface, None)  # the limit went with the interface
        except Unsupported:
            if self._is_left(interface):
                raise

    def current(self, interface: str) -> PacketsPerSecond | None:
        """Return the limit in force in packets/s, None where there is none of ours.

        Raises:
            Gone: there is no such interface.
        """
        terms = self._terms(interface)
        return None if terms is None else terms.packets

    def current_bits(self, interface: str) -> BitsPerSecond | None:
        """Return the limit in force in bits/s, None where there is none of ours."""
        terms = self._terms(interface)
        return None if terms is None else terms.bits

    def dropped(self, interfaces: Iterable[str]) -> dict[str, int]:
        """Return how many packets the limit on each interface has dropped since it was set.

        An interface that is gone, or has no limit of ours, is left out.
        """
        return {name: counts.dropped for name, counts in self.counts(interfaces).items()}

    def counts(self, interfaces: Iterable[str]) -> dict[str, Counts]:
        """Return what our limit on each interface has counted; others are left out."""
        found = {}
        for interface in interfaces:
            try:
                with _explained(interface):
                    program = self._ours(interface, _index(interface))
                    if program is not None and _origin(program)[0] == _LAYOUT:
                        found[interface] = _counts(program)
            except Gone:
                continue
        return found

    def trouble(self, interface: str) -> str:
        """Say what keeps our limit on an interface from being in force, "" where nothing does.

        Raises:
            Gone: there is no such interface.
        """
        with _explained(interface):
            index = _index(interface)
            if self._ours(interface, index) is None:
                return f"the limit's filter on {interface} was removed by another process"
            foreign = self._foreign(index)
            first = [what for priority, what in foreign if priority < PLACE]
            return f"{first[0]} decides before the limit on {interface}" if first else ""

    def look(self, interface: str, tbf: str = "") -> Findings:
        """Find out what could limit an interface; changes nothing on it.

        Args:
            interface: its name.
            tbf: why a TBF cannot be used; the caller knows that one.
        """
        try:
            index = socket.if_nametoindex(interface)
        except OSError:
            return Findings(present=False)
        try:
            bpf.load(self._object, PROGRAM)
            foreign = self._foreign(index)
        except OSError as error:
            known = _explain(interface, error)
            if isinstance(known, Denied):
                return Findings(privileged=False, tbf=tbf)
            return Findings(bpf=known.problem, tbf=tbf)
        return Findings(foreign_filter=foreign[0][1] if foreign else "", tbf=tbf)

    def _set(self, interface: str, terms: Callable[[], Terms]) -> None:
        try:
            wanted = terms()
        except UnitError as error:
            raise Permanent(interface, str(error)) from error
        with _explained(interface):
            index = _index(interface)
            program = self._ours(interface, index)
            if program is None or _origin(program)[0] != _LAYOUT:
                self._install(interface, index, program, wanted)
            else:
                self._write(program, wanted)

    def _install(self, interface: str, index: int, old: bpf.Program | None, terms: Terms) -> None:
        for _, what in self._foreign(index):
            fix = f"remove it (tc filter show dev {interface}), or switch the limit off"
            raise Permanent(interface, f"{what} belongs to another owner", fix)
        fresh = bpf.load(self._object, PROGRAM)
        made = clsact.make_qdisc(index) or (old is not None and bool(_origin(old)[1]))
        fresh.maps["origin"].write(0, _ORIGIN.pack(_LAYOUT, made))
        self._write(fresh, terms)
        try:
            clsact.attach(index, self._direction, fresh, PLACE)
        except OSError:
            if made and old is None:
                clsact.remove_qdisc(index)
            raise
        self._programs[interface] = fresh

    def _write(self, program: bpf.Program, terms: Terms) -> None:
        """Set what is exempt first, so that it never counts as ordinary traffic."""
        program.maps["exempt"].write(0, self._exempt.pack())
        program.maps["terms"].write(_EXEMPT, self._exempt_terms.pack())
        program.maps["terms"].write(_ORDINARY, terms.pack())

    def _remove(self, interface: str, index: int) -> None:
        program = self._ours(interface, index)
        if program is None:
            return
        _, made = _origin(program)
        clsact.detach(index, self._direction, PLACE)
        del self._programs[interface]
        if made and not any(clsact.filters(index, direction) for direction in Direction):
            clsact.remove_qdisc(index)

    def _is_left(self, interface: str) -> bool:
        """Whether our filter is on an interface, as far as it can be told without libbpf."""
        with _explained(interface):
            return any(
                (one.priority, one.handle) == (PLACE, PLACE) and one.name.startswith(PROGRAM)
                for one in clsact.filters(_index(interface), self._direction)
            )

    def _terms(self, interface: str) -> Terms | None:
        with _explained(interface):
            program = self._ours(interface, _index(interface))
            if program is None or _origin(program)[0] != _LAYOUT:
                return None
            return Terms.unpack(program.maps["terms"].read(_ORDINARY))

    def _ours(self, interface: str, index: int) -> bpf.Program | None:
        """Return our program on an interface, adopted where another process has put it there."""
        number = clsact.attached(index, self._direction, PLACE)
        program = self._programs.pop(interface, None)
        if number is None:
            return None
        if program is None or program.id != number:
            program = _in_kernel(number)
        if program is None or program.name != PROGRAM:
            return None
        self._programs[interface] = program
        return program

    def _foreign(self, index: int) -> list[tuple[int, str]]:
        """Return priority and name of what others have in our direction, first come first."""
        found = [(0, "a tcx program")] * clsact.tcx_programs(index, self._direction)
        number = clsact.attached(index, self._direction, PLACE)
        program = None if number is None else _in_kernel(number)
        ours = program is not None and program.name == PROGRAM
        for one in clsact.filters(index, self._direction):
            if not (ours and (one.priority, one.handle) == (PLACE, PLACE)):
                name = f" {one.name}" if one.name else ""
                found.append((one.priority, f"filter {one.kind}{name} (pref {one.priority})"))
        return found


def _index(interface: str) -> int:
    try:
        return socket.if_nametoindex(interface)
    except OSError as error:
        raise OSError(errno.ENODEV, os.strerror(errno.ENODEV), interface) from error


def _in_kernel(number: int) -> bpf.Program | None:
    """Return a program, None where it was removed since it was seen."""
    try:
        return bpf.by_id(number)
    except FileNotFoundError:
        return None


def _origin(program: bpf.Program) -> tuple[int, bool]:
    """Return the layout of a program's maps, and whether it brought the clsact qdisc."""
    if "origin" not in program.maps:
        return 0, False
    layout, made = _ORIGIN.unpack(program.maps["origin"].read(0))
    return layout, bool(made)


def _counts(program: bpf.Program) -> Counts:
    buckets = program.maps["buckets"]
    ordinary = State.unpack(buckets.read(_ORDINARY, locked=True))
    exempt = State.unpack(buckets.read(_EXEMPT, locked=True))
    return Counts(ordinary.passed, ordinary.refused, exempt.passed, ordinary.refused_exempt)


@contextmanager
def _explained(interface: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise _explain(interface, error) from error


def _explain(interface: str, error: OSError) -> ActuatorError:
    """Return what a refusal of the kernel or of libbpf means, and what to do about it."""
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
            return Unsupported(interface, problem, "needs cls_bpf, sch_ingress and Linux 5.10")
        case _:
            return Transient(interface, str(error))
