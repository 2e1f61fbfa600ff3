"""Whether a router lacks CPU that its cap allows, reported after several such rounds; pure."""

import msgspec

from policer.contracts.contract import Contract
from xtc.wire import Finding, Report

SURE, OVER = 5, 30
"""Rounds in a row after which a router is reported as starved, and as no longer starved."""


class Starving(msgspec.Struct, frozen=True, gc=False):
    """Whether a router with a guarantee starves."""

    on: bool = False
    rounds: int = 0
    """Rounds in a row that contradict the current value."""


NOT_STARVING = Starving()


def starving_after(last: Starving, contract: Contract, report: Report) -> Starving:
    """Return whether a router starves after another round; one without a guarantee never does.

    A daemon reports a router as starved if its cap does not bind and it forwards less than it is
    sent. Then another process uses its CPU, or the router itself drops packets.
    """
    if contract.guarantee_pps == 0:
        return NOT_STARVING
    if (report.finding is Finding.STARVED) is last.on:
        return last if last.rounds == 0 else Starving(last.on)
    rounds = last.rounds + 1
    if rounds >= (OVER if last.on else SURE):
        return Starving(not last.on)
    return Starving(last.on, rounds)
