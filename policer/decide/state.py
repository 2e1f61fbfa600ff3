"""What a round is given, what is remembered from round to round, and what it decides.

What is made for every router in every round is a `msgspec.Struct`, which takes a sixth of a frozen
dataclass's time, and `gc=False`: such values are in no cycles, so that the garbage collector need
not look at them.
"""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

import msgspec

from policer.contracts.contract import Contract
from policer.contracts.ladder import Patience, Punishment, Step, kept_height
from policer.decide.engagement import Habits, Standing
from policer.decide.evidence import Evidence, Rules
from policer.decide.packet_size import UNKNOWN, Size
from policer.decide.starvation import NOT_STARVING, Starving
from policer.decide.telemetry import Sight

UNPROMISED = Contract(guarantee_pps=0.0, measures=(Step.LIMIT,))
"""What a router without a contract has: a share of what is left, and nobody to take it away.

It may be shielded, which needs `limit`; a ladder it has none (`ladder_of`).
"""


@dataclass(frozen=True, slots=True)
class Policy:
    """How eager, how patient, and by what evidence; the same for all hosts."""

    habits: Habits = field(default_factory=Habits)
    rules: Rules = field(default_factory=Rules)
    patience: Patience = field(default_factory=Patience)
    dry_run: bool = False
    """Whether misbehaviour is only reported, whatever contracts say."""
    may_climb: bool = True
    """Whether ladders may be climbed at all; off while the brake is on (`policer.decide.brake`)."""


@dataclass(frozen=True, slots=True)
class HostView:
    """What a round is given."""

    capacity_pps: float
    contracts: Mapping[str, Contract]
    sight: Sight
    unled: AbstractSet[str] = frozenset()
    """Routers whose last setpoints the daemon refused."""
    unlimited: AbstractSet[str] = frozenset()
    """Routers whose last limits it refused."""
    packets_only: AbstractSet[str] = frozenset()
    """Routers that it does not hold at setpoints in bits/s."""

    def refuses(self, vr: str, step: Step | None) -> bool:
        """Whether the daemon would not do what a step takes: a refused step is none taken."""
        return vr in self.unled or (step is Step.LIMIT and vr in self.unlimited)


class Shield(msgspec.Struct, frozen=True, gc=False):
    """Whether the host drops what is sent into a router far beyond its setpoint.

    It takes nothing from the router, which would drop it itself, and spares the host the work.
    """

    up: bool = False
    rounds: int = 0
    """Rounds in a row that spoke for the other."""


class Demand(msgspec.Struct, frozen=True, gc=False):
    """What is known of one router's demand; the fields are those of `RouterState`."""

    saved: float
    wanted: float
    known_at: float | None
    needed: float
    reserve: float
    seen_at: float
    configured: bool


class RouterState(msgspec.Struct, frozen=True, gc=False):
    """What is remembered of one router from round to round."""

    evidence: Evidence = Evidence()
    punishment: Punishment = Punishment()
    saved: float = 0.0
    """Packets that it may forward above its ceiling; less than 0 is a debt."""
    shield: Shield = Shield()
    wanted: float = 0.0
    """What it could use when that was last known, in packets/s."""
    known_at: float | None = None
    """When that was."""
    needed: float = 0.0
    """What it has shown to need of its guarantee, in packets/s."""
    reserve: float = 0.0
    """What of its guarantee is not lent, in packets/s: a full host hides what it needs."""
    seen_at: float | None = None
    """When it was last in the telemetry."""
    configured: bool = False
    """Whether its daemon's configuration holds it where no lease does."""
    starving: Starving = NOT_STARVING
    """Whether it has a guarantee and lacks CPU that its cap allows."""
    size: Size = UNKNOWN
    """Of its packets, where its contract is in bits/s."""


BELOW_THE_GUARANTEE = (Step.PAUSE, Step.STOP)
"""Steps that leave a router less than it was promised."""
NEW_ROUTER = RouterState()
"""What is remembered of a router that was never seen."""


@dataclass(frozen=True, slots=True)
class HostState:
    """What is remembered of one host."""

    at: float = 0.0
    """When the last round was, in seconds of the policer's clock."""
    standing: Standing = field(default_factory=Standing)
    routers: Mapping[str, RouterState] = field(default_factory=dict)
    host_clock: float | None = None
    """The tick that the last round saw; one that was seen counts for nothing again."""
    work: float = 0.0
    """What the routers took of the capacity."""
    full_at: float = float("inf")
    """The work at which the host seemed full though its capacity says otherwise."""


class Order(msgspec.Struct, frozen=True, gc=False):
    """How one router is to stand from now on."""

    setpoint_pps: float | None = None
    """None lets it go, or is of an order in bits/s."""
    punishment: bool = False
    limit_pps: float | None = None
    """What the host may send into it; None is no limit."""
    burst: float | None = None
    """Packets, or bits as the setpoint, that may pass beyond it; None is 0.2 s of it."""
    setpoint_bps: float | None = None
    """Instead of the one in packets/s: its ceiling, on a host that is not contended."""

    @property
    def holds(self) -> bool:
        """Whether it holds the router at a setpoint."""
        return self.setpoint_pps is not None or self.setpoint_bps is not None


LET_GO = Order()
"""The order of a router that nothing holds."""


@dataclass(frozen=True, slots=True)
class Note:
    """Something that an operator wants to read later."""

    kind: str
    words: str
    vr: str | None = None


@dataclass(frozen=True, slots=True)
class Round:
    """What a round decided."""

    state: HostState
    orders: Mapping[str, Order]
    notes: tuple[Note, ...]
    convicted: tuple[str, ...] = ()
    """Routers that took the first step of their ladder; the brake counts them."""


def only_reported(contract: Contract, policy: Policy) -> bool:
    """Whether what a router does wrong is reported, and nothing done about it."""
    return policy.dry_run or contract.dry_run


def ladder_of(contract: Contract) -> tuple[Step, ...]:
    """Return the steps that a router may climb; none where nobody promised it anything.

    Nor where its contract says that it is never punished.
    """
    # By identity, since an operator's contract of the same terms does have a ladder.
    none = contract is UNPROMISED or contract.punish == "never"
    return () if none else contract.measures


def may_punish(contract: Contract, *, contended: bool) -> bool:
    """Whether a router may be punished on a host that is contended or not."""
    return contract.punish == "always" or (contract.punish == "when_harming" and contended)


def steps_in_force(
    contract: Contract, state: RouterState, policy: Policy, *, contended: bool
) -> tuple[Step, ...]:
    """Return the measures that are taken now; none where they are, or were, only reported.

    The contract may have changed since the step was taken, on a host that is not believed: nothing
    harder than that step is in force, and nothing of a dry run. On a host that has CPU to spare,
    none goes below the guarantee, unless the contract says so.

    Args:
        contract: the router's.
        state: what is remembered of it.
        policy: of this moment.
        contended: whether the host is.
    """
    standing = state.punishment
    if not standing.height or standing.dry or only_reported(contract, policy):
        return ()
    steps = ladder_of(contract)
    steps = steps[: kept_height(standing, steps)]
    if may_punish(contract, contended=contended):
        return steps
    return tuple(step for step in steps if step not in BELOW_THE_GUARANTEE)
