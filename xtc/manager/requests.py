"""Requests to the manager: decoded, checked, carried out, and answered."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial

from common.clock import Clock
from common.suggest import did_you_mean
from common.units import PacketsPerSecond, Seconds
from xtc.errors import Refused
from xtc.isolation import Unforeseen
from xtc.lease import Lease, check_epoch, check_successor, highest_possible
from xtc.manager.acceptance import (
    check_active,
    check_burst,
    check_long_enough,
    check_possible,
    check_unit,
)
from xtc.manager.host import Host
from xtc.manager.lifecycle import Lifecycle
from xtc.manager.records import Records
from xtc.manager.router import ManagedRouter
from xtc.state.journal import UNWRITTEN
from xtc.wire import (
    Activate,
    Answer,
    Batch,
    Change,
    Deactivate,
    Limit,
    Observe,
    Outcomes,
    Pause,
    Refusal,
    Reply,
    Report,
    Request,
    Resume,
    Retune,
    Status,
    decode_request,
    request_id,
)

_Order = Activate | Retune | Limit
"""The requests that carry an epoch."""


class Requests:
    """Carries out requests on the routers of a host."""

    def __init__(
        self,
        host: Host,
        records: Records,
        lifecycle: Lifecycle,
        *,
        clock: Clock,
        period: Seconds,
        wall: Callable[[], float],
    ) -> None:
        """Work on a host; the wall clock, in seconds since 1970, is for checking epochs."""
        self._host, self._records, self._lifecycle = host, records, lifecycle
        self._clock, self._period, self._wall = clock, period, wall

    def prepare(self, raw: bytes) -> int | None:
        """Give the journal the entries that it must hold before a request may be carried out.

        Returns:
            The number of the journal's write to wait for; None where there is none.
        """
        try:
            request = decode_request(raw).request
        except Refused:
            return None
        changes = request.requests if isinstance(request, Batch) else (request,)
        epoch = max(map(self._epoch_of, changes), default=0)
        self._records.reserved = epoch if epoch > self._records.epoch else 0
        claimed = self._claim_limits(changes)
        if not self._records.reserved and not claimed:
            return None
        self._records.store_lazily()
        return self._records.journal.ticket

    def handle(self, raw: bytes) -> Reply:
        """Return the reply to the bytes of a request; invalid bytes get a reply, too."""
        try:
            envelope = decode_request(raw)
        except Refused as refused:
            return Reply(_refusal(refused), id=request_id(raw))
        try:
            return Reply(self._result(envelope.request), id=envelope.id)
        finally:
            self._records.reserved = 0

    def _result(self, request: Request | Batch) -> Answer | Outcomes | Refusal:
        if isinstance(request, Batch):
            return Outcomes(self._outcomes(request.requests))
        try:
            return Answer(self.carry_out(request))
        except Refused as refused:
            return _refusal(refused)

    def _outcomes(self, changes: Sequence[Change]) -> tuple[Refusal | None, ...]:
        """Carry out a batch; one write beforehand makes the epochs that it raises durable.

        If the highest is refused, the next write of the journal corrects it.
        """
        highest = self._records.epoch
        raised = {epoch for change in changes if (epoch := self._epoch_of(change)) > highest}
        unstored = self._reserve(max(raised)) if len(raised) > 1 else None
        if self._claim_limits(changes):
            self._records.store_lazily()
        return tuple(
            unstored if unstored and self._epoch_of(change) in raised else self._outcome(change)
            for change in changes
        )

    def _reserve(self, epoch: int) -> Refusal | None:
        """Make the highest epoch of a batch durable; return why it cannot be, if so."""
        try:
            self._records.remember(epoch)
        except Refused as refused:
            return _refusal(refused)
        self._records.reserved = epoch
        return None

    def _epoch_of(self, change: Request) -> int:
        """Return the epoch of an order for a router of this host; 0 otherwise."""
        if not isinstance(change, _Order) or change.vr not in self._host.routers:
            return 0
        epoch = change.epoch or 0
        return epoch if epoch <= highest_possible(self._wall()) else 0

    def _claim_limits(self, changes: Iterable[Request]) -> bool:
        """Note all limits of a request, for one write; return whether the write is needed."""
        routers = self._host.routers
        limits = [one for one in changes if isinstance(one, Limit) and one.vr in routers]
        for request in limits:
            with suppress(Refused):  # it is refused later, in its turn
                self._claim_limit(routers[request.vr], request)
        return any(not self._records.knows_limit(routers[one.vr]) for one in limits)

    def _outcome(self, change: Change) -> Refusal | None:
        """Carry out one change of a batch; return why it was not, if so."""
        result = self._result(change)
        return result if isinstance(result, Refusal) else None

    def carry_out(self, request: Request) -> tuple[Report, ...]:
        """Carry out a request and return the reports of the routers concerned.

        Raises:
            Refused: names the wrong field and the fix; nothing was changed.
        """
        host, now = self._host, self._clock.now()
        match request:
            case Status(vr=None):
                return host.reports(now)
            case Observe():
                host.observe = "only observed, as ordered" if request.on else ""
                return host.reports(now)
            case Deactivate(vr=None):
                self._lifecycle.deactivate(*host.routers.values())
                return host.reports(now)
            case _:
                assert request.vr is not None  # the cases above handled None
                managed = self._router(request.vr)
                self._carry_out_or_refuse(managed, request, now)
                return (host.report(managed, now),)

    def _carry_out_or_refuse(self, managed: ManagedRouter, request: Request, now: Seconds) -> None:
        """Carry out a request on one router; an unforeseen error refuses this request only."""
        work = partial(self._carry_out_on, managed, request, now)
        result = self._host.guard.run("request", managed.plan.name, work, passing=(Refused,))
        if isinstance(result, Unforeseen):
            managed.fault = result.words
            fix = "the daemon's log has the trace: please report it"
            raise Refused("unforeseen", "vr", result.words, fix)

    def _carry_out_on(self, managed: ManagedRouter, request: Request, now: Seconds) -> None:
        match request:
            case Activate():
                self._grant(managed, request, now)
            case Retune():
                check_active(managed)
                self._grant(managed, request, now)
            case Pause() | Resume():
                check_active(managed)
                self._host.beginnings.end(managed.plan.name)
                managed.pause(paused=isinstance(request, Pause))
            case Deactivate():
                self._lifecycle.deactivate(managed)
            case Limit():
                self._limit(managed, request, now)
            case Status():
                pass

    def _router(self, name: str) -> ManagedRouter:
        routers = self._host.routers
        if name in routers:
            return routers[name]
        fix = did_you_mean(name, routers, "`xtc status` lists the routers")
        raise Refused("unknown_router", "vr", f"{name} is not in the configuration", fix)

    def _grant(self, managed: ManagedRouter, request: Activate | Retune, now: Seconds) -> None:
        """Give a lease: one that raises the highest epoch is made durable before it is obeyed."""
        lease = Lease.of(
            request.setpoint,
            epoch=request.epoch,
            sequence=request.sequence,
            expires_at=None if request.ttl_s is None else now + request.ttl_s,
            kind=request.kind,
        )
        check_epoch(lease.epoch, self._wall())
        highest = self._records.epoch
        check_successor(managed.last_lease(), lease, now, highest_epoch=highest)
        check_long_enough(request.ttl_s, self._period)
        check_unit(managed, request.setpoint)
        check_burst(request.setpoint)
        check_possible(managed)
        if lease.epoch > highest:
            self._records.raise_epoch(lease.epoch)
        before = None if managed.instance is None else managed.instance.setpoint
        managed.activate(lease, now)
        if before != lease.setpoint:
            self._host.beginnings.overrule(managed.plan.name)
            begin = partial(self._lifecycle.begin, managed, now, new=before is None)
            self._host.work_on(managed, "begin", begin)

    def _limit(self, managed: ManagedRouter, request: Limit, now: Seconds) -> None:
        """Limit the router's interfaces, or lift the limit; the journal is written first."""
        check_epoch(request.epoch or 0, self._wall())
        self._claim_limit(managed, request)
        if request.epoch is not None and request.epoch > self._records.epoch:
            self._records.raise_epoch(request.epoch)
        limits = self._host.limits
        if request.rate_pps is None:
            if trouble := limits.lift(managed):
                raise Refused("not_lifted", "vr", trouble, "xtc retries until it succeeds")
            return
        if not self._records.knows_limit(managed):
            self._records.store_lazily()
        if not self._records.knows_limit(managed):
            if managed.limit is None:
                limits.lift(managed)  # otherwise its drops would be awaited, and stay unknown
            raise Refused("journal", "vr", self._records.problem or UNWRITTEN)
        ends_at = None if request.ttl_s is None else Seconds(now + request.ttl_s)
        limits.set(managed, PacketsPerSecond(request.rate_pps), ends_at)

    def _claim_limit(self, managed: ManagedRouter, request: Limit) -> None:
        """Note which interfaces a limit is for.

        Raises:
            Refused: it may not be set.
        """
        self._host.limits.check(request, highest_epoch=self._records.epoch)
        if request.rate_pps is None:
            return
        if self._host.observe or managed.plan.observe:
            problem = f"{managed.plan.name} is only observed"
            raise Refused("observing", "vr", problem, "`xtc observe off`, or `observe = false`")
        self._host.limits.claim(managed)


def _refusal(refused: Refused) -> Refusal:
    return Refusal(refused.code, refused.field, refused.problem, refused.fix)
