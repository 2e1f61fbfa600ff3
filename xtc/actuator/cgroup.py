"""A CFS quota on a control group, v1 or v2: caps routers that forward in user space."""

import os
from pathlib import Path

from common.units import CapFraction, Seconds
from xtc.actuator.base import CapLimits, CpuUsage
from xtc.actuator.cgroup_weights import GroupWeights
from xtc.actuator.explain import Translated
from xtc.errors import Gone, Permanent, Transient, Unsupported
from xtc.kernel.cgroupfs import Group, open_group
from xtc.kernel.quota import FLOOR, Quota, longest_period_us, quota_for
from xtc.spec import CgroupOriginal, CgroupSpec, Original

_ENABLE = "enable cpu in the parent's cgroup.subtree_control, or on v1 name the cpu hierarchy"


class CgroupActuator:
    """Caps every thread of one control group together (Linux, sched-bwc.rst and cgroup-v2.rst).

    The group's files are opened once: a group that is removed and created again under the same name
    is another group, for which this actuator raises Gone. It creates no groups.
    """

    def __init__(
        self, spec: CgroupSpec, original: CgroupOriginal | None = None, *, loop_s: float = 1.0
    ) -> None:
        """Open the group; ``original`` is its journal entry, if any.

        The quota is refilled several times in ``loop_s``, the seconds between two samples.

        Raises:
            Gone: there is no such group, or not the one in the journal.
            Denied: its files may not be written.
            Unsupported: it has no CPU controller.
        """
        self._path, self._original = spec.path, original
        self._translated = Translated(spec.path)
        self._group = _open(spec.path)
        self.weights = GroupWeights(spec.path)
        """The floor, next to the cap."""
        if original is not None and original.inode not in {0, self._inode()}:
            raise Gone(spec.path, "another control group has taken this name")
        ceiling = CapFraction(float(os.cpu_count() or 1))
        self._limits = CapLimits(floor=FLOOR, ceiling=ceiling)
        self._longest_us = longest_period_us(loop_s)
        self._last: Quota | None = None
        """The last value read, which saves `apply` a read; every write is read back."""

    @property
    def limits(self) -> CapLimits:
        """0.1 % to all CPUs of the host, practically continuous."""
        return self._limits

    @property
    def slow(self) -> bool:
        """False: every call takes microseconds."""
        return False

    def settle(self) -> bool:
        """Return True: caps take effect immediately."""
        return True

    def rebalance(self) -> CapFraction | None:
        """Return None: all threads share the cap."""
        return None

    def capture(self) -> CgroupOriginal:
        """Return the quota before xtc: the journal's if it has one, else the current quota."""
        if self._original is not None:
            return self._original
        inode = self._inode()
        quota = self._read()  # not Gone: the open group still existed, so the inode belongs to it
        path = os.path.realpath(self._path)
        return CgroupOriginal(quota.quota_us, quota.period_us, path, inode, self.weights.claimed)

    def applied(self) -> CapFraction | None:
        """Return the cap in force, None where the group is uncapped."""
        return self._read().cap

    def apply(self, cap: CapFraction) -> CapFraction:
        """Write a cap, as a fraction of one CPU, and return the value read back.

        Raises:
            Gone: the group has been removed.
            Transient: the value read back differs: another process writes here.
            Permanent: the kernel refuses the quota because of a group above or below.
            Denied: the group may not be written.
        """
        wanted = self._limits.bound(cap, target=self._path)
        old = self._last or self._read()
        new = quota_for(wanted, old.period_us, self._longest_us)
        return self._write(old, new) or wanted

    def usage(self) -> CpuUsage:
        """Return the group's CPU time and how often the quota throttled it."""
        with self._translated:
            usage = self._group.usage()
        refill = 0.0 if self._last is None or self._last.cap is None else self._last.period_us
        return CpuUsage(*usage, refill=Seconds(refill / 1e6))

    def restore(self, original: Original) -> None:
        """Restore captured quota and weight; a removed group counts as restored.

        Raises:
            Permanent: the original belongs to another actuator.
            Transient: the value read back differs from the one written.
        """
        if not isinstance(original, CgroupOriginal):
            raise Permanent(self._path, f"cannot restore a {type(original).__name__}")
        try:
            self._write(self._read(), Quota(original.quota_us, original.period_us))
            self.weights.put_back(original.weight)
        except Gone:
            return  # the group is gone, and our settings with it

    def _inode(self) -> int:
        with self._translated:
            return Path(self._path).stat().st_ino

    def _read(self) -> Quota:
        with self._translated:
            self._last = self._group.read()
        return self._last

    def _write(self, old: Quota, new: Quota) -> CapFraction | None:
        with self._translated:
            self._group.write(old, new)
        got = self._read()
        if not _same(got, new):
            raise Transient(self._path, f"wrote {new} but read back {got}")
        return got.cap


def _same(got: Quota, wanted: Quota) -> bool:
    if got.cap is None or wanted.cap is None:
        return got.cap is wanted.cap
    return abs(got.cap - wanted.cap) <= 1 / wanted.period_us


def _open(path: str) -> Group:
    with Translated(path):
        group = open_group(path)
    if group is None:
        raise Unsupported(path, "this directory has no CPU controller", _ENABLE)
    return group
