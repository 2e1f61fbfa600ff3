"""Whether a router keeps its promise: an account of what passed beyond it, and of what is missing.

The promise bounds every window: at most ``setpoint * W + burst`` is delivered in W seconds, and at
least ``setpoint * W - burst`` where that much is offered. No window has to be looked at for it:
``max(0, surplus + delivered - promised)`` is the largest surplus of all windows that end now, and
the same holds of the deficit. What exceeds the burst is counted and cut off, so that each packet
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
"""The share of a period's promise and burst that sums of floating point may be off."""


class Account(msgspec.Struct, frozen=True, gc=False):
    """What is known of one router; in packets or bits, as its setpoint."""

    surplus: float = 0.0
    """The most that was delivered beyond the setpoint in any window that ends now."""
    deficit: float = 0.0
    """The most that was wanted and not delivered in any such window."""
    over: float = 0.0
    """What exceeded the setpoint by more than the burst, in all."""
    under: float = 0.0
    """What was missing beyond the burst, in all."""
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

    What is not known is counted neither for nor against the router: windows end before it and
    begin after it. A burst that became smaller does not judge what passed under the larger one.

    Args:
        account: what was known before.
        setpoint: what was promised in this period.
        dt: its length; without one nothing happens.
        delivered: what was forwarded in it, in packets or bits.
        offered: what reached the router; where its shield dropped, that is what it let by.
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
    """The accounts of one router as periods pass: one for each unit that it was held in."""

    accounts: dict[Unit, Account] = field(default_factory=dict)
    promised: Setpoint | None = None
    """What is promised in the period that runs; None where nothing is."""
    since: Seconds = Seconds(0.0)
    """When that period began."""

    def begin(self, promised: Setpoint | None, now: Seconds) -> None:
        """Begin a period; no window goes on over what was not promised, or in another unit."""
        self.since = now
        if promised is self.promised:
            return
        if promised is not None:
            account = self.accounts.get(promised.unit, Account())
            same = self.promised is not None and self.promised.unit is promised.unit
            self.accounts[promised.unit] = account if same else _without_windows(account)
        self.promised = promised

    def end(self, throughput: float | None, reached: float | None, now: Seconds) -> None:
        """End the period with what it showed, in packets/s or bits/s as the setpoint."""
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
        """The time in breach, whatever the unit; None where nothing was promised yet."""
        if not self.accounts:
            return None
        return sum(account.breach_s for account in self.accounts.values())

    def over(self, unit: Unit) -> float | None:
        """Return what was too much, in packets or bits; None where none was promised in that."""
        account = self.accounts.get(unit)
        return None if account is None else account.over

    def under(self, unit: Unit) -> float | None:
        """Return what was missing, likewise."""
        account = self.accounts.get(unit)
        return None if account is None else account.under


def _without_windows(account: Account) -> Account:
    return replace(account, surplus=0.0, deficit=0.0)
