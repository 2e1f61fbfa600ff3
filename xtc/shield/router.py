"""One limit for all interfaces of a router together: the same BPF program on each of them.

A setpoint is a sum over a router's interfaces, so the limit is one, too. The interfaces share the
program, and with it the bucket, on any number of CPUs. A flood through one of them must not block
the others: each may always take an equal part, and what the others leave.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from common.setpoint import Setpoint, Unit
from common.units import BitsPerSecond, PacketsPerSecond
from xtc.errors import ActuatorError, Denied, Gone
from xtc.kernel import bpf
from xtc.kernel.clsact import Direction
from xtc.measure.collector import Side
from xtc.shield.bucket import Terms, holding, in_bits, in_packets
from xtc.shield.exemptions import Exemptions
from xtc.shield.filters import OBJECT, SHIELD, Filters, explain, explained, index_of, is_current
from xtc.shield.interface import EXEMPT_RATE, Bucket, Change
from xtc.shield.spares import Spares

LEAST_EXEMPT: Final = 50.0
"""Packets/s of routing traffic that pass the shield of a router with the smallest setpoint."""
SMALLEST_BITS: Final = 64 * 8
"""Bits of an Ethernet frame."""
SHARERS: Final = 256
"""How many interfaces have a separate part (`bucket.bpf.h`); others take what is left."""
_DIRECTIONS: Final[Mapping[Side, Direction]] = {
    Side.HOST: Direction.EGRESS,
    Side.ROUTER: Direction.INGRESS,
}
"""Direction of packets to the router, by the counted end of the interface."""
_OTHER: Final[Mapping[Side, Side]] = {Side.HOST: Side.ROUTER, Side.ROUTER: Side.HOST}


class RouterShields:
    """Sets one limit on all of a router's interfaces in the calling thread's namespace."""

    def __init__(
        self,
        exempt: Exemptions | None = None,
        exempt_rate: PacketsPerSecond = EXEMPT_RATE,
        *,
        program: Path = OBJECT,
    ) -> None:
        """Exempt, by default, the protocols between neighbouring routers."""
        self._bucket = Bucket(exempt, exempt_rate)
        self._filters = {direction: Filters(SHIELD, direction, program) for direction in Direction}
        self._spares = Spares(self._filters[Direction.EGRESS].load)
        self._programs: dict[str, bpf.Program] = {}
        """Programs by owner."""
        self._sharing: dict[str, tuple[int, ...]] = {}
        """Interface numbers by owner."""
        self._shared: dict[str, tuple[Setpoint, tuple[int, ...]]] = {}
        """The last rate written for each owner, and its interfaces."""
        self._sides: dict[str, Side] = {}
        """The end of each owner's interfaces."""

    def load_ahead(self) -> None:
        """Have the kernel verify the programs of the next owners in advance."""
        self._spares.begin()

    def limit(
        self,
        owner: str,
        interfaces: Sequence[str],
        rate: Setpoint,
        side: Side = Side.HOST,
    ) -> dict[str, ActuatorError]:
        """Limit all interfaces together to a rate; an existing limit is changed in place.

        Returns:
            The interfaces that could not be limited, and why.
        """
        problems: dict[str, ActuatorError] = {}
        numbers: list[int] = []
        for interface in interfaces:
            try:
                with explained(interface):
                    if self._sides.get(owner) is not side:
                        self._filters[_DIRECTIONS[_OTHER[side]]].remove(interface)
                    terms = _terms(rate, len(interfaces))
                    self._bear(owner, interface, terms, _DIRECTIONS[side])
                    numbers.append(index_of(interface))
            except ActuatorError as error:
                problems[interface] = error
        if numbers:
            self._sides[owner] = side
            with explained(owner):
                self._share(owner, rate, numbers)
        return problems

    def _share(self, owner: str, rate: Setpoint, numbers: Sequence[int]) -> None:
        """Guarantee each interface an equal part of the limit."""
        if self._shared.get(owner) == (rate, tuple(numbers)):
            return
        program, terms = self._programs[owner], _terms(rate, len(numbers))
        before = frozenset(self._sharing.get(owner, ())[:SHARERS])
        now = frozenset(numbers[:SHARERS])
        self._sharing[owner] = tuple(numbers)
        change = Change(now - before, before - now)
        self._bucket.exempt(program, _most_exempt(rate))
        self._bucket.share(program, _share_of(terms, len(numbers)), change)
        self._bucket.change(program, terms)
        self._shared[owner] = rate, tuple(numbers)

    def change(self, owner: str, rate: Setpoint) -> None:
        """Change rate and burst of an owner's limit on all interfaces.

        Raises:
            Transient: the kernel refuses.
        """
        with explained(owner):
            self._share(owner, rate, self._sharing[owner])

    def dropped(self, owner: str) -> int | None:
        """Return how many packets were dropped on all interfaces, None if no limit was set.

        Raises:
            Transient: the kernel did not answer.
        """
        program = self._programs.get(owner)
        if program is None:
            return None
        try:  # without `explained`, which is as slow as the kernel call
            return self._bucket.dropped(program)
        except OSError as error:
            raise explain(owner, error) from error

    def overruled(self, interfaces: Iterable[str], side: Side = Side.HOST) -> str:
        """Return which filters of others decide before shield and limit, "" if none does.

        Raises:
            ActuatorError: an interface is gone, or the kernel did not answer.
        """
        found = []
        for interface in interfaces:
            with explained(interface):
                earlier = self._filters[_DIRECTIONS[side]].foreign(interface, SHIELD)
                found += [f"{what} decides before xtc's on {interface}" for _, what in earlier]
        return "; ".join(found)

    def lift(self, interface: str) -> None:
        """Remove the limit from an interface, if it exists and has one.

        Raises:
            Denied: no CAP_NET_ADMIN.
            Unsupported: there is one, and libbpf, which removes it, is missing.
        """
        for filters in self._filters.values():
            try:
                with explained(interface):
                    filters.remove(interface)
            except Gone:
                filters.forget(interface)
            except Denied:
                raise
            except ActuatorError:
                with explained(interface):
                    if filters.is_left(interface):
                        raise

    def forget(self, owner: str) -> None:
        """Forget an owner without limits on its interfaces."""
        self._programs.pop(owner, None)
        self._sharing.pop(owner, None)
        self._shared.pop(owner, None)
        self._sides.pop(owner, None)

    def _bear(self, owner: str, interface: str, terms: Terms, direction: Direction) -> None:
        filters, program = self._filters[direction], self._programs.get(owner)
        there = filters.ours(interface)
        if program is None:
            program = there if self._is_free(there) else None
            program = self._spares.take() if program is None else program
            self._bucket.write(program, terms)
            self._programs[owner] = program
            self._shared.pop(owner, None)
        if there is None or there.id != program.id:
            filters.put(interface, program)

    def _is_free(self, program: bpf.Program | None) -> bool:
        """Whether a program may serve an owner: no other owner has it."""
        if program is None or not is_current(program):
            return False
        return all(program.id != other.id for other in self._programs.values())


def _most_exempt(rate: Setpoint) -> PacketsPerSecond:
    """Return the maximum rate of routing traffic: not a multiple of the router's setpoint."""
    packets = rate.rate / SMALLEST_BITS if rate.unit is Unit.BITS else rate.rate
    return PacketsPerSecond(max(LEAST_EXEMPT, packets))


def _terms(rate: Setpoint, interfaces: int) -> Terms:
    """Return the rate and its burst as a bucket that this many interfaces share."""
    if rate.unit is Unit.BITS:
        return holding(in_bits(BitsPerSecond(rate.rate)), rate.allowance, interfaces)
    return holding(in_packets(PacketsPerSecond(rate.rate)), rate.allowance, interfaces)


def _share_of(terms: Terms, interfaces: int) -> Terms:
    """Return what one of several interfaces may take regardless of the others."""
    if interfaces == 1:
        return Terms()
    cost, per_byte = interfaces * terms.per_packet, interfaces * terms.per_byte
    return Terms(cost, per_byte, max(terms.depth // 2, cost))
