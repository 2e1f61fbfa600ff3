"""Limits traffic on an interface with a BPF program before the queueing discipline.

The program (`shield.bpf.c`) decides on each packet before the host has queued it or carried it to
the router. It counts packets or bits exactly, including those in joined packets. Protocols that
keep routing alive pass up to a separate rate.

It belongs to the interface, not to the daemon: it stays in force when the daemon exits, and the
next one finds it by place and name. Its own maps contain everything needed to update or remove it;
nothing is pinned.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from common.errors import UnitError
from common.units import BitsPerSecond, PacketsPerSecond
from xtc.errors import Denied, Gone, Permanent, Unsupported
from xtc.kernel import bpf
from xtc.kernel.clsact import Direction
from xtc.shield.bucket import State, Terms, in_bits, in_packets
from xtc.shield.exemptions import DEFAULT, Exemptions
from xtc.shield.filters import LIMIT, OBJECT, Filters, explain, explained, is_current
from xtc.shield.methods import Findings

EXEMPT_RATE: Final = PacketsPerSecond(1_000.0)
"""Rate reserved for exempt traffic, on each interface."""
EXEMPT_BURST_S: Final = 0.25
"""Its burst, in time: routing tables are exchanged in bursts."""
_ORDINARY, _EXEMPT, _SHARE = 0, 1, 2


@dataclass(frozen=True, slots=True)
class Counts:
    """Packets since the limit was set; a joined packet counts as its segments."""

    passed: int
    """Within the limit."""
    dropped: int
    """Above it, including exempt ones."""
    exempt_passed: int
    """Exempt packets within their rate."""
    exempt_dropped: int
    """Exempt packets above their rate for which the limit had no room, either."""


@dataclass(frozen=True, slots=True)
class Change:
    """Which interfaces, by number, start and stop to share a limit."""

    new: frozenset[int]
    gone: frozenset[int]


class Bucket:
    """Access to the maps of a program: its limits and counters."""

    def __init__(
        self, exempt: Exemptions | None = None, exempt_rate: PacketsPerSecond = EXEMPT_RATE
    ) -> None:
        """Exempt, by default, the protocols between neighbouring routers."""
        self._exempt = Exemptions.parse(DEFAULT) if exempt is None else exempt
        self._exempt_rate = exempt_rate

    def write(self, program: bpf.Program, terms: Terms) -> None:
        """Set the exemptions first, so that they never count as ordinary traffic."""
        program.maps["exempt"].write(0, self._exempt.pack())
        self.exempt(program, self._exempt_rate)
        self.change(program, terms)

    def exempt(self, program: bpf.Program, most: PacketsPerSecond) -> None:
        """Pass exempt traffic up to its own rate, or up to this one if lower."""
        terms = in_packets(PacketsPerSecond(min(self._exempt_rate, most)), EXEMPT_BURST_S)
        program.maps["terms"].write(_EXEMPT, terms.pack())

    def change(self, program: bpf.Program, terms: Terms) -> None:
        """Change only the limit.

        If the cost falls, the level is converted to the same number of packets, or bytes: at the
        old cost they could take seconds, in which nothing would pass.
        """
        before = self.terms(program)
        program.maps["terms"].write(_ORDINARY, terms.pack())
        if (share := terms.cost / before.cost if before.cost else 1.0) < 1:
            buckets = program.maps["buckets"]
            state = State.unpack(buckets.read(_ORDINARY, locked=True))
            cheaper = replace(state, level=int(state.level * share))
            buckets.write(_ORDINARY, cheaper.pack(), locked=True)

    def share(self, program: bpf.Program, terms: Terms, change: Change) -> None:
        """Set what each of several interfaces may take regardless of the others."""
        for index in change.gone:
            program.maps["shares"].remove(index)
        for index in change.new:
            program.maps["shares"].add(index, State().pack())
        program.maps["terms"].write(_SHARE, terms.pack())

    def terms(self, program: bpf.Program) -> Terms:
        """Return the limit in force."""
        return Terms.unpack(program.maps["terms"].read(_ORDINARY))

    def dropped(self, program: bpf.Program) -> int:
        """Return the number of packets dropped since the limit was set."""
        return State.refused_in(program.maps["buckets"].read(_ORDINARY, locked=True))

    def counts(self, program: bpf.Program) -> Counts:
        """Return the counters since the limit was set."""
        buckets = program.maps["buckets"]
        ordinary = State.unpack(buckets.read(_ORDINARY, locked=True))
        exempt = State.unpack(buckets.read(_EXEMPT, locked=True))
        return Counts(ordinary.passed, ordinary.refused, exempt.passed, ordinary.refused_exempt)


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
        """Limit one direction; by default, exempt the protocols between neighbouring routers."""
        self._bucket = Bucket(exempt, exempt_rate)
        self._filters = Filters(LIMIT, direction, program)

    def limit(self, interface: str, rate: PacketsPerSecond) -> None:
        """Limit an interface in packets/s, with a burst of 10 ms, at least 16 packets.

        An existing limit is changed in place: no packet passes unlimited in between.

        Raises:
            Gone: there is no such interface.
            Permanent: the rate is invalid, or another owner's filter is on the interface.
            Denied: no CAP_NET_ADMIN or no CAP_SYS_ADMIN.
            Unsupported: the kernel has no clsact or BPF, or the program or libbpf is missing.
        """
        self._set(interface, lambda: in_packets(rate))

    def limit_bits(self, interface: str, rate: BitsPerSecond) -> None:
        """Limit an interface in bits/s of Ethernet frames; otherwise like `limit`."""
        self._set(interface, lambda: in_bits(rate))

    def lift(self, interface: str) -> None:
        """Remove our limit, if the interface exists and has one.

        Raises:
            Denied: no CAP_NET_ADMIN.
            Unsupported: there is one, and libbpf, which removes it, is missing.
        """
        try:
            with explained(interface):
                self._filters.remove(interface)
        except Gone:
            self._filters.forget(interface)  # the limit is gone with the interface
        except Unsupported:
            with explained(interface):
                if self._filters.is_left(interface):
                    raise

    def current(self, interface: str) -> PacketsPerSecond | None:
        """Return the limit in force in packets/s, None if there is none of ours.

        Raises:
            Gone: there is no such interface.
        """
        terms = self._terms(interface)
        return None if terms is None else terms.packets

    def current_bits(self, interface: str) -> BitsPerSecond | None:
        """Return the limit in force in bits/s, None if there is none of ours."""
        terms = self._terms(interface)
        return None if terms is None else terms.bits

    def dropped(self, interfaces: Iterable[str]) -> dict[str, int]:
        """Return how many packets the limit on each interface has dropped since it was set.

        Interfaces that are gone, or have no limit of ours, are omitted.
        """
        return {name: counts.dropped for name, counts in self.counts(interfaces).items()}

    def counts(self, interfaces: Iterable[str]) -> dict[str, Counts]:
        """Return the counters of our limit on each interface; others are omitted."""
        found = {}
        for interface in interfaces:
            try:
                with explained(interface):
                    program = self._filters.ours(interface)
                    if program is not None and is_current(program):
                        found[interface] = self._bucket.counts(program)
            except Gone:
                continue
        return found

    def look(self, interface: str, tbf: str = "") -> Findings:
        """Find the possible ways to limit an interface, without changing it.

        Args:
            interface: its name.
            tbf: why a TBF cannot be used, from the caller.
        """
        try:
            foreign = self._filters.foreign(interface)
            self._filters.load()
        except OSError as error:
            return _found(interface, error, tbf)
        return Findings(foreign_filter=foreign[0][1] if foreign else "", tbf=tbf)

    def _set(self, interface: str, terms: Callable[[], Terms]) -> None:
        try:
            wanted = terms()
        except UnitError as error:
            raise Permanent(interface, str(error)) from error
        with explained(interface):
            program = self._filters.ours(interface)
            if program is not None and is_current(program):
                self._bucket.write(program, wanted)
                return
            fresh = self._filters.load()
            self._bucket.write(fresh, wanted)
            self._filters.put(interface, fresh)

    def _terms(self, interface: str) -> Terms | None:
        with explained(interface):
            program = self._filters.ours(interface)
            if program is None or not is_current(program):
                return None
            return self._bucket.terms(program)


def _found(interface: str, error: OSError, tbf: str) -> Findings:
    """Return the findings on host and interface that follow from an error."""
    match explain(interface, error):
        case Gone():
            return Findings(present=False)
        case Denied():
            return Findings(privileged=False, tbf=tbf)
        case known:
            return Findings(bpf=known.problem, tbf=tbf)
