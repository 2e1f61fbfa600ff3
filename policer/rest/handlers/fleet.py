"""/v1/punishments, /v1/capacity, /v1/leadership: the fleet as a whole."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from litestar import get

from policer.contracts.ladder import Step
from policer.decide.state import RouterState
from policer.rest.access.context import Context, GivenDesk
from policer.rest.access.gate import FILTERED
from policer.rest.answers.entities import (
    CapacityAnswer,
    LeadershipAnswer,
    PunishmentAnswer,
    PunishmentPage,
)
from policer.rest.answers.live import capacity
from policer.rest.handlers.routers import RouterKey
from policer.rest.http.bodies import StrictRequest
from policer.rest.http.cursor import After, Limit, page_of, unpack
from policer.rest.http.names import HostFilter
from policer.store import PunishmentRow


@get(
    "/punishments",
    operation_id="listPunishments",
    tags=["punishments"],
    scope="read",
    limited=FILTERED,
    sync_to_thread=True,
)
def list_punishments(
    context: GivenDesk, limit: Limit = 100, after: After = None, host: HostFilter = None
) -> PunishmentPage:
    """List punished routers, by host and router.

    Punishments come from the store, so they outlive a policer. Steps of dry runs are not in the
    store: only the leading policer has them.
    """
    kept = context.store.punishments.all()
    known = {(row.host, row.vr): row for row in _only_reported(context)} | kept
    rows = (row for row in known.values() if host in {None, row.host})
    last = unpack(after, RouterKey)
    page, following = page_of(rows, limit, last, lambda row: (row.host, row.vr))
    return PunishmentPage([_answer(context, row) for row in page], following)


@get(
    "/capacity",
    operation_id="readCapacity",
    tags=["hosts"],
    scope="read",
    limited=FILTERED,
    sync_to_thread=True,
)
def read_capacity(context: GivenDesk, request: StrictRequest) -> CapacityAnswer:
    """Read the capacity of the fleet, and how much of it is promised."""
    now, fleet, seen = context.now(), context.fleet.hosts, request.requester.reach.may_see_host
    hosts = [capacity(fleet[name], now) for name in sorted(fleet) if seen(name)]
    return CapacityAnswer(
        capacity_pps=sum(host.capacity_pps for host in hosts),
        promised_pps=sum(host.promised_pps for host in hosts),
        free_pps=sum(host.free_pps for host in hosts),
        forwarded_pps=sum(host.forwarded_pps for host in hosts),
        hosts=hosts,
    )


@get(
    "/leadership",
    operation_id="readLeadership",
    tags=["leadership"],
    scope="read",
    sync_to_thread=False,
)
def read_leadership(context: GivenDesk) -> LeadershipAnswer:
    """Read which policer leads, as far as this policer knows."""
    known = context.fleet.leadership
    return LeadershipAnswer(
        leading=known.leading,
        epoch=known.epoch,
        holder=known.holder,
        problem=known.problem,
        braked=context.fleet.braked,
        braked_hosts=sorted(context.fleet.braked_hosts),
        brake=context.fleet.overrides.brake_mode,
    )


def _only_reported(context: Context) -> Iterator[PunishmentRow]:
    """Yield the steps of the ladders of dry runs."""
    now, today = context.now(), datetime.now(UTC)
    for name, live in context.fleet.hosts.items():
        for vr, state in live.state.routers.items():
            standing = state.punishment
            if standing.dry and standing.height:
                since = today - timedelta(seconds=max(0.0, now - standing.since))
                step = str(standing.step or "")
                yield PunishmentRow(name, vr, standing.height, standing.guilty, since, step)


def _answer(context: Context, row: PunishmentRow) -> PunishmentAnswer:
    live = context.live(row.host)
    state = live.state.routers.get(row.vr, RouterState()) if live else RouterState()
    return PunishmentAnswer(
        host=row.host,
        vr=row.vr,
        step=Step(row.step) if row.step in set(Step) else None,
        height=row.height,
        guilty=row.guilty,
        since=row.since,
        only_reported=state.punishment.dry,
        evidence=state.evidence.rounds,
    )


HANDLERS = [list_punishments, read_capacity, read_leadership]
