"""Accounts of a router's promise: what passed beyond it, and what is missing.

The promise bounds every window: at most ``setpoint * W + burst`` is delivered in W seconds, and at
least ``setpoint * W - burst`` where that much is offered. This needs no look at individual windows:
``max(0, surplus + delivered - promised)`` is the largest surplus of all windows that end now, and
likewise for the deficit. The part beyond the burst is counted and removed, so that each packet
counts once.
"""

import math
from dataclasses import dataclass, field
from typing import TypeGuard

import msgspec
from msgspec.structs import replace

from common.setpoint import Setpoint, Unit
from common.units import Seconds

ROUNDING = 1e-9
"""Tolerance for floating-point sums, as a share of a period's promise and burst."""


class Account(msgspec.Struct, frozen=True, gc=False):
    """The account of one router; in packets or bits, as its setpoint."""

    surplus: float = 0.0
    """The largest delivery beyond the setpoint in any window that ends now."""
    deficit: float = 0.0
    """The largest amount wanted and not delivered in any such window."""
    over: float = 0.0
    """Total beyond the setpoint by more than the burst."""
    under: float = 0.0
    """Total missing by more than the burst."""
    breach_s: Seconds = Seconds(0.0)
    """The time in which either grew."""


def judged(
    account: Account,
    setpoint: Setpoint,
    dt: Seconds,
    *,
    delivered: float | None,
    offered: float | None,
) -> Account:
    """Return the account after a period.

    Unknown periods count neither for nor against the router: windows end before and start after
    them. A smaller burst does not apply to what passed under the larger one.

    Args:
        account: the previous account.
        setpoint: the setpoint promised in this period.
        dt: its length; 0 changes nothing.
        delivered: throughput in it, in packets or bits.
        offered: what reached the router; if its shield dropped, what the shield passed.
    """
    if not 0 < dt < math.inf:
        return account
    promised, burst = setpoint.rate * dt, setpoint.allowance
    slack = burst + ROUNDING * (promised + burst)
    surplus = deficit = over = under = 0.0
    if _is_known(delivered):
        surplus = max(0.0, min(account.surplus, burst) + delivered - promised)
        if surplus > slack:
            over = surplus - burst
        if _is_known(offered):
            wanted = min(offered, promised)
            deficit = max(0.0, min(account.deficit, burst) + wanted - delivered)
            if deficit > slack:
                under = deficit - burst
    breach_s = account.breach_s + dt if over or under else account.breach_s
    return Account(
        min(surplus, burst),
        min(deficit, burst),
        account.over + over,
        account.under + under,
        Seconds(breach_s),
    )


def _is_known(amount: float | None) -> TypeGuard[float]:
    return amount is not None and 0 <= amount < math.inf


@dataclass
class Accounting:
    """The accounts of one router over time: one for each unit of its setpoints."""

    accounts: dict[Unit, Account] = field(default_factory=dict)
    promised: Setpoint | None = None
    """The promise of the current period; None where there is none."""
    since: Seconds = Seconds(0.0)
    """Start of the current period."""

    def begin(self, promised: Setpoint | None, now: Seconds) -> None:
        """Begin a period; windows end at a gap in the promise, or at a change of unit."""
        self.since = now
        if promised is self.promised:
            return
        if promised is not None:
            account = self.accounts.get(promised.unit, Account())
            same = self.promised is not None and self.promised.unit is promised.unit
            self.accounts[promised.unit] = account if same else _without_windows(account)
        self.promised = promised

    def end(self, throughput: float | None, reached: float | None, now: Seconds) -> None:
        """End the period with its rates, in packets/s or bits/s as the setpoint."""
        setpoint, dt = self.promised, Seconds(now - self.since)
        if setpoint is None:
            return
        self.accounts[setpoint.unit] = judged(
            self.accounts[setpoint.unit],
            setpoint,
            dt,
            delivered=None if throughput is None else throughput * dt,
            offered=None if reached is None else reached * dt,
        )

    @property
    def breach_s(self) -> float | None:
        """The time in breach, in either unit; None where nothing was promised yet."""
        if not self.accounts:
            return None
        return sum(account.breach_s for account in self.accounts.values())

    def over(self, unit: Unit) -> float | None:
        """Return the total surplus, in packets or bits; None where nothing was promised in it."""
        account = self.accounts.get(unit)
        return None if account is None else account.over

    def under(self, unit: Unit) -> float | None:
        """Return the total deficit, likewise."""
        account = self.accounts.get(unit)
        return None if account is None else account.under


def _without_windows(account: Account) -> Account:
    return replace(account, surplus=0.0, deficit=0.0)
