"""The floor of a domain, through libvirt: Xen's `weight`, or `cpu_shares` of QEMU and LXC.

A weight is added to a pending order of the cap, since a domain has one order at a time. A failed
order is repeated without the weight, so that a weight never blocks a cap.
"""

import os
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

from msgspec.structs import replace as with_fields

from xtc.actuator.weights import Arena
from xtc.errors import ActuatorError, Gone, Unsupported
from xtc.kernel.files import lines_of
from xtc.kernel.quota import controller_mount
from xtc.libvirt.api import Parameters
from xtc.libvirt.domains import DomainView, Order, Outcome, afresh
from xtc.libvirt.session import Session
from xtc.spec import CGROUP_V1, CGROUP_V2, XEN, LibvirtOriginal, Original, Scale

_SHARES: Final = "cpu_shares"
_DOM0: Final = "Dom0"


def scale_of(driver: str, *, unified: bool) -> Scale:
    """Return the weights of a driver; those of control groups follow the kernel (formatdomain)."""
    if driver == "Xen":
        return XEN
    return replace(CGROUP_V2 if unified else CGROUP_V1, parameter=_SHARES)


def is_unified() -> bool:
    """Whether the CPU controller of control groups is on v2 here."""
    return controller_mount(lines_of(Path("/proc/self/mounts")), "cpu") is None


class Captured:
    """What a domain had before xtc, for both its cap and its weight.

    Its mark holds the originals of those parameters only that xtc has changed: an original that
    turns out to be outdated before the first write must not come back from a mark.
    """

    def __init__(self, original: LibvirtOriginal | None, number: int) -> None:
        self.original, self.number = original, number
        self._changed = set() if original is None else set(original.parameters)

    def was_changed(self, parameters: Collection[str]) -> None:
        """Note parameters that xtc has changed, or is about to."""
        self._changed.update(parameters)

    def was_not_changed(self, parameter: str) -> None:
        """Note a parameter that xtc has given up."""
        self._changed.discard(parameter)

    def mark(self) -> Parameters:
        """Return the originals of the changed parameters."""
        assert self.original is not None  # captured before the first order
        return {k: v for k, v in self.original.parameters.items() if k in self._changed}


class DomainWeights:
    """The weight of one run of a domain (`xtc.actuator.weights.Weights`)."""

    def __init__(
        self,
        session: Session,
        scale: Scale,
        flags: int,
        uuid: str,
        find: Callable[[], DomainView],
        *,
        captured: Captured,
    ) -> None:
        """Use the domain of this UUID; `find` returns it, or raises the reason why it cannot."""
        self._session, self._scale, self._flags = session, scale, flags
        self._find, self._captured = find, captured
        self._uuid = uuid
        self._order: Order | None = None
        """The last order with a weight, until its outcome is known."""
        self._fresh = False
        """Whether the claimed weight must still be in force at the first write."""
        self._failed: ActuatorError | None = None

    @property
    def scale(self) -> Scale:
        """The scale of the hypervisor's scheduler."""
        return self._scale

    @property
    def cpus(self) -> int | None:
        """The host's CPUs; unknown for Xen in Dom0."""
        return None if self._scale is XEN else os.cpu_count()

    @property
    def arena(self) -> Arena:
        """The hypervisor: domains contend with each other."""
        return Arena(("libvirt", self._session.uri, self._scale.parameter), self._uuid)

    def rivals(self, but: Collection[str]) -> Mapping[str, int]:
        """Return the weights of running domains; the default where none was read."""
        key, default = self._scale.parameter, self._scale.default
        found = {
            view.uuid: view.parameters.get(key, default)
            for view in self._session.view.domains.values()
            if view.active and view.uuid not in but
        }
        return found | ({_DOM0: default} if self._scale is XEN else {})

    def read(self) -> int:
        """Return the weight in force or pending.

        Raises:
            ActuatorError: the last one failed, raised once; or the domain cannot be polled.
            Unsupported: the hypervisor reports no weight.
        """
        error, self._failed = self._failed, None
        if error is not None:
            raise afresh(error)
        view = self._find()
        found = {**view.parameters, **self.under_way()}
        if self._scale.parameter not in found:
            raise Unsupported(view.name, f"the hypervisor does not report {self._scale.parameter}")
        return found[self._scale.parameter]

    def claim(self, original: Original) -> LibvirtOriginal:
        """Return an original with the current weight, unless it already has one."""
        assert isinstance(original, LibvirtOriginal)  # this actuator has captured it
        if self.standing(original) is None:
            parameters = {**original.parameters, self._scale.parameter: self.read()}
            original, self._fresh = with_fields(original, parameters=parameters), True
        self._captured.original = original
        return original

    def disclaim(self, original: Original) -> LibvirtOriginal:
        """Return an original that leaves the weight alone."""
        assert isinstance(original, LibvirtOriginal)  # this actuator has captured it
        kept = {k: v for k, v in original.parameters.items() if k != self._scale.parameter}
        original, self._fresh = with_fields(original, parameters=kept), False
        self._captured.original = original
        self._captured.was_not_changed(self._scale.parameter)
        self._captured.number = self._session.new_capture()
        return original

    def standing(self, original: Original) -> int | None:
        """Return the weight that an original restores."""
        assert isinstance(original, LibvirtOriginal)  # this actuator has captured it
        return original.parameters.get(self._scale.parameter)

    def write(self, weight: int) -> None:
        """Order a weight, with a pending cap; `read` raises its failure."""
        view, pending = self._find(), self._session.pending(self._uuid)
        cap = {} if pending is None else pending.parameters
        self._captured.was_changed([self._scale.parameter])
        self._order = self._session.order(
            view,
            {**cap, self._scale.parameter: weight},
            self._flags,
            mark=self._captured.mark(),
            expected=self.expected(),
            capture=self._captured.number,
        )
        self._fresh = False

    def expected(self) -> dict[str, int] | None:
        """Return what must still be in force at the first write; None after it."""
        original, key = self._captured.original, self._scale.parameter
        if not self._fresh or original is None:
            return None
        return {key: original.parameters[key]}

    def under_way(self) -> dict[str, int]:
        """Return the weight that is ordered and not confirmed."""
        if self._order is None:
            return {}
        return {self._scale.parameter: self._order.parameters[self._scale.parameter]}

    def took_along(self, order: Order) -> None:
        """Note that another order includes the pending weight."""
        self._order = order if self._order is not None else None

    def settle(self, outcome: Outcome | None) -> Parameters | None:
        """Get the outcome of the last weight.

        Returns:
            The parameters to order again without it; None if there are none.
        """
        if self._order is None or outcome is None or outcome.order.number < self._order.number:
            return None
        self._order = None
        if outcome.error is None or isinstance(outcome.error, Gone):
            return None
        self._failed = outcome.error
        key = self._scale.parameter
        return {k: v for k, v in outcome.order.parameters.items() if k != key}

    def contended(self) -> float | None:
        """Return None: hypervisors do not report how long their domains waited."""
        return None
