"""VMs with a weight or a guarantee: the tables ``[vm.NAME]`` of a topology's file."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Final

import msgspec

from xco.errors import TopologyError, UnitError
from xco.units import parse_rate

MAX_NAME_BYTES: Final = 15
"""Of an interface's name (IFNAMSIZ of the kernel)."""
MAX_GUARANTEE_MBPS: Final = 0xFFFF
MBPS: Final = 10**6
RESERVED: Final = frozenset({".", "..", "all", "default", "lo"})
"""Of no VM: directories, those of settings for all interfaces, and the loopback."""
FORMS: Final = {
    "vm": "a table for each VM: [vm.NAME]",
    "interface": (
        'the host\'s end of the VM\'s link, such as "gold0": 1 to 15 bytes, no spaces, "/" or ":"'
    ),
    "weight": "a whole number from 1 to 100",
    "guarantee": 'a rate in whole Mbit/s, such as "50Mbps"',
}


class VmTable(msgspec.Struct, forbid_unknown_fields=True):
    """The table ``[vm.NAME]``."""

    interface: Annotated[
        str,
        msgspec.Meta(pattern=r"^[^\s/:\x00-\x1f\x7f-\x9f-][^\s/:\x00-\x1f\x7f-\x9f]{0,14}\Z"),
    ]
    weight: Annotated[int, msgspec.Meta(ge=1, le=100)] = 1
    guarantee: str | None = None


@dataclass(frozen=True, slots=True)
class Vm:
    """A VM by the host's end of its link, on whichever host it runs; 0: it has no guarantee."""

    name: str
    interface: str
    weight: int = 1
    guarantee_mbps: int = 0


def vms_of(tables: Mapping[str, VmTable], file: str) -> tuple[Vm, ...]:
    """Return the VMs of the tables.

    Raises:
        TopologyError: two VMs share an interface; an interface's name is too long, or no VM's; a
            guarantee is not a rate in whole Mbit/s.
    """
    owners: dict[str, str] = {}
    vms = []
    for name, table in tables.items():
        _check_interface(name, table.interface, owners, file)
        guarantee_mbps = 0 if table.guarantee is None else _guarantee(name, table.guarantee, file)
        vms.append(Vm(name, table.interface, table.weight, guarantee_mbps))
    return tuple(vms)


def _check_interface(name: str, interface: str, owners: dict[str, str], file: str) -> None:
    key = f"vm.{name}.interface"
    if (length := len(interface.encode())) > MAX_NAME_BYTES:
        problem = f"{interface!r} has {length} bytes"
        raise TopologyError(file, key, problem, f"write {FORMS['interface']}")
    if interface in RESERVED:
        raise TopologyError(file, key, f"{interface!r} is no VM's", f"write {FORMS['interface']}")
    if interface in owners:
        problem = f"{interface!r} is also the interface of vm.{owners[interface]}"
        raise TopologyError(file, key, problem, "give each VM its own interface")
    owners[interface] = name


def _guarantee(name: str, text: str, file: str) -> int:
    key, fix = f"vm.{name}.guarantee", f"write {FORMS['guarantee']}"
    try:
        rate_bps = parse_rate(text, field="guarantee")
    except UnitError as error:
        raise TopologyError(file, key, f"{text!r} is not {error.expected}", fix) from None
    if rate_bps % MBPS or not 1 <= rate_bps // MBPS <= MAX_GUARANTEE_MBPS:
        problem = f"{text!r} is not 1 to {MAX_GUARANTEE_MBPS} whole Mbit/s"
        raise TopologyError(file, key, problem, fix)
    return rate_bps // MBPS
