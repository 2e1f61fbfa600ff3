"""Input of a round, state kept between rounds, and result of a round.

Values made for every router in every round are `msgspec.Struct`s, which take a sixth of the time of
a frozen dataclass. They have no cycles, so `gc=False` spares the garbage collector.
"""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

import msgspec

from policer.contracts.contract import Contract
from policer.contracts.ladder import Escalation, Punishment, Step, kept_height
from policer.decide.engagement import EngagementRules, EngagementState
from policer.decide.evidence import Evidence, Rules
from policer.decide.packet_size import UNKNOWN, Size
from policer.decide.starvation import NOT_STARVING, Starving
from policer.decide.telemetry import HostTelemetry

UNPROMISED = Contract(guarantee_pps=0.0, measures=(Step.LIMIT,))
"""Terms of a router without a contract: a share of what is left, which nothing takes away.

Its host may shield it, which needs `limit`, but it has no ladder (`ladder_of`).
"""


@dataclass(frozen=True, slots=True)
class Policy:
    """Thresholds, escalation times and rules of evidence; the same for all hosts."""

    engagement: EngagementRules = field(default_factory=EngagementRules)
    rules: Rules = field(default_factory=Rules)
    escalation: Escalation = field(default_factory=Escalation)
    dry_run: bool = False
    """Whether misbehaviour is only reported, regardless of the contracts."""
    may_climb: bool = True
    """Whether ladders may be climbed; False while the brake is on (`policer.decide.brake`)."""


@dataclass(frozen=True, slots=True)
class HostView:
    """Input of a round."""

    capacity_pps: float
    contracts: Mapping[str, Contract]
    telemetry: HostTelemetry
    unled: AbstractSet[str] = frozenset()
    """Routers for which the daemon refused the last setpoint."""
    unlimited: AbstractSet[str] = frozenset()
    """Routers for which it refused the last limit."""
    packets_only: AbstractSet[str] = frozenset()
    """Routers that it does not hold at setpoints in bits/s."""

    def refuses(self, vr: str, step: Step | None) -> bool:
        """Whether the daemon refuses what a step needs: a refused step does not count as taken."""
        return vr in self.unled or (step is Step.LIMIT and vr in self.unlimited)


class Shield(msgspec.Struct, frozen=True, gc=False):
    """Whether the host drops what is sent into a router far beyond its setpoint.

    The router loses nothing, since it would drop these packets itself; the host saves the work.
    """

    up: bool = False
    rounds: int = 0
    """Rounds in a row that contradict the current value."""


class Demand(msgspec.Struct, frozen=True, gc=False):
    """Known demand of one router; the fields are those of `RouterState`."""

    saved: float
    wanted: float
    known_at: float | None
    needed: float
    reserve: float
    seen_at: float
    configured: bool


class RouterState(msgspec.Struct, frozen=True, gc=False):
    """State of one router, kept from round to round."""

    evidence: Evidence = Evidence()
    punishment: Punishment = Punishment()
    saved: float = 0.0
    """Packets that it may forward above its ceiling; less than 0 is a debt."""
    shield: Shield = Shield()
    wanted: float = 0.0
    """What it could use when that was last known, in packets/s."""
    known_at: float | None = None
    """When `wanted` was known."""
    needed: float = 0.0
    """The part of its guarantee that it has needed, in packets/s."""
    reserve: float = 0.0
    """The part of its guarantee that is not lent, in packets/s: a full host hides its need."""
    seen_at: float | None = None
    """When it was last in the telemetry."""
    configured: bool = False
    """Whether the daemon's configuration limits it when no lease does."""
    starving: Starving = NOT_STARVING
    """Whether it has a guarantee and lacks CPU that its cap allows."""
    size: Size = UNKNOWN
    """Size of its packets, if its contract is in bits/s."""


BELOW_THE_GUARANTEE = (Step.PAUSE, Step.STOP)
"""Steps that leave a router less than its guarantee."""
NEW_ROUTER = RouterState()
"""State of a router that was never seen."""


@dataclass(frozen=True, slots=True)
class HostState:
    """State of one host, kept from round to round."""

    at: float = 0.0
    """Time of the last round, in seconds of the policer's clock."""
    standing: EngagementState = field(default_factory=EngagementState)
    routers: Mapping[str, RouterState] = field(default_factory=dict)
    host_clock: float | None = None
    """The tick of the last round; the same tick is not counted again."""
    work: float = 0.0
    """How much of the capacity the routers used."""
    full_at: float = float("inf")
    """The work at which the host seemed full, although below its configured capacity."""


class Order(msgspec.Struct, frozen=True, gc=False):
    """Target state of one router."""

    setpoint_pps: float | None = None
    """None releases it, unless the order is in bits/s."""
    punishment: bool = False
    limit_pps: float | None = None
    """The most that the host may send into it; None is no limit."""
    burst: float | None = None
    """Packets, or bits like the setpoint, allowed beyond it; None is 0.2 s of the setpoint."""
    setpoint_bps: float | None = None
    """Replaces the setpoint in packets/s: the ceiling, on a host that is not contended."""

    @property
    def holds(self) -> bool:
        """Whether the order holds the router at a setpoint."""
        return self.setpoint_pps is not None or self.setpoint_bps is not None


LET_GO = Order()
"""The order of a released router."""


@dataclass(frozen=True, slots=True)
class Note:
    """A message for the operator's log."""

    kind: str
    words: str
    vr: str | None = None


@dataclass(frozen=True, slots=True)
class Round:
    """Result of a round."""

    state: HostState
    orders: Mapping[str, Order]
    notes: tuple[Note, ...]
    convicted: tuple[str, ...] = ()
    """Routers that took the first step of their ladder; the brake counts them."""


def only_reported(contract: Contract, policy: Policy) -> bool:
    """Whether a router's misbehaviour is reported without any measure."""
    return policy.dry_run or contract.dry_run


def ladder_of(contract: Contract) -> tuple[Step, ...]:
    """Return the steps that a router may climb.

    There are none without a contract, or if the contract excludes punishment.
    """
    # By identity: an operator's contract with the same terms does have a ladder.
    none = contract is UNPROMISED or contract.punish == "never"
    return () if none else contract.measures


def may_punish(contract: Contract, *, contended: bool) -> bool:
    """Whether a router may be punished on a host that is contended or not."""
    return contract.punish == "always" or (contract.punish == "when_harming" and contended)


def steps_in_force(
    contract: Contract, state: RouterState, policy: Policy, *, contended: bool
) -> tuple[Step, ...]:
    """Return the measures in force now; none if they are, or were, only reported.

    On a host that is not believed, the contract may have changed since the step was taken. Nothing
    harder than that step is in force, and nothing of a dry run. On a host with spare CPU no measure
    goes below the guarantee, unless the contract allows it.

    Args:
        contract: of the router.
        state: of the router.
        policy: the current one.
        contended: whether the host is contended.
    """
    standing = state.punishment
    if not standing.height or standing.dry or only_reported(contract, policy):
        return ()
    steps = ladder_of(contract)
    steps = steps[: kept_height(standing, steps)]
    if may_punish(contract, contended=contended):
        return steps
    return tuple(step for step in steps if step not in BELOW_THE_GUARANTEE)
