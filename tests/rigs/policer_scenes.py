"""Floods on a simulated host, and what is asked of the closed loop afterwards."""

from collections.abc import Callable, Sequence
from itertools import pairwise

from policer_plant import Frame, PolicedHost, Router, SimulatedHost, between, steady

from policer.contracts.contract import Contract
from policer.contracts.ladder import Step

GOLD = Contract(guarantee_pps=50e3)
PLAIN = Contract(guarantee_pps=10e3)
MILD = Contract(guarantee_pps=10e3, measures=(Step.WARN,))
LIMITED = Contract(guarantee_pps=10e3, measures=(Step.WARN, Step.LIMIT))
FLOOD = 300e3
RESTORED_S = 5
"""The promise: from a flood to every guarantee restored."""


def flooded(
    begin: float = 20,
    end: float = 1e9,
    *,
    gold: Router | None = None,
    contract: Contract = PLAIN,
    noise: float = 0.0,
    declared: float | None = None,
    loss: float = 0.0,
    counts_limited: bool = True,
    hides_drops: bool = True,
    seed: int = 1,
) -> PolicedHost:
    """Return gold, who keeps to its 45 kp/s, beside a router that floods for a while."""
    routers = {
        "gold": gold or Router(steady(45e3)),
        "flood": Router(between(begin, end, FLOOD, otherwise=10e3)),
        "silver": Router(steady(5e3)),
    }
    host = SimulatedHost(
        routers, noise=noise, counts_limited=counts_limited, hides_drops=hides_drops, seed=seed
    )
    if not hides_drops:
        host.delivery = 0.1
    contracts = {"gold": GOLD, "flood": contract, "silver": Contract(guarantee_pps=5e3)}
    return PolicedHost(host, contracts, declared=declared, loss=loss)


def changes(frames: Sequence[Frame]) -> int:
    """Count how often routers were engaged or let go."""
    return sum(a.engaged is not b.engaged for a, b in pairwise(frames))


def mean(frames: Sequence[Frame], what: Callable[[Frame], float]) -> float:
    return sum(map(what, frames)) / len(frames)


def gold_of(frame: Frame) -> float:
    return frame.forwarded["gold"]


def heights(frames: Sequence[Frame], vr: str = "flood") -> list[int]:
    return [frame.round.state.routers[vr].punishment.height for frame in frames]


def steps(values: Sequence[int]) -> list[int]:
    """Return what the values went through, without repetitions."""
    return [b for a, b in zip([None, *values], values, strict=False) if a != b]


def punished_without_cause(frames: Sequence[Frame]) -> bool:
    return any(
        state.punishment.height
        for frame in frames
        for vr, state in frame.round.state.routers.items()
        if vr != "flood"
    )
