"""Answers of the service: one struct for each kind of thing; rates in packets/s, times in UTC."""

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
    """Current state of a host."""

    reachable: bool = False
    heard_s_ago: float | None = None
    """None if it was never heard."""
    distrust: str = ""
    """Why its telemetry is not believed."""
    link_problem: str = ""
    """Why nothing can be sent to its daemon."""
    refused: int = 0
    """Number of routers with orders that its daemon does not carry out."""
    refusal: str = ""
    """The reason, for one of them."""
    braked: bool = False
    """Whether its ladders are stopped, since too many of its routers would be punished."""
    suspension: OverrideAnswer | None = None
    """Until when, why and by whom control is suspended; None if it is not."""
    highest_epoch: int | None = None
    """The highest epoch that its daemon obeyed; None if the daemon does not report it."""
    engaged: bool = False
    """Whether its routers are held because it is contended."""
    simulated: bool = False
    """Whether its routers are simulated (`xtc sandbox`): their packets are not real."""
    overpromised: bool = False
    """Whether routers that moved to it bring more guarantees than it can keep."""
    harmed: tuple[str, ...] = ()
    """Routers that get less than a guarantee which they could use."""
    promised_pps: float = 0.0
    """The most that its guarantees take from now on, in the unit of the capacity."""
    guaranteed_pps: float = 0.0
    """What they take now, by the dates and hours of contracts."""
    forwarded_pps: float = 0.0
    offered_pps: float = 0.0
    routers: int = 0
    """Number reported by its daemon."""
    contracts: int = 0
    punished: int = 0
    dropped: int = 0
    """Messages that were replayed, reordered or came in a flood."""
    card_drops_pps: float | None = None
    """Lost at its network cards, before any router; None if unknown."""
    backlog_drops_pps: float | None = None
    """Lost in its CPUs' backlogs, before any router; None if unknown."""


class HostAnswer(msgspec.Struct, frozen=True):
    """A host's entry and its state."""

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
    """Measures against a router that misbehaves."""

    host: str
    vr: str
    step: Step | None
    """The hardest step in force; None if the contract no longer allows it."""
    height: int
    """Number of the contract's steps in force."""
    guilty: bool
    """Whether it still misbehaves."""
    since: datetime
    """When the last step was taken, or `guilty` last changed."""
    only_reported: bool = False
    """Whether this is a dry run."""
    evidence: tuple[bool | None, ...] = ()
    """The last rounds: true if the offered load was excessive; null is neither."""


class PunishmentPage(msgspec.Struct, frozen=True):
    """Punishments, by host and router."""

    items: list[PunishmentAnswer]
    next: str | None = None


class KeptAnswer(msgspec.Struct, frozen=True):
    """How well a router was held at its setpoints, by its daemon's counters."""

    over_promise_packets: float
    """Packets forwarded beyond setpoint and burst."""
    under_promise_packets: float
    """Packets offered within the setpoint and not forwarded, beyond the burst."""
    breach_seconds: float
    """Seconds in which less was forwarded than was offered within the setpoint, beyond the
    burst."""
    over_promise_bits: float
    """The first two in bits, while it was held in bits/s."""
    under_promise_bits: float
    since: datetime
    """When this policer first saw it, or its present tenant: the sums begin then, and survive
    restarts of its daemon."""


class RouterAnswer(msgspec.Struct, frozen=True):
    """A router: its contract, its daemon's report, and its orders."""

    host: str
    vr: str
    contract: Contract | None = None
    """Terms that hold now."""
    follows: str | None = None
    """Name of its contract, if that follows it from host to host."""
    report: Report | None = None
    """None if its host is gone or does not have it."""
    order: Order | None = None
    punishment: PunishmentAnswer | None = None
    misbehaving: bool = False
    saved_burst_packets: float = 0.0
    """Burst that it may forward above its ceiling."""
    refusal: str = ""
    """Why its daemon refused its orders."""
    contract_version: int | None = None
    """The number in the contract's ETag; only in the answer for one router."""
    exemption: OverrideAnswer | None = None
    """Until when, why and by whom it is exempt from its ladder; None if it is not."""
    kept: KeptAnswer | None = None
    """None if its daemon is of an older version, or was never heard."""


class RouterPage(msgspec.Struct, frozen=True):
    """Routers, by host and name."""

    items: list[RouterAnswer]
    next: str | None = None


class ContractAnswer(msgspec.Struct, frozen=True):
    """Contract of a router."""

    host: str | None
    """None if the contract follows the router from host to host."""
    vr: str
    """Its name on the host; if the contract follows it, its fleet-wide name or its UUID."""
    contract: Contract
    version: int
    """The number in its ETag."""
    changed_at: datetime
    changed_by: str
    terms: Contract | None = None
    """Terms that hold now, by class, dates and hours; None if none do."""
    seen_on: str | None = None
    """Host of a followed router; None if it was not seen."""


class ClassAnswer(msgspec.Struct, frozen=True):
    """Terms of the contracts of a class."""

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
    """The party for which routers are run."""

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
    """A new contract."""

    vr: VrName
    contract: Contract
    host: HostName | None = None
    """None if it follows the router."""


class CheckAnswer(msgspec.Struct, frozen=True):
    """Whether a contract could be entered now."""

    admissible: bool
    errors: tuple[FieldProblem, ...]
    """Problems of the contract."""
    promised_pps: float
    """The most that all guarantees of the host take from now on, with this one."""
    capacity_pps: float | None
    """None if the router's host is unknown."""
    host: str | None = None
    """Host of the router."""


class History(msgspec.Struct, frozen=True):
    """Versions of a contract, the latest first."""

    items: list[Revision]
    next: str | None = None


class SetpointAnswer(msgspec.Struct, frozen=True):
    """Current orders of a router."""

    host: str
    vr: str
    setpoint_pps: float | None
    """None if it is released, or has a setpoint in bits/s."""
    limit_pps: float | None
    """The most that the host may send into it; None is no limit."""
    punishment: bool
    confirmed_pps: float | None
    """The setpoint that its daemon reports."""
    lease_remaining_s: float | None
    burst: float | None = None
    """Packets, or bits of a setpoint in bits/s, allowed beyond it over any window; None is 0.2 s of
    it."""
    setpoint_bps: float | None = None
    """Replaces the setpoint in packets/s."""
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
    """Capacity of a host, and how much of it is promised."""

    host: str
    capacity_pps: float
    promised_pps: float
    """The most that guarantees take from now on, by the dates and hours of contracts."""
    free_pps: float
    """What can still be promised for all times."""
    forwarded_pps: float
    overcommit: bool
    source: str
    """Source of the capacity."""


class CapacityAnswer(msgspec.Struct, frozen=True):
    """Capacity of the fleet."""

    capacity_pps: float
    promised_pps: float
    free_pps: float
    forwarded_pps: float
    hosts: list[HostCapacity]


class LeadershipAnswer(msgspec.Struct, frozen=True):
    """Which policer leads, and the brakes in force."""

    leading: bool
    """Whether this policer leads."""
    epoch: int
    holder: str
    problem: str
    braked: bool
    """Whether all ladders are stopped: too many routers would be punished at the same time, or an
    operator put the brake on."""
    braked_hosts: list[str]
    """Hosts on which only their own ladders are stopped."""
    brake: BrakeMode = "automatic"
    """Mode of the brake set by operators."""


class PardonAnswer(msgspec.Struct, frozen=True):
    """A pardon that the policer will carry out within a second."""

    host: str
    vr: str
    pardoned_from: Step | None


ReplayLength = Annotated[int, msgspec.Meta(ge=60, le=LONGEST_REPLAY_S)]


class NewPlan(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The desired state of the fleet as a document."""

    fleet: FleetFile
    keep: bool = False
    """Whether to keep what the document does not name; otherwise it is removed."""
    replay_s: ReplayLength | None = None
    """Seconds of recorded traffic, until now, to replay; None is none."""


class PlanAnswer(msgspec.Struct, frozen=True):
    """Changes by a document, computed when the plan was made."""

    id: str
    version: int
    """The number in its ETag: 1 is open, 2 is applied."""
    keep: bool
    """Whether to keep what the document does not name."""
    needs: Literal["operate", "admin"]
    """The scope required to apply it."""
    admissible: bool
    """Whether it can be applied: there are no problems."""
    changes: tuple[PlannedChange, ...]
    problems: tuple[FieldProblem, ...]
    """Problems, by the path of the field in the document; only the first 200."""
    hosts: tuple[PlannedHost, ...]
    """Hosts with changes, and what would be promised on them."""
    replay: Replayed | None
    """Effect on recorded traffic; null if not requested."""
    made_at: datetime
    made_by: str
    applied_at: datetime | None = None
    """None if it was not applied."""
    applied_by: str | None = None


class NewToken(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A new token."""

    name: TokenName
    scope: Scope
    expires_at: Moment | None = None
    """None is never."""
    reach: Reach = UNLIMITED
    """Its limits."""


class WhoAnswer(msgspec.Struct, frozen=True):
    """Identity and rights of the client."""

    id: str
    """Id of the token, or issuer and subject, as in the audit log."""
    name: str
    scopes: tuple[Scope, ...]
    reach: Reach
    """Its limits."""
    expires_at: datetime | None
    """None is never."""
    address: str
    """Source address of this request, as the policer sees it."""


class MadeToken(msgspec.Struct, frozen=True):
    """A created token."""

    token: TokenRow
    secret: str
    """Shown only this once; it cannot be read again."""


class TokenPage(msgspec.Struct, frozen=True):
    """Tokens, the oldest first, including revoked ones."""

    items: list[TokenRow]
    next: str | None = None


class AuditPage(msgspec.Struct, frozen=True):
    """Changes, the latest first."""

    items: list[AuditRow]
    next: str | None = None


class Health(msgspec.Struct, frozen=True):
    """Whether the service is alive, or ready."""

    status: str
