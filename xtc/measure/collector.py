"""Throughput Collector: maps interfaces to virtual routers, and adds up what they forward."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from fnmatch import translate

import msgspec

from common.units import BitsPerSecond, PacketsPerSecond
from xtc.isolation import Firewall, Unforeseen, uncounted
from xtc.measure.meter import Fault, InterfaceRate

_VIF = re.compile(r"^vif(\d+)\.(\d+)$")


class Side(Enum):
    """Where an interface is read, which defines the meaning of its directions."""

    HOST = "host"
    """The host's end (vif, tap, veth peer): the router sent what it receives."""
    ROUTER = "router"
    """The router's own end: the router sent what it transmits."""


@dataclass(frozen=True, slots=True)
class Binding:
    """How to recognise the interfaces of one router."""

    patterns: tuple[str, ...] = ()
    """Names or globs, such as ``vif7.*``."""
    domid: int | None = None
    """A Xen domain: every ``vif<domid>.<n>``."""
    side: Side = Side.HOST


class Reading(msgspec.Struct, frozen=True):
    """Rates of one router in an interval; without a throughput, the reasons why there is none."""

    throughput: PacketsPerSecond | None
    offered: PacketsPerSecond | None
    interfaces: tuple[str, ...]
    problems: tuple[str, ...] = ()
    incomplete: bool = False
    """Whether some of its interfaces are missing or shared, while others exist."""
    at_least: PacketsPerSecond | None = None
    """Throughput of the other interfaces, where it is incomplete."""
    throughput_bps: BitsPerSecond | None = None
    """None also where an interface's bytes could not be counted; so are the next two."""
    offered_bps: BitsPerSecond | None = None
    """No counter has the bytes of dropped packets: they are assumed to have the same mean size."""
    at_least_bps: BitsPerSecond | None = None


def is_glob(pattern: str) -> bool:
    """Whether a pattern may match several names."""
    return any(character in pattern for character in "*?[")


def vif_domid(interface: str) -> int | None:
    """Return the domain of Xen's ``vif<domid>.<n>``, None for any other name."""
    match = _VIF.match(interface)
    return int(match[1]) if match else None


class Claims:
    """Which routers claim an interface: found by name and domain, trying only true globs."""

    def __init__(self, bindings: Mapping[str, Binding]) -> None:
        self._by_name: dict[str, list[str]] = {}
        self._by_domid: dict[int, list[str]] = {}
        self._globs: list[tuple[re.Pattern[str], str]] = []
        self.named: dict[str, tuple[str, ...]] = {}
        """The interfaces that must exist: named ones, not those matched by globs."""
        for vr, binding in bindings.items():
            if binding.domid is not None:
                self._by_domid.setdefault(binding.domid, []).append(vr)
            self.named[vr] = tuple(name for name in binding.patterns if not is_glob(name))
            for pattern in binding.patterns:
                self._add(pattern, vr)

    def _add(self, pattern: str, vr: str) -> None:
        if is_glob(pattern):
            self._globs.append((re.compile(translate(pattern)), vr))
        else:
            self._by_name.setdefault(pattern, []).append(vr)

    def owners(self, interface: str) -> list[str]:
        """Return every router that claims the interface, each once."""
        claims = list(self._by_name.get(interface, ()))
        domid = vif_domid(interface)
        if domid is not None:
            claims += self._by_domid.get(domid, ())
        claims += (vr for glob, vr in self._globs if glob.match(interface))
        return list(dict.fromkeys(claims))


class _Sum:
    """Adds up one direction of a router's interfaces."""

    def __init__(self) -> None:
        self.pps = PacketsPerSecond(0.0)
        self.bps: BitsPerSecond | None = BitsPerSecond(0.0)
        """None once an interface has unknown bits."""

    def add(self, passed: float, bits: float | None, dropped: float = 0.0) -> None:
        self.pps = PacketsPerSecond(self.pps + passed + dropped)
        each = with_dropped(passed, bits, dropped) if dropped else bits
        self.bps = None if each is None or self.bps is None else BitsPerSecond(self.bps + each)


def with_dropped(passed: float, bits: float | None, dropped: float | None) -> BitsPerSecond | None:
    """Return the bits of packets and of dropped ones, which are assumed to have the same mean size.

    Args:
        passed: packets/s with known bits.
        bits: theirs, in bits/s.
        dropped: packets/s with uncounted bits.
    """
    if bits is None or dropped is None or (dropped > 0 and passed <= 0):
        return None
    return BitsPerSecond(bits * (1 + dropped / passed) if dropped > 0 else bits)


def reached_bps(reading: Reading, reached: float | None) -> BitsPerSecond | None:
    """Return the bits of the packets/s that reached a router, in the size that it forwards.

    If it forwards none, use the size of those sent towards it.
    """
    if reached is None:
        return None
    known = (
        (reading.throughput, reading.throughput_bps),
        (reading.offered, reading.offered_bps),
    )
    for packets, bits in known:
        if packets and bits is not None:
            return BitsPerSecond(reached * bits / packets)
    return BitsPerSecond(0.0) if reached == 0 else None


class Collector:
    """Keeps the map from interfaces to routers, rebuilt only when interfaces come or go."""

    def __init__(
        self, bindings: Mapping[str, Binding], unexpected: Callable[[str], None] = uncounted
    ) -> None:
        """Read routers' interfaces.

        Args:
            bindings: how to recognise each router's interfaces.
            unexpected: counts an unforeseen error by its origin.
        """
        self._guard = Firewall(unexpected)
        self._bindings, self._claims = dict(bindings), Claims(bindings)
        self._names: frozenset[str] | None = None
        """The mapped interfaces; None before the first reading."""
        self._owned: dict[str, tuple[str, ...]] = {}
        self._contested: dict[str, tuple[str, ...]] = {}
        self._full: dict[str, tuple[str, ...]] = {}
        """The most interfaces that each router had since it last had none."""
        self._missing: dict[str, tuple[str, ...]] = {}
        """The interfaces of each router that must exist and do not, if any."""

    def rebind(self, bindings: Mapping[str, Binding], *, forget: bool = False) -> None:
        """Adopt other routers; interfaces are mapped again at the next reading.

        Args:
            bindings: how to recognise each router's interfaces.
            forget: accept the existing interfaces; else only for routers with a changed binding.
        """
        changed = {vr for vr, binding in bindings.items() if binding != self._bindings.get(vr)}
        forgotten = self._full.keys() if forget else changed | (self._full.keys() - bindings.keys())
        self._full = {vr: names for vr, names in self._full.items() if vr not in forgotten}
        self._bindings, self._claims = dict(bindings), Claims(bindings)
        self._names = None

    def interfaces(self, vr: str) -> tuple[str, ...]:
        """Return the interfaces that the router had at the last reading."""
        return self._owned.get(vr, ())

    def owned(self, names: Iterable[str]) -> dict[str, tuple[str, ...]]:
        """Return the router of each existing interface, before there are any counts."""
        self._map(names)
        self._names = None  # the first rates define which interfaces each router must have
        return {vr: self._owned.get(vr, ()) for vr in self._bindings}

    def aggregate(self, rates: Mapping[str, InterfaceRate | Fault]) -> dict[str, Reading]:
        """Return a reading for every router, summed over its interfaces (paper, 8.1)."""
        if self._names is None or rates.keys() != self._names:
            self._map(rates.keys())
            self._expect(rates)
            self._missing = {vr: found for vr in self._bindings if (found := self._miss(vr, rates))}
        read = self._guard.each(
            "collect", {vr: vr for vr in self._bindings}, lambda vr: self._reading(vr, rates)
        )
        return {vr: _or_blind(found, self._owned.get(vr, ())) for vr, found in read.items()}

    def _map(self, names: Iterable[str]) -> None:
        present = frozenset(names)
        self._owned, self._contested = {}, {}
        for name in sorted(present):
            owners = self._claims.owners(name)
            target = self._owned if len(owners) == 1 else self._contested
            for vr in owners:
                target[vr] = (*target.get(vr, ()), name)
        self._names = present

    def _expect(self, rates: Mapping[str, object]) -> None:
        """Remember the most interfaces that each router had; a router without any starts again.

        Interfaces that just disappeared do not add to their replacements.
        """
        for vr in self._bindings:
            owned = self._owned.get(vr, ())
            now = tuple(name for name in owned if rates[name] is not Fault.VANISHED)
            if not now:
                self._full.pop(vr, None)
            elif len(now) >= len(self._full.get(vr, ())):
                self._full[vr] = now

    def _miss(self, vr: str, rates: Mapping[str, object]) -> tuple[str, ...]:
        """Return the missing interfaces: named ones, and those it had."""
        expected = {*self._claims.named[vr], *self._full.get(vr, ())}
        return tuple(sorted(name for name in expected if name not in rates))

    def _reading(self, vr: str, rates: Mapping[str, InterfaceRate | Fault]) -> Reading:
        side = self._bindings[vr].side
        names = self._owned.get(vr, ())
        contested = self._contested.get(vr, ())
        problems = [f"{name}: claimed by several routers" for name in contested]
        missing = self._missing.get(vr, ())
        problems += [f"{name}: not there" for name in missing]
        sent, received = _Sum(), _Sum()
        for name in names:
            found = rates[name]
            if isinstance(found, Fault):
                problems.append(f"{name}: {found.value}")
                continue
            if side is Side.HOST:
                sent.add(found.rx, found.rx_bits)
                received.add(found.tx, found.tx_bits, found.tx_dropped)
            else:
                sent.add(found.tx, found.tx_bits)
                received.add(found.rx, found.rx_bits, found.rx_dropped)
        if not names and not problems:
            problems.append("no interface matches")
        if problems:
            incomplete = bool(names and (missing or contested))
            least, bits = (sent.pps, sent.bps) if incomplete else (None, None)
            return Reading(None, None, names, tuple(problems), incomplete, least, at_least_bps=bits)
        return Reading(
            sent.pps, received.pps, names, throughput_bps=sent.bps, offered_bps=received.bps
        )


def _or_blind(found: Reading | Unforeseen, interfaces: tuple[str, ...]) -> Reading:
    """Return a reading; after a failure, one that contains only the failure."""
    if not isinstance(found, Unforeseen):
        return found
    return Reading(None, None, interfaces, (found.words,))
