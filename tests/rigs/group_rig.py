"""Routers in control groups of plain files, as cgroup v2 has them, with a manager over them."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from manager_rig import PERIOD, ManagerRig, planned

from common.units import PacketsPerSecond
from xtc.actuator.factory import open_actuator
from xtc.config.plan import RouterPlan
from xtc.control.floors import AUTO
from xtc.measure.collector import Reading
from xtc.spec import CgroupSpec
from xtc.wire import Activate

DEFAULT = 100


def make_group(path: Path, weight: int = DEFAULT, *, populated: bool = True) -> Path:
    """Make a group of plain files."""
    path.mkdir(parents=True)
    (path / "cpu.max").write_text("max 100000\n")
    (path / "cpu.weight").write_text(f"{weight}\n")
    (path / "cpu.idle").write_text("0\n")
    (path / "cpu.stat").write_text("usage_usec 0\nnr_periods 0\nnr_throttled 0\n")
    (path / "cgroup.events").write_text(f"populated {int(populated)}\nfrozen 0\n")
    return path


@dataclass
class Forwarder:
    """What a router does with the CPU that it gets."""

    offered: float = 0.0
    cost_s: float = 1e-5
    """CPU time of a packet."""
    gets: float = 1.0
    """CPUs that it gets at most, whatever its cap."""
    used_s: float = 0.0
    periods: int = 0
    throttled: int = 0


class GroupRig(ManagerRig):
    """Routers whose caps and weights are files; others' groups are made by the test."""

    def __init__(self, directory: Path, plans: Mapping[str, RouterPlan]) -> None:
        super().__init__(directory / "state", {})
        self.plans = dict(plans)
        self.groups = {name: directory / "cg" / name for name in plans}
        self.forwarders = {name: Forwarder() for name in plans}
        for group in self.groups.values():
            make_group(group)
        self.blind = False
        self.start()

    def start(self) -> None:
        """Start a daemon's manager on the state directory."""
        self.open_manager(open_actuator)
        self.troubles = self.manager.start()

    def tick(self, periods: int = 1) -> None:
        """Let periods pass."""
        for _ in range(periods):
            self.clock.sleep(PERIOD)
            readings = {name: self._forward(name) for name in self.groups}
            self.manager.tick({} if self.blind else readings, self.clock.now())

    def _forward(self, name: str) -> Reading:
        one = self.forwarders[name]
        quota, period = (self.groups[name] / "cpu.max").read_text().split()
        cap = 1e9 if quota == "max" else int(quota) / int(period)
        wants = one.offered * one.cost_s
        used = min(wants, cap, one.gets)
        one.used_s += used * PERIOD
        one.periods += 10
        one.throttled += 10 if cap < min(wants, one.gets) else 0
        (self.groups[name] / "cpu.stat").write_text(
            f"usage_usec {round(one.used_s * 1e6)}\nnr_periods {one.periods}\n"
            f"nr_throttled {one.throttled}\n"
        )
        throughput = PacketsPerSecond(used / one.cost_s)
        return Reading(throughput, PacketsPerSecond(one.offered), (f"{name}.0",))

    def hold(self, name: str, setpoint: float, *, periods: int = 8) -> None:
        """Activate a router and let its loop settle."""
        self.ask(Activate(name, setpoint))
        self.tick(periods)

    def weight(self, name: str) -> int:
        """Return the weight that stands there."""
        return int((self.groups[name] / "cpu.weight").read_text())

    def set_weight(self, name: str, weight: int) -> None:
        """Set a weight as an operator does."""
        (self.groups[name] / "cpu.weight").write_text(f"{weight}\n")

    def capped(self, name: str) -> bool:
        """Whether a cap stands there."""
        return not (self.groups[name] / "cpu.max").read_text().startswith("max")


def group_plan(directory: Path, name: str, weight: str | int = AUTO) -> RouterPlan:
    """Return the plan of a router in a control group."""
    plan = planned(name, CgroupSpec(str(directory / "cg" / name)))
    return replace(plan, weight=weight)
