"""What the service answers: one struct for each kind of thing; rates in packets/s, times in UTC."""

from datetime import datetime
from typing import Annotated, Literal

import msgspec

from policer.contracts.contract import Contract
from policer.contracts.host import Host, HostName
from policer.contracts.ladder import Step
from policer.contracts.overrides import BrakeMode
from policer.contracts.reach import UNLIMITED, Reach
from policer.contracts.replay import Replayed
from policer.contracts.tenant import Tenant
from policer.decide.state import Order
from policer.fleetfile.capacity import PlannedHost
from policer.fleetfile.document import FleetFile
from policer.fleetfile.edits import PlannedChange
from policer.history.window import LONGEST_REPLAY_S
from policer.rest.answers.overrides import Moment, OverrideAnswer
from policer.rest.http.problems import FieldProblem
from policer.store import AuditRow, EventRow, Revision, Scope, TokenRow
from xtc.wire import Report, VrName

TokenName = Annotated[
    str, msgspec.Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._ @-]{0,63}$(?!\n)", description="its name")
]


class HostLiveAnswer(msgspec.Struct, frozen=True):
    """How a host stands at this moment."""

    reachable: bool = False
    heard_s_ago: float | None = None
    """None where it was never heard."""
    distrust: str = ""
    """Why what it says is not believed."""
    link_problem: str = ""
    """Why its daemon could not be told."""
    refused: int = 0
    """Routers whose orders its daemon does not carry out."""
    refusal: str = ""
    """Why not, of one of them."""
    braked: bool = False
    """Whether no ladder is climbed there, since too many of its routers would be punished."""
    suspension: OverrideAnswer | None = None
    """Until when, why and by whom control is suspended; None where it is not."""
    highest_epoch: int | None = None
    """The highest epoch that its daemon obeyed; None where it does not tell."""
    engaged: bool = False
    """Whether its routers are held, since it is contended."""
    simulated: bool = False
    """Whether its routers are simulated (`xtc sandbox`): no packet of theirs is real."""
    overpromised: bool = False
    """Whether routers came to it with more guarantees than it can keep."""
    harmed: tuple[str, ...] = ()
    """Routers that have less than a guarantee which they could use."""
    promised_pps: float = 0.0
    """The most that its guarantees take from now on, in the unit of the capacity."""
    guaranteed_pps: float = 0.0
    """What they take at this moment, by the dates and hours of contracts."""
    forwarded_pps: float = 0.0
    offered_pps: float = 0.0
    routers: int = 0
    """That its daemon reports."""
    contracts: int = 0
    punished: int = 0
    dropped: int = 0
    """Messages that were replayed, reordered or came in a flood."""
    card_drops_pps: float | None = None
    """Lost at its network cards, before any router; None where that is not known."""
    backlog_drops_pps: float | None = None
    """Lost in its CPUs' backlogs, before any router; None where that is not known."""


class HostAnswer(msgspec.Struct, frozen=True):
    """A host as it was entered, and how it stands."""

    entry: Host
    version: int
    """The number in its ETag."""
    changed_at: datetime
    changed_by: str
    live: HostLiveAnswer


class HostPage(msgspec.Struct, frozen=True):
    """Hosts, by name."""

    items: list[HostAnswer]
    next: str | None = None


class PunishmentAnswer(msgspec.Struct, frozen=True):
    """What is done about a router that misbehaves."""

    host: str
    vr: str
    step: Step | None
    """The hardest step in force; None where the contract allows it no more."""
    height: int
    """How many of the contract's steps are in force."""
    guilty: bool
    """Whether it still misbehaves."""
    since: datetime
    """When the last step was taken, or the verdict last changed."""
    only_reported: bool = False
    """Whether this is a dry run."""
    evidence: tuple[bool | None, ...] = ()
    """The last rounds: whether its offered load was excessive; null is neither."""


class PunishmentPage(msgspec.Struct, frozen=True):
    """Punishments, by host and router."""

    items: list[PunishmentAnswer]
    next: str | None = None


class KeptAnswer(msgspec.Struct, frozen=True):
    """How well a router was held at its setpoints, as its daemon counts it."""

    over_promise_packets: float
    """Forwarded beyond setpoint and burst."""
    under_promise_packets: float
    """Offered and within the setpoint, and not forwarded, beyond the burst."""
    breach_seconds: float
    """Time in which less was forwarded than that."""
    over_promise_bits: float
    """The first two while it was held in bits/s."""
    under_promise_bits: float
    since: datetime
    """When this policer first saw it: the sums begin then, and outlive restarts of its daemon."""


class RouterAnswer(msgspec.Struct, frozen=True):
    """A router: what it was promised, what its daemon reports, and what it is told."""

    host: str
    vr: str
    contract: Contract | None = None
    """The terms that hold at this moment."""
    follows: str | None = None
    """The name of its contract, where that follows it from host to host."""
    report: Report | None = None
    """None where its host is gone or does not know it."""
    order: Order | None = None
    punishment: PunishmentAnswer | None = None
    misbehaving: bool = False
    saved_burst_packets: float = 0.0
    """What it may forward above its ceiling at once."""
    refusal: str = ""
    """Why its daemon would not do what it was told."""
    contract_version: int | None = None
    """The number in the contract's ETag; only where one router is asked for."""
    exemption: OverrideAnswer | None = None
    """Until when, why and by whom it is exempt from its ladder; None where it is not."""
    kept: KeptAnswer | None = None
    """None where its daemon is of an older version, or was never heard."""


class RouterPage(msgspec.Struct, frozen=True):
    """Routers, by host and name."""

    items: list[RouterAnswer]
    next: str | None = None


class ContractAnswer(msgspec.Struct, frozen=True):
    """What a router was promised."""

    host: str | None
    """None where the contract follows the router, whichever host that is on."""
    vr: str
    """Its name on the host; of one that is followed, a name of the whole fleet or its UUID."""
    contract: Contract
    version: int
    """The number in its ETag."""
    changed_at: datetime
    changed_by: str
    terms: Contract | None = None
    """What holds at this moment, by its class, dates and hours; None where nothing does."""
    seen_on: str | None = None
    """The host where a router is that is followed; None where it was not seen."""


class ClassAnswer(msgspec.Struct, frozen=True):
    """The terms that contracts of a class have."""

    name: str
    terms: Contract
    version: int
    """The number in its ETag."""
    changed_at: datetime
    changed_by: str


class ClassPage(msgspec.Struct, frozen=True):
    """Classes, by name."""

    items: list[ClassAnswer]
    next: str | None = None


class TenantAnswer(msgspec.Struct, frozen=True):
    """For whom routers are run."""

    name: str
    entry: Tenant
    version: int
    """The number in its ETag."""
    changed_at: datetime
    changed_by: str


class TenantPage(msgspec.Struct, frozen=True):
    """Tenants, by name."""

    items: list[TenantAnswer]
    next: str | None = None


class ContractPage(msgspec.Struct, frozen=True):
    """Contracts, by host and router."""

    items: list[ContractAnswer]
    next: str | None = None


class NewContract(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A contract that is to be made."""

    vr: VrName
    contract: Contract
    host: HostName | None = None
    """None where it is to follow the router."""


class CheckAnswer(msgspec.Struct, frozen=True):
    """Whether a contract could be entered now."""

    admissible: bool
    errors: tuple[FieldProblem, ...]
    """What would be wrong."""
    promised_pps: float
    """The most that all guarantees of the host take from now on, with this one."""
    capacity_pps: float | None
    """None where it is not known where the router is."""
    host: str | None = None
    """Where the router is."""


class History(msgspec.Struct, frozen=True):
    """Versions of a contract, the latest first."""

    items: list[Revision]
    next: str | None = None


class SetpointAnswer(msgspec.Struct, frozen=True):
    """What a router is told now."""

    host: str
    vr: str
    setpoint_pps: float | None
    """None where it is let go, or has a setpoint in bits/s."""
    limit_pps: float | None
    """What the host may send into it; None is no limit."""
    punishment: bool
    confirmed_pps: float | None
    """The setpoint that its daemon reports."""
    lease_remaining_s: float | None
    burst: float | None = None
    """Packets, or bits of a setpoint in bits/s, that may pass beyond it over any window; None is
    0.2 s of it."""
    setpoint_bps: float | None = None
    """Instead of the one in packets/s."""
    confirmed_bps: float | None = None


class SetpointPage(msgspec.Struct, frozen=True):
    """Setpoints, by host and router."""

    items: list[SetpointAnswer]
    next: str | None = None


class EventPage(msgspec.Struct, frozen=True):
    """Events, the latest first."""

    items: list[EventRow]
    next: str | None = None


class HostCapacity(msgspec.Struct, frozen=True):
    """What a host can forward, and what of it was promised."""

    host: str
    capacity_pps: float
    promised_pps: float
    """The most that guarantees take from now on, by the dates and hours of contracts."""
    free_pps: float
    """What can still be promised at any time."""
    forwarded_pps: float
    overcommit: bool
    source: str
    """Who says what it can forward."""


class CapacityAnswer(msgspec.Struct, frozen=True):
    """What the fleet can forward."""

    capacity_pps: float
    promised_pps: float
    free_pps: float
    forwarded_pps: float
    hosts: list[HostCapacity]


class LeadershipAnswer(msgspec.Struct, frozen=True):
    """Who gives the orders."""

    leading: bool
    """Whether this policer does."""
    epoch: int
    holder: str
    problem: str
    braked: bool
    """Whether all ladders are stopped: too many routers would be punished at once, or an operator
    put the brake on."""
    braked_hosts: list[str]
    """Hosts whose own ladders are stopped."""
    brake: BrakeMode = "automatic"
    """What operators want of the brake."""


class PardonAnswer(msgspec.Struct, frozen=True):
    """A pardon that the policer will carry out within a second."""

    host: str
    vr: str
    pardoned_from: Step | None


ReplayLength = Annotated[int, msgspec.Meta(ge=60, le=LONGEST_REPLAY_S)]


class NewPlan(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A document that the fleet is to become."""

    fleet: FleetFile
    keep: bool = False
    """Whether what it does not name stays; else that is removed."""
    replay_s: ReplayLength | None = None
    """Seconds of recorded traffic, until now, that it is held against; None is none."""


class PlanAnswer(msgspec.Struct, frozen=True):
    """What a document would change, as it was when the plan was made."""

    id: str
    version: int
    """The number in its ETag: 1 is open, 2 is applied."""
    keep: bool
    """Whether what the document does not name stays."""
    needs: Literal["operate", "admin"]
    """The scope that it takes to apply it."""
    admissible: bool
    """Whether it can be applied: there are no problems."""
    changes: tuple[PlannedChange, ...]
    problems: tuple[FieldProblem, ...]
    """What is wrong, by the path of the field in the document; the first 200 of more."""
    hosts: tuple[PlannedHost, ...]
    """Those on which something would change, and what they would have promised."""
    replay: Replayed | None
    """What it would have meant for their recorded traffic; null where that was not asked for."""
    made_at: datetime
    made_by: str
    applied_at: datetime | None = None
    """None where it was not applied."""
    applied_by: str | None = None


class NewToken(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A token that is to be made."""

    name: TokenName
    scope: Scope
    expires_at: Moment | None = None
    """None is never."""
    reach: Reach = UNLIMITED
    """What it is limited to."""


class WhoAnswer(msgspec.Struct, frozen=True):
    """Who asks, and what that may do."""

    id: str
    """Of the token, or issuer and subject: in the audit log."""
    name: str
    scopes: tuple[Scope, ...]
    reach: Reach
    """What it is limited to."""
    expires_at: datetime | None
    """None is never."""
    address: str
    """Where this request came from, as the policer sees it."""


class MadeToken(msgspec.Struct, frozen=True):
    """A token that was made."""

    token: TokenRow
    secret: str
    """Shown this once; nobody can read it again."""


class TokenPage(msgspec.Struct, frozen=True):
    """Tokens, the oldest first; also those that are revoked."""

    items: list[TokenRow]
    next: str | None = None


class AuditPage(msgspec.Struct, frozen=True):
    """Changes, the latest first."""

    items: list[AuditRow]
    next: str | None = None


class Health(msgspec.Struct, frozen=True):
    """That the service is alive, or ready."""

    status: str
