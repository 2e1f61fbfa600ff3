"""Caps through libvirt: orders to the threads that make its calls, and their results.

No call of this actuator waits for the hypervisor, except `restore`, which waits briefly. Reported
values were read in the last poll, which the daemon requests shortly before each tick. A pending cap
is reported as the one in force, and `settle` reports its failure.
"""

import os
from typing import Final

from common.units import CapFraction, Seconds
from xtc.actuator.base import CapLimits, CpuUsage
from xtc.errors import Gone, Overtaken, Permanent, Transient, UnderWay
from xtc.libvirt.api import Parameters
from xtc.libvirt.domains import DomainView, Order, afresh
from xtc.libvirt.drivers import way_of
from xtc.libvirt.session import Session
from xtc.libvirt.weights import Captured, DomainWeights, is_unified, scale_of
from xtc.spec import LibvirtOriginal, LibvirtSpec, Original

SLOW_S: Final = Seconds(0.05)
"""A hypervisor that takes longer to set a cap gets one per period."""


class LibvirtActuator:
    """Caps one run of a domain (`xtc.actuator.base.Actuator`)."""

    def __init__(
        self,
        spec: LibvirtSpec,
        session: Session,
        view: DomainView,
        original: LibvirtOriginal | None,
    ) -> None:
        """Open it for the run in a view.

        Raises:
            Unsupported: xtc cannot cap domains of this driver.
        """
        self._session = session
        self._uuid, self._domid, self._name = view.uuid, view.domid, view.name
        self._way = way_of(view.name, session.view.driver, spec.scope)
        self._limits = self._way.limits(view.vcpus, os.cpu_count() or 1)
        self._captured = Captured(original, session.new_capture())
        scale = scale_of(session.view.driver, unified=is_unified())
        self.weights = DomainWeights(
            session, scale, self._way.flags, view.uuid, self._view, captured=self._captured
        )
        """The floor, next to the cap."""
        self._expected: Parameters | None = None
        """The values of the original, which must still be in force when the first cap is
        written."""
        self._order: Order | None = None
        """The last cap ordered, until its result is known."""
        self._restoring: Order | None = None
        self._slow = False

    @property
    def limits(self) -> CapLimits:
        """The caps that the hypervisor's scheduler can express."""
        return self._limits

    @property
    def slow(self) -> bool:
        """Whether the last cap took so long to write that one per period is enough."""
        return self._slow

    def settle(self) -> bool:
        """Return whether no cap is pending.

        Raises:
            ActuatorError: the last cap failed; raised once for each order.
        """
        order, outcome = self._order, self._session.outcome(self._uuid)
        without_weight = self.weights.settle(outcome)
        if order is None:
            return True
        if without_weight and not (outcome and isinstance(outcome.error, Overtaken)):
            self._order = self._ordered(self._view(), without_weight)
            return False
        if outcome is None or outcome.order.number < order.number:
            return False
        self._order = None
        if outcome.error is not None:
            raise afresh(outcome.error)
        self._slow = outcome.took > SLOW_S
        return True

    def capture(self) -> LibvirtOriginal:
        """Return the original: from the journal, the domain's mark, or the current settings.

        A domain that came with a cap from another host has a mark with its original.
        """
        if self._captured.original is None:
            view = self._view()
            try:
                found = self._way.original(view.parameters)
            except KeyError as error:
                raise self._untold(error) from error
            marked = dict(view.mark or {})
            parameters = found | marked
            self._captured.was_changed(marked)
            self._captured.original = LibvirtOriginal(self._uuid, self._domid, parameters)
            self._expected = found
        return self._captured.original

    def applied(self) -> CapFraction | None:
        """Return the cap in force or pending.

        Raises:
            Gone: the domain stopped, or was started again.
            Transient: libvirt does not answer.
        """
        pending = self._session.pending(self._uuid)  # first: it may be carried out just now
        view = self._view()
        ordered = {} if pending is None else pending.parameters
        return self._cap({**view.parameters, **ordered}, view)

    def apply(self, cap: CapFraction) -> CapFraction:
        """Order a cap and return it in the hypervisor's precision; `settle` reports the result."""
        view = self._view()
        wanted = self._limits.bound(cap, target=self._name)
        parameters = self._way.parameters(wanted, view.vcpus, view.parameters)
        self._order = self._ordered(view, parameters)
        self._restoring = None  # the new cap replaces a pending release
        return self._cap(parameters, view) or wanted

    def _ordered(self, view: DomainView, parameters: Parameters) -> Order:
        """Order parameters, and the pending weight, since an order replaces the previous one."""
        self.capture()
        self._captured.was_changed(parameters)
        mark = self._captured.mark()
        expected, self._expected = self._expected, None  # from now on, the settings may be ours
        every = {**parameters, **self.weights.under_way()}
        order = self._session.order(
            view,
            every,
            self._way.flags,
            mark=mark,
            expected=expected,
            capture=self._captured.number,
        )
        self.weights.took_along(order)
        return order

    def rebalance(self) -> CapFraction | None:
        """Return None: every vCPU has the same share, regardless of its need."""
        return None

    def usage(self) -> CpuUsage:
        """Return the CPU time that the cap limits, with the instant of its reading.

        With a quota per vCPU, one can be throttled while the others are idle, so each is reported.
        """
        view, grain = self._view(), self._way.grain
        if not self._way.by_vcpu:
            return CpuUsage(view.used, None, at=view.seen_at, grain=grain)
        parts = view.used_by_vcpus
        used = Seconds(sum(parts)) if parts else None
        return CpuUsage(used, None, at=view.seen_at, grain=grain, parts=parts)

    def restore(self, original: Original) -> None:
        """Restore the original settings; a domain that is gone counts as restored.

        Raises:
            Permanent: the original belongs to another actuator.
            UnderWay: it is not confirmed yet.
            Transient: the hypervisor does not answer, or failed.
        """
        if not isinstance(original, LibvirtOriginal):
            raise Permanent(self._name, f"cannot restore a {type(original).__name__}")
        try:
            order = self._restoring or self._order_back(original)
        except Gone:
            return  # the cap ended with that run of the domain
        outcome = self._session.wait_for(order)
        self._restoring = order if outcome is None else None
        if outcome is None:
            raise UnderWay(self._name, "the release is under way")
        if outcome.error is not None and not isinstance(outcome.error, Gone):
            raise afresh(outcome.error)
        if self._session.in_doubt(self._uuid):
            raise Transient(
                self._name, "an abandoned cap may still take effect; xtc releases it again"
            )

    def _order_back(self, original: LibvirtOriginal) -> Order:
        """Restore what was changed: if no cap was written, a foreign one may be in force."""
        view, capless = self._view(), self._expected or {}
        changed = {k: v for k, v in original.parameters.items() if k not in capless}
        parameters = changed or original.parameters
        return self._session.order(
            view, parameters, self._way.flags, mark=None, capture=self._captured.number
        )

    def _cap(self, parameters: Parameters, view: DomainView) -> CapFraction | None:
        try:
            return self._way.cap(parameters, view.vcpus)
        except KeyError as error:
            raise self._untold(error) from error

    def _untold(self, error: KeyError) -> Transient:
        return Transient(self._name, f"the hypervisor does not report {error}")

    def _view(self) -> DomainView:
        """Return the view of this run of the domain."""
        host = self._session.view
        if not host.surveyed:
            raise afresh(host.problem or Transient(self._name, "libvirt has not answered yet"))
        view = host.domains.get(self._uuid)
        if view is None or not view.active:
            raise Gone(self._name, "the domain does not run")
        if view.domid != self._domid:
            raise Gone(self._name, "the domain was restarted")
        if view.problem is not None:
            raise afresh(view.problem)
        if not view.visited:
            raise Transient(self._name, "libvirt has not reported this domain yet")
        if self._session.is_stale(self._uuid):
            raise Transient(self._name, "libvirt does not answer")
        return view
