"""A visit to one domain: its order, then a look at it. It blocks, and knows no thread."""

from dataclasses import replace
from typing import Final

from xtc.clock import Clock
from xtc.errors import ActuatorError, Gone, Transient
from xtc.units import Seconds
from xtc.virt.api import AFFECT_LIVE, METADATA_ELEMENT, Code, Domain
from xtc.virt.domains import DomainView, Order, Outcome, Visit
from xtc.virt.domainxml import parse_domain
from xtc.virt.explain import code_of, explain
from xtc.virt.link import Link
from xtc.virt.mark import KEY, URI, mark_of, original_of
from xtc.virt.ways import check_scheduler, way_of

_DOM0: Final = "00000000-0000-0000-0000-000000000000"
"""Xen lists the domain that all this runs in among the others."""
_NO_METADATA: Final = {Code.NO_SUPPORT, Code.OPERATION_UNSUPPORTED, Code.ARGUMENT_UNSUPPORTED}


def survey(link: Link) -> list[DomainView]:
    """Return every domain of the host, with as little as the list tells.

    Raises:
        Exception: one of `Api.errors`.
    """
    return [
        DomainView(domain.UUIDString(), domain.name(), domain.ID())
        for domain in link.list()
        if domain.UUIDString() != _DOM0
    ]


def pay(link: Link, clock: Clock, visit: Visit) -> tuple[DomainView, Outcome | None]:
    """Return what is known of a domain after a visit, and what became of its order.

    What goes wrong with the domain is in what is returned.

    Raises:
        Transient: the connection is dead, so that nothing is known.
    """
    try:
        domain = _running(link, visit.known)
        view, outcome = _with_order(link, clock, domain, visit)
        return _looked_at(link, clock, domain, view, describe=visit.describe), outcome
    except Gone as gone:
        failed = None if visit.order is None else Outcome(visit.order, gone, Seconds(0.0))
        return replace(visit.known, domid=-1, problem=gone), failed


def _running(link: Link, known: DomainView) -> Domain:
    """Return the domain, in the run that is known.

    To ask libvirtd 9.0 for the scheduler of an LXC domain that does not run ends libvirtd; so
    this asks whether it runs, right before.
    """
    domain = link.domains.get(known.uuid)
    try:
        if domain is None or not domain.isActive():
            raise Gone(known.name, "the domain does not run")
    except link.api.errors as error:
        raise _explained(link, known, error) from error
    if domain.ID() != known.domid:
        raise Gone(known.name, "the domain was started anew")
    return domain


def _explained(link: Link, view: DomainView, error: Exception) -> ActuatorError:
    if not link.alive:
        return Transient(view.name, "the connection to libvirt ended")
    return error if isinstance(error, ActuatorError) else explain(view.name, error)


def _with_order(
    link: Link, clock: Clock, domain: Domain, visit: Visit
) -> tuple[DomainView, Outcome | None]:
    order, begun = visit.order, clock.now()
    if order is None:
        return visit.known, None
    try:
        view = _carried_out(link, domain, visit.known, order)
    except link.troubles as raised:
        error = _explained(link, visit.known, raised)
        if isinstance(error, Gone) or not link.alive:
            raise error from raised
        return visit.known, Outcome(order, error, Seconds(0.0))
    return view, Outcome(order, None, Seconds(clock.now() - begun))


def _carried_out(link: Link, domain: Domain, view: DomainView, order: Order) -> DomainView:
    """Mark, write, and read back; to remove the mark comes last."""
    if order.domid != view.domid:
        raise Gone(view.name, "the domain was started anew")
    if order.mark is not None and order.mark != view.mark:
        view = _mark(link, domain, view, order)
    domain.setSchedulerParametersFlags(dict(order.parameters), order.flags)
    got = dict(domain.schedulerParametersFlags(order.flags))
    wrong = {key: got.get(key) for key, value in order.parameters.items() if got.get(key) != value}
    if wrong:
        raise Transient(view.name, f"wrote {dict(order.parameters)} but read back {wrong}")
    view = replace(view, parameters=got)
    if order.mark is None and view.mark is not None:
        view = _mark(link, domain, view, order)
    return view


def _mark(link: Link, domain: Domain, view: DomainView, order: Order) -> DomainView:
    text = None if order.mark is None else mark_of(order.mark)
    try:
        domain.setMetadata(METADATA_ELEMENT, text, KEY, URI, AFFECT_LIVE)
    except link.api.errors as error:
        if code_of(error) not in _NO_METADATA:
            raise
        return view  # the journal has the original; it just does not travel
    return replace(view, mark=order.mark)


def _looked_at(
    link: Link, clock: Clock, domain: Domain, view: DomainView, *, describe: bool
) -> DomainView:
    """Return what is known after a look; what goes wrong is its `problem`."""
    try:
        if describe or not view.visited:
            view = _described(link, domain, view)
        view = replace(_observed(link, clock, domain, view), problem=None, visited=True)
    except link.troubles as raised:
        error = _explained(link, view, raised)
        if isinstance(error, Gone) or not link.alive:
            raise error from raised
        return replace(view, problem=error, visited=True)
    return view


def _described(link: Link, domain: Domain, view: DomainView) -> DomainView:
    """Read what events announce: scheduler, interfaces, vCPUs, and the mark."""
    found = parse_domain(domain.XMLDesc(0), name=view.name, driver=link.driver)
    return replace(
        view,
        scheduler=str(domain.schedulerType()[0]),
        vcpus=found.vcpus,
        interfaces=found.interfaces,
        uncounted=found.uncounted,
        mark=_marked(link, domain),
    )


def _marked(link: Link, domain: Domain) -> dict[str, int] | None:
    try:
        return original_of(domain.metadata(METADATA_ELEMENT, URI, AFFECT_LIVE))
    except link.api.errors as error:
        if code_of(error) in {Code.NO_DOMAIN_METADATA, *_NO_METADATA}:
            return None
        raise


def _observed(link: Link, clock: Clock, domain: Domain, view: DomainView) -> DomainView:
    """Read back the cap and count CPU time; `seen_at` is the instant of the counting."""
    way = way_of(view.name, link.driver, "vcpu")
    check_scheduler(view.name, link.driver, view.scheduler)
    parameters = dict(domain.schedulerParametersFlags(way.flags))
    info, used_by_vcpus = domain.info(), None
    if way.by_vcpu:
        used_by_vcpus = Seconds(sum(vcpu[2] for vcpu in domain.vcpus()[0]) / 1e9)
    return replace(
        view,
        vcpus=max(1, info[3]),
        parameters=parameters,
        used=Seconds(info[4] / 1e9),
        used_by_vcpus=used_by_vcpus,
        seen_at=clock.now(),
    )
