"""One limiter for all interfaces: the shield where it can be, a TBF where it cannot."""

from collections.abc import Iterable, Sequence

from common.units import PacketsPerSecond
from xtc.errors import Denied, Gone, Permanent
from xtc.shield.interface import Shield
from xtc.shield.methods import Choice, choose
from xtc.shield.tbf import Limiter


class BestLimiter:
    """Limits in packets/s, of which each interface gets the cheapest way that it allows."""

    def __init__(self, shield: Shield | None = None, tbf: Limiter | None = None) -> None:
        self._shield, self._tbf = shield or Shield(), tbf or Limiter()
        self._reasons: dict[str, str] = {}

    def limit(self, interface: str, rate: PacketsPerSecond) -> None:
        """Limit what the host sends through an interface, in packets/s.

        Raises:
            Gone: there is no such interface.
            Denied: a capability is missing.
            Permanent: neither way is possible; the message names both obstacles.
        """
        try:
            self._shield.limit(interface, rate)
        except Gone:
            raise
        except Permanent as error:  # a daemon without the right to call bpf(2) may still set a TBF
            self._limit_by_tbf(interface, rate, error)
        else:
            self._reasons.pop(interface, None)
            self._tbf.lift(interface)  # an earlier one, which would limit a second time

    def lift(self, interface: str) -> None:
        """Remove our limit, whichever way it was set; none is done already.

        Raises:
            Denied: no CAP_NET_ADMIN.
        """
        self._reasons.pop(interface, None)
        self._shield.lift(interface)
        self._tbf.lift(interface)

    def current(self, interface: str) -> PacketsPerSecond | None:
        """Return the limit in force, in packets/s, None where there is none of ours.

        Raises:
            Gone: there is no such interface.
        """
        rate = self._by_shield(interface)
        return self._tbf.current(interface) if rate is None else rate

    def dropped(self, interfaces: Iterable[str]) -> dict[str, int]:
        """Return what our limit on each interface has dropped; one without a limit is left out.

        Raises:
            Transient: the kernel did not tell.
        """
        names = tuple(interfaces)
        counts = self._dropped_by_shield(names)
        rest = [name for name in names if name not in counts]
        return counts | (self._tbf.dropped(rest) if rest else {})

    def choice(self, interface: str) -> Choice:
        """Return the way in which an interface would be limited, and why not a cheaper one."""
        return choose(self._shield.look(interface, self._tbf.obstacle(interface)))

    def reason(self, interface: str) -> str:
        """Say why a limit is a TBF and not the shield, "" where it is the shield or none."""
        return self._reasons.get(interface, "")

    def _limit_by_tbf(self, interface: str, rate: PacketsPerSecond, why: Permanent) -> None:
        try:
            self._tbf.limit(interface, rate)
        except (Denied, Gone):
            raise
        except Permanent as error:
            raise Permanent(interface, f"{why.problem}; {error.problem}", error.fix) from error
        self._reasons[interface] = why.problem

    def _by_shield(self, interface: str) -> PacketsPerSecond | None:
        try:
            return self._shield.current(interface)
        except Permanent:
            return None  # without BPF there is no limit by it

    def _dropped_by_shield(self, names: Sequence[str]) -> dict[str, int]:
        try:
            return self._shield.dropped(names)
        except Permanent:
            return {}
