"""The floor of a router in a control group: `cpu.weight` (v2) or `cpu.shares` (v1)."""

import os
from collections.abc import Collection, Mapping
from pathlib import Path

from msgspec.structs import replace

from xtc.actuator.explain import Translated, explain_cgroup
from xtc.actuator.weights import Arena
from xtc.errors import ActuatorError, Transient, Unsupported
from xtc.kernel.weights import GroupWeight, open_weight, pressure, rivals
from xtc.spec import CgroupOriginal, Original, Scale

_WAKE = "write 0 into its cpu.idle"


class GroupWeights:
    """Weighs one control group (`xtc.actuator.weights.Weights`); its file is opened once."""

    def __init__(self, path: str) -> None:
        """Open the weight of an existing group; a weight that cannot be opened is not an error."""
        self._path, self._translated = path, Translated(path)
        self._weight, self._weightless = _opened(path)
        self._place = Path(os.path.realpath(path))
        self._cpus = os.cpu_count()  # read once: it takes as long as reading a file
        self._claimed: int | None = None
        """The weight in force when it was claimed."""

    @property
    def scale(self) -> Scale | None:
        """The file's scale; None where the group has no weight, or none that may be written."""
        return None if self._weight is None else self._weight.scale

    @property
    def cpus(self) -> int | None:
        """All of the host."""
        return self._cpus

    @property
    def arena(self) -> Arena:
        """The group's parent: a weight counts among siblings."""
        return Arena(("cgroup", self._place.parent), self._place.name)

    def rivals(self, but: Collection[str]) -> Mapping[str, int]:
        """Return the weights of the siblings that have processes, except these."""
        with self._translated:
            return rivals(self._place, but)

    def read(self) -> int:
        """Return the weight in force.

        Raises:
            Gone: the group has been removed.
            Denied: its file may not be written.
            Unsupported: the group is idle, or has no weight.
        """
        weight = self._known()
        with self._translated:
            if weight.idle:
                raise Unsupported(self._path, "cpu.idle is 1, so its weight has no effect", _WAKE)
            return weight.read()

    def claim(self, original: Original) -> CgroupOriginal:
        """Return an original with the current weight, unless it already has one."""
        assert isinstance(original, CgroupOriginal)  # this actuator has captured it
        self._claimed = self.read() if original.weight is None else original.weight
        return replace(original, weight=self._claimed)

    def disclaim(self, original: Original) -> CgroupOriginal:
        """Return an original that leaves the weight alone."""
        assert isinstance(original, CgroupOriginal)  # this actuator has captured it
        self._claimed = None
        return replace(original, weight=None)

    def standing(self, original: Original) -> int | None:
        """Return the weight that an original restores."""
        return original.weight if isinstance(original, CgroupOriginal) else None

    @property
    def claimed(self) -> int | None:
        """The weight to capture; None where it must not be changed."""
        return self._claimed

    def write(self, weight: int) -> None:
        """Write a weight, unless it is already in force; raises as `read`, and Transient.

        Raises:
            Transient: the value read back differs from the one written.
        """
        if self.read() == weight:
            return
        with self._translated:
            self._known().write(weight)
        if (got := self.read()) != weight:
            raise Transient(self._path, f"wrote the weight {weight} but read back {got}")

    def put_back(self, weight: int | None) -> None:
        """Restore a captured weight; an idle group has lost ours and accepts no other."""
        if weight is None:
            return
        with self._translated:
            idle = self._known().idle
        if not idle:
            self.write(weight)

    def contended(self) -> float | None:
        """Return the group's CPU pressure as the kernel reports it (v2)."""
        return pressure(self._place)

    def _known(self) -> GroupWeight:
        if self._weight is None:
            raise self._weightless.with_traceback(None)
        return self._weight


def _opened(path: str) -> tuple[GroupWeight | None, ActuatorError]:
    """Return a group's weight, or the reason why it has none."""
    weightless: ActuatorError = Unsupported(path, "the control group has no weight")
    try:
        return open_weight(path), weightless
    except OSError as error:
        return None, explain_cgroup(path, error)
