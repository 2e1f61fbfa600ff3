"""A fake domain: what its hypervisor holds of it, and what it takes and refuses."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Driver = Literal["Xen", "QEMU", "LXC"]
UNLIMITED = (1 << 44) - 1
_RANGES = {"period": (1000, 1_000_000), "quota": (1000, UNLIMITED), "shares": (2, 262_144)}
_PARTS = {"Xen": (), "QEMU": ("vcpu", "emulator", "global", "iothread"), "LXC": ("vcpu",)}


class FakeLibvirtError(Exception):
    """`libvirtError`: a number and words."""

    def __init__(self, code: int, words: str) -> None:
        super().__init__(words)
        self.code = code

    def get_error_code(self) -> int:
        return self.code

    def get_error_message(self) -> str:
        return str(self)


def closed() -> FakeLibvirtError:
    return FakeLibvirtError(1, "internal error: client socket is closed")


@dataclass
class Guest:
    """A domain as the hypervisor holds it."""

    name: str
    uuid: str
    driver: Driver
    vcpus: int = 1
    persistent: bool = True
    domid: int = -1
    paused: bool = False
    parameters: dict[str, int] = field(default_factory=dict)
    metadata: dict[str, str] = field(default_factory=dict)
    """Of this run, by namespace."""
    targets: list[str | None] = field(default_factory=list)
    """Its interfaces; None is one that Xen's driver does not name."""
    cpu_ns: int = 0
    vcpu_ns: dict[int, int] | None = None
    """CPU time of each vCPU that is online, by number; None is that all share `cpu_ns` evenly."""
    xml: str | None = None
    """Served instead of its own."""

    def begin(self, domid: int, targets: list[str | None]) -> None:
        self.domid, self.targets, self.cpu_ns, self.metadata = domid, targets, 0, {}
        self.vcpu_ns = None
        self.parameters = {"weight": 256, "cap": 0} if self.driver == "Xen" else {}
        if self.driver != "Xen":
            self.parameters = {"cpu_shares": 1024}
        for part in _PARTS[self.driver]:
            self.parameters |= {f"{part}_period": 100_000, f"{part}_quota": -1}

    def end(self) -> None:
        self.domid, self.targets, self.metadata, self.paused = -1, [], {}, False

    def by_vcpu(self) -> dict[int, int]:
        """Return the CPU time of each vCPU that is online."""
        share = self.cpu_ns // self.vcpus
        return dict.fromkeys(range(self.vcpus), share) if self.vcpu_ns is None else self.vcpu_ns

    def describe(self) -> str:
        return self.xml or (
            f"<domain type='{self.driver.lower()}' id='{self.domid}'><name>{self.name}</name>"
            f"<uuid>{self.uuid}</uuid><vcpu placement='static'>{self.vcpus}</vcpu><metadata/>"
            f"<devices>{''.join(map(_interface, self.targets))}"
            "<console type='pty'><target type='xen' port='0'/></console></devices></domain>"
        )


def _interface(target: str | None) -> str:
    named = "" if target is None else f"<target dev='{target}'/>"
    return f"<interface type='bridge'><source bridge='br0'/>{named}</interface>"


def accepted(guest: Guest, parameters: Mapping[str, int]) -> dict[str, int]:
    """Return what a guest takes of parameters, or raise what the real one was seen to raise."""
    for key, value in parameters.items():
        if key not in guest.parameters:
            raise LookupError(key)
        if not isinstance(value, int):
            raise TypeError("an integer is required")
        if abs(value) >= 1 << 63 or (guest.driver == "Xen" and value < 0):
            raise OverflowError("Python int too large to convert, or negative")
    if guest.driver == "Xen":
        too_heavy = not 1 <= parameters.get("weight", 256) <= 65_535
        if too_heavy or parameters.get("cap", 0) > 100 * guest.vcpus:
            raise FakeLibvirtError(1, "internal error: Failed to set scheduler parameters")
        return dict(parameters)
    wanted = {key: value for key, value in parameters.items() if value != 0}  # 0 is: leave it
    for key, value in wanted.items():
        least, most = _RANGES[key.rpartition("_")[2]]
        if not least <= value <= most and (value > 0 or not key.endswith("quota")):
            raise FakeLibvirtError(8, f"invalid argument: '{key}' out of range [{least}, {most}]")
        wanted[key] = -1 if key.endswith("quota") and not 0 < value < UNLIMITED else value
    _check_nested(guest.parameters | wanted)
    return wanted


def _check_nested(standing: Mapping[str, int]) -> None:
    quota = standing.get("global_quota", -1)
    if quota > 0 and quota / standing["global_period"] < max(
        standing["vcpu_quota"] / standing["vcpu_period"], 0.0
    ):
        words = f"Invalid value '{quota}' for 'cpu.cfs_quota_us': Invalid argument"
        raise FakeLibvirtError(38, words)
