"""One limiter for all interfaces: the shield where possible, otherwise a TBF."""

from collections.abc import Iterable, Sequence

from common.units import PacketsPerSecond
from xtc.errors import Denied, Gone, Permanent
from xtc.shield.interface import Shield
from xtc.shield.methods import Choice, choose
from xtc.shield.tbf import Limiter


class BestLimiter:
    """Limits in packets/s, in the cheapest way that each interface allows."""

    def __init__(self, shield: Shield | None = None, tbf: Limiter | None = None) -> None:
        self._shield, self._tbf = shield or Shield(), tbf or Limiter()
        self._reasons: dict[str, str] = {}

    def limit(self, interface: str, rate: PacketsPerSecond) -> None:
        """Limit traffic from the host through an interface, in packets/s.

        Raises:
            Gone: there is no such interface.
            Denied: a capability is missing.
            Permanent: neither way is possible; the message names both obstacles.
        """
        try:
            self._shield.limit(interface, rate)
        except Gone:
            raise
        except Permanent as error:  # without the right to call bpf(2), a daemon may still set a TBF
            self._limit_by_tbf(interface, rate, error)
        else:
            self._reasons.pop(interface, None)
            self._tbf.lift(interface)  # an earlier one would limit a second time

    def lift(self, interface: str) -> None:
        """Remove our limit of either kind, if there is one.

        Raises:
            Denied: no CAP_NET_ADMIN.
        """
        self._reasons.pop(interface, None)
        self._shield.lift(interface)
        self._tbf.lift(interface)

    def current(self, interface: str) -> PacketsPerSecond | None:
        """Return the limit in force, in packets/s, None if there is none of ours.

        Raises:
            Gone: there is no such interface.
        """
        rate = self._by_shield(interface)
        return self._tbf.current(interface) if rate is None else rate

    def dropped(self, interfaces: Iterable[str]) -> dict[str, int]:
        """Return the drops of our limit on each interface; those without a limit are omitted.

        Raises:
            Transient: the kernel did not answer.
        """
        names = tuple(interfaces)
        counts = self._dropped_by_shield(names)
        rest = [name for name in names if name not in counts]
        return counts | (self._tbf.dropped(rest) if rest else {})

    def choice(self, interface: str) -> Choice:
        """Return the way to limit an interface, and why no cheaper one is used."""
        return choose(self._shield.look(interface, self._tbf.obstacle(interface)))

    def reason(self, interface: str) -> str:
        """Return why a limit is a TBF and not the shield, "" for the shield or no limit."""
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
            return None  # without BPF, there is no shield

    def _dropped_by_shield(self, names: Sequence[str]) -> dict[str, int]:
        try:
            return self._shield.dropped(names)
        except Permanent:
            return {}
