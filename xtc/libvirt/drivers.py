"""Caps of each hypervisor: the parameters of its scheduler, and their meaning.

Xen (credit, credit2): ``cap``, whole percents of one CPU for the domain as a whole, 0 means
uncapped (xl(1), sched-credit). QEMU: ``vcpu_quota`` in ``vcpu_period`` for each vCPU, or
``global_quota`` for the whole machine; LXC: ``vcpu_quota`` for the whole container; negative means
uncapped, 0 means "leave it" (libvirt, formatdomain, cputune). Only this module translates between
the two; it is pure.
"""

from dataclasses import dataclass
from typing import Final, Protocol

from common.units import CapFraction, Seconds
from xtc.actuator.base import CapLimits
from xtc.errors import Unsupported
from xtc.kernel.quota import FLOOR, quota_for
from xtc.libvirt.api import AFFECT_CURRENT, AFFECT_LIVE, Parameters

PERCENT: Final = 0.01
JIFFY_S: Final = Seconds(0.01)
"""libvirt counts a vCPU's time in the kernel's clock ticks (proc(5), stat)."""
UNCAPPED_QUOTA: Final = -1
_UNLIMITED: Final = 2**44 - 1
"""libvirt's value for an uncapped quota on cgroup v2 (VIR_CGROUP_CPU_QUOTA_MAX)."""


def told(parameters: Parameters) -> dict[str, int]:
    """Return parameters with every uncapped quota as -1.

    cgroup v1 reports -1, v2 reports 2^44 - 1; both accept -1.
    """
    return {
        key: UNCAPPED_QUOTA if key.endswith("_quota") and not 0 < value < _UNLIMITED else value
        for key, value in parameters.items()
    }


class Way(Protocol):
    """How one hypervisor expresses caps."""

    @property
    def flags(self) -> int:
        """The flags for its scheduler's calls."""
        ...

    @property
    def by_vcpu(self) -> bool:
        """Whether its cap applies to the vCPUs only, so that only their time counts."""
        ...

    @property
    def grain(self) -> Seconds:
        """The granularity at which CPU time is granted or counted."""
        ...

    def limits(self, vcpus: int, host_cpus: int) -> CapLimits:
        """Return the caps that it can express."""
        ...

    def parameters(self, cap: CapFraction, vcpus: int, standing: Parameters) -> dict[str, int]:
        """Return the parameters of a cap; a cap within the limits never means uncapped."""
        ...

    def cap(self, parameters: Parameters, vcpus: int) -> CapFraction | None:
        """Return the cap of parameters, None if there is none."""
        ...

    def original(self, parameters: Parameters) -> dict[str, int]:
        """Return the part of the current parameters that release restores."""
        ...


@dataclass(frozen=True, slots=True)
class XenWay:
    """Xen's credit and credit2 schedulers."""

    flags: int = AFFECT_CURRENT
    """Xen's driver refuses any flag."""
    by_vcpu: bool = False
    grain: Seconds = Seconds(0.03)
    """credit grants CPU time in slices of 30 ms: a cap of 5 % gives 3 to 6 % in a second."""

    def limits(self, vcpus: int, host_cpus: int) -> CapLimits:
        """1 % to all of its vCPUs, in whole percents."""
        del host_cpus
        return CapLimits(CapFraction(PERCENT), CapFraction(float(vcpus)), quantum=PERCENT)

    def parameters(self, cap: CapFraction, vcpus: int, standing: Parameters) -> dict[str, int]:
        """Return the nearest whole percent; never 0, which would mean uncapped."""
        del standing
        return {"cap": min(max(round(cap * 100), 1), 100 * vcpus)}

    def cap(self, parameters: Parameters, vcpus: int) -> CapFraction | None:
        """Return the cap, None for 0."""
        del vcpus
        percent = parameters["cap"]
        return None if percent == 0 else CapFraction(percent / 100)

    def original(self, parameters: Parameters) -> dict[str, int]:
        """Return the cap only; xtc does not change the weight here."""
        return {"cap": parameters["cap"]}


@dataclass(frozen=True, slots=True)
class QuotaWay:
    """A CFS quota managed by libvirt: the common part of QEMU and LXC."""

    prefix: str
    shared: bool
    """Whether all share one quota, instead of one per vCPU."""
    by_vcpu: bool
    flags: int = AFFECT_LIVE
    """Without it, the configuration of a stopped domain would be changed silently."""
    grain: Seconds = Seconds(0.0)

    def limits(self, vcpus: int, host_cpus: int) -> CapLimits:
        """0.1 % of each vCPU to all of them; threads other than vCPUs may use the host's CPUs."""
        parts, most = (1, host_cpus) if self.shared else (vcpus, vcpus)
        return CapLimits(CapFraction(FLOOR * parts), CapFraction(float(most)))

    def parameters(self, cap: CapFraction, vcpus: int, standing: Parameters) -> dict[str, int]:
        """Return quota and period; the quota is never 0, which would mean "leave it"."""
        part = CapFraction(cap / (1 if self.shared else vcpus))
        quota = quota_for(part, standing.get(f"{self.prefix}_period", 0))
        assert quota.quota_us is not None  # a cap is never uncapped
        return self._named(quota.quota_us, quota.period_us)

    def cap(self, parameters: Parameters, vcpus: int) -> CapFraction | None:
        """Return the cap, None for a negative quota."""
        standing = told(parameters)
        quota, period = standing[f"{self.prefix}_quota"], standing[f"{self.prefix}_period"]
        if quota == UNCAPPED_QUOTA or period <= 0:
            return None
        return CapFraction(quota / period * (1 if self.shared else vcpus))

    def original(self, parameters: Parameters) -> dict[str, int]:
        """Return quota and period, uncapped as -1, in any notation of the hypervisor."""
        standing = told(parameters)
        return self._named(standing[f"{self.prefix}_quota"], standing[f"{self.prefix}_period"])

    def _named(self, quota_us: int, period_us: int) -> dict[str, int]:
        return {f"{self.prefix}_period": period_us, f"{self.prefix}_quota": quota_us}


class QemuVcpuWay(QuotaWay):
    """QEMU, one quota per vCPU; emulator and vhost threads are uncapped."""

    def __init__(self) -> None:
        super().__init__("vcpu", shared=False, by_vcpu=True, grain=JIFFY_S)


class QemuMachineWay(QuotaWay):
    """QEMU, one quota for the whole machine, including emulator and vhost threads."""

    def __init__(self) -> None:
        super().__init__("global", shared=True, by_vcpu=False)


class LxcWay(QuotaWay):
    """LXC, one quota for the whole container, regardless of its `vcpu`."""

    def __init__(self) -> None:
        super().__init__("vcpu", shared=True, by_vcpu=False)


def way_of(target: str, driver: str, scope: str) -> Way:
    """Return the caps of a connection's driver.

    Raises:
        Unsupported: xtc cannot cap domains of this driver.
    """
    if driver == "QEMU":
        return QemuMachineWay() if scope == "machine" else QemuVcpuWay()
    if driver == "Xen":
        return XenWay()
    if driver == "LXC":
        return LxcWay()
    raise Unsupported(target, f"libvirt's {driver} driver cannot cap", "use xen, qemu or lxc")


_CAPPING: Final = {"credit", "credit2"}


def check_scheduler(target: str, driver: str, scheduler: str) -> None:
    """Refuse a Xen scheduler without caps (ADR 0016).

    Raises:
        Unsupported: explains how to boot with the credit scheduler.
    """
    if driver == "Xen" and scheduler not in _CAPPING:
        raise Unsupported(
            target,
            f"Xen runs the {scheduler} scheduler, which has no caps",
            "boot Xen with sched=credit (GRUB_CMDLINE_XEN_DEFAULT in /etc/default/grub)",
        )
