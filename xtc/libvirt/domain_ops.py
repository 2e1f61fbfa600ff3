"""Operations on one domain: carries out its order, then polls it. It blocks, without threads."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Final

from common.clock import Clock
from common.units import Seconds
from xtc.errors import ActuatorError, Gone, Overtaken, Transient
from xtc.libvirt.api import AFFECT_LIVE, METADATA_ELEMENT, Code, Domain
from xtc.libvirt.connection import Link
from xtc.libvirt.domain_xml import parse_domain
from xtc.libvirt.domains import DomainView, Operation, Order, Outcome
from xtc.libvirt.drivers import check_scheduler, told, way_of
from xtc.libvirt.explain import code_of, explain
from xtc.libvirt.metadata import KEY, URI, mark_of, original_of

_DOM0: Final = "00000000-0000-0000-0000-000000000000"
"""Xen's domain list contains the domain that runs xtc itself."""
BLURRED_S: Final = Seconds(0.1)
"""A reading of CPU time that took longer is discarded."""
_NO_METADATA: Final = {Code.NO_SUPPORT, Code.OPERATION_UNSUPPORTED, Code.ARGUMENT_UNSUPPORTED}


def survey(link: Link) -> list[DomainView]:
    """Return every domain of the host, with the few fields of the list.

    Raises:
        Exception: one of `Api.errors`.
    """
    return [
        DomainView(domain.UUIDString(), domain.name(), domain.ID())
        for domain in link.list()
        if domain.UUIDString() != _DOM0
    ]


@dataclass(frozen=True, slots=True)
class Executor:
    """Carries out operations over one link, while that link is in use."""

    link: Link
    clock: Clock
    is_heard: Callable[[], bool]
    """Whether the link is still in use: after it was given up, nothing may be written."""

    def perform(self, operation: Operation) -> tuple[DomainView, Outcome | None]:
        """Return the view of a domain after an operation, and the outcome of its order.

        Errors of the domain are part of the result.

        Raises:
            Transient: the connection is dead, so that there is no result.
        """
        try:
            domain = self._running(operation.known)
            view, outcome = self._with_order(domain, operation)
            return self._looked_at(domain, view, describe=operation.describe), outcome
        except Gone as gone:
            failed = (
                None if operation.order is None else Outcome(operation.order, gone, Seconds(0.0))
            )
            return replace(operation.known, domid=-1, problem=gone), failed

    def _running(self, known: DomainView) -> Domain:
        """Return the domain, in the known run.

        A query for the scheduler of a stopped LXC domain crashes libvirtd 9.0, so this checks right
        before whether the domain runs.
        """
        try:
            domain = self.link.look_up(known.uuid)
        except self.link.api.errors as error:
            raise self._explained(known, error) from error
        if domain.ID() < 0:
            raise Gone(known.name, "the domain does not run")
        if domain.ID() != known.domid:
            raise Gone(known.name, "the domain was restarted")
        return domain

    def _explained(self, view: DomainView, error: Exception) -> ActuatorError:
        if not self.link.alive:
            return Transient(view.name, "the connection to libvirt ended")
        return error if isinstance(error, ActuatorError) else explain(view.name, error)

    def _with_order(
        self, domain: Domain, operation: Operation
    ) -> tuple[DomainView, Outcome | None]:
        """Set the mark, write, and read back; a mark is removed last."""
        order, view, begun = operation.order, operation.known, self.clock.now()
        if order is None:
            return view, None
        if order.domid != view.domid:
            gone = Gone(view.name, "the domain was restarted")
            return view, Outcome(order, gone, Seconds(0.0))
        try:
            if not view.described:  # it is not known whether it has our mark
                view = self._described(domain, view)
            self._check_original(domain, view, order)
            if order.mark is not None:
                view = self._with_mark(domain, view, order)
            view = self._written(domain, view, order)
            if order.mark is None:
                view = self._with_mark(domain, view, order)
        except self.link.troubles as raised:
            error = self._fatal_or_not(view, raised)
            return replace(view, described=False), Outcome(order, error, Seconds(0.0))
        return view, Outcome(order, None, Seconds(self.clock.now() - begun))

    def _check_original(self, domain: Domain, view: DomainView, order: Order) -> None:
        """Refuse to overwrite a cap that was set after the original was read: it would be lost."""
        if order.expected is None:
            return
        found = told(domain.schedulerParametersFlags(order.flags))
        if any(found.get(key) != value for key, value in order.expected.items()):
            raise Overtaken(
                view.name, "another process just changed the cap; xtc reads the original again"
            )

    def _fatal_or_not(self, view: DomainView, raised: Exception) -> ActuatorError:
        """Return the error of the domain.

        Raises:
            Gone: it no longer exists.
            Transient: the connection is dead.
        """
        error = self._explained(view, raised)
        if isinstance(error, Gone) or not self.link.alive:
            raise error from raised
        return error

    def _written(self, domain: Domain, view: DomainView, order: Order) -> DomainView:
        self._check_heard(view)
        domain.setSchedulerParametersFlags(dict(order.parameters), order.flags)
        got = told(domain.schedulerParametersFlags(order.flags))
        wrong = {
            key: got.get(key) for key, wrote in order.parameters.items() if got.get(key) != wrote
        }
        if wrong:
            raise Transient(view.name, f"wrote {dict(order.parameters)} but read back {wrong}")
        return replace(view, parameters=got)

    def _check_heard(self, view: DomainView) -> None:
        if not self.is_heard():
            raise Transient(view.name, "this call timed out")

    def _with_mark(self, domain: Domain, view: DomainView, order: Order) -> DomainView:
        if order.mark == view.mark:
            return view
        self._check_heard(view)
        text = None if order.mark is None else mark_of(order.mark)
        try:
            domain.setMetadata(METADATA_ELEMENT, text, KEY, URI, AFFECT_LIVE)
        except self.link.api.errors as error:
            if code_of(error) not in _NO_METADATA:
                raise
            return view  # the journal has the original; it just does not migrate
        return replace(view, mark=order.mark)

    def _looked_at(self, domain: Domain, view: DomainView, *, describe: bool) -> DomainView:
        """Return the view after a poll; errors become its `problem`."""
        view = replace(view, visited=True, described=view.described and not describe)
        try:
            if not view.described:
                view = self._described(domain, view)
            return replace(self._observed(domain, view), problem=None)
        except self.link.troubles as raised:
            return replace(view, problem=self._fatal_or_not(view, raised))

    def _described(self, domain: Domain, view: DomainView) -> DomainView:
        """Read what events announce: scheduler, interfaces, vCPUs, and mark."""
        found = parse_domain(domain.XMLDesc(0), name=view.name, driver=self.link.driver)
        return replace(
            view,
            scheduler=str(domain.schedulerType()[0]),
            vcpus=found.vcpus,
            interfaces=found.interfaces,
            uncounted=found.uncounted,
            mark=self._marked(domain),
            described=True,
        )

    def _marked(self, domain: Domain) -> dict[str, int] | None:
        try:
            return original_of(domain.metadata(METADATA_ELEMENT, URI, AFFECT_LIVE))
        except self.link.api.errors as error:
            if code_of(error) in {Code.NO_DOMAIN_METADATA, *_NO_METADATA}:
                return None
            raise

    def _observed(self, domain: Domain, view: DomainView) -> DomainView:
        """Read back the cap and count CPU time; `seen_at` is the instant of the count."""
        way = way_of(view.name, self.link.driver, "vcpu")
        check_scheduler(view.name, self.link.driver, view.scheduler)
        parameters = told(domain.schedulerParametersFlags(way.flags))
        view = replace(view, parameters=parameters, vcpus=max(1, domain.info()[3]))
        begun = self.clock.now()
        used, by_vcpus = _cpu_time(domain, by_vcpu=way.by_vcpu)
        took = self.clock.now() - begun
        if took > BLURRED_S:
            return view  # it was delayed, so the instant of the count is unknown
        at = Seconds(begun + took / 2)
        return replace(view, used=used, used_by_vcpus=by_vcpus, seen_at=at)


def _cpu_time(domain: Domain, *, by_vcpu: bool) -> tuple[Seconds, tuple[Seconds, ...]]:
    """Return the CPU time of a whole domain, and of each vCPU if requested.

    libvirt lists the vCPUs that are online, each with its number (virDomainGetVcpus).
    """
    if not by_vcpu:
        return Seconds(domain.info()[4] / 1e9), ()
    by_number = sorted(domain.vcpus()[0], key=itemgetter(0))
    vcpus = tuple(Seconds(vcpu[2] / 1e9) for vcpu in by_number)
    # QEMU's info() counts in clock ticks, and omits vhost threads.
    return Seconds(domain.getCPUStats(True)[0]["cpu_time"] / 1e9), vcpus
