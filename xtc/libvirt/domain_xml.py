"""Reads the live XML of a domain: its vCPUs, and the host's ends of its interfaces."""

import re
from dataclasses import dataclass
from typing import Final
from xml.etree import ElementTree as ET

from xtc.errors import Transient

_PASSED_THROUGH: Final = {"hostdev", "user", "vdpa", "vhostuser"}
"""Kinds of interfaces with packets that no network device of the host counts."""
_NAME: Final = re.compile(r"^[^\s/]{1,15}$")


@dataclass(frozen=True, slots=True)
class Description:
    """The part of the XML that xtc needs."""

    vcpus: int
    interfaces: tuple[str, ...]
    """The host's ends, counted in /proc/net/dev."""
    uncounted: tuple[str, ...] = ()
    """A kind of interface that it also has, with packets that cannot be counted."""


def parse_domain(xml: str, *, name: str, driver: str) -> Description:
    """Parse a running domain's XML (libvirt, formatdomain).

    Xen's driver omits the target of a hot-plugged interface, which is known by its name,
    ``vif<domid>.<n>``.

    Raises:
        Transient: this is not the XML of a domain.
    """
    try:
        root = ET.fromstring(xml)  # noqa: S314  the hypervisor's own words, as trusted as it is
        vcpu = root.find("vcpu")
        vcpus = int((vcpu is not None and (vcpu.get("current") or vcpu.text)) or 1)
    except (ET.ParseError, ValueError) as error:
        raise Transient(name, f"its XML cannot be read: {error}") from error
    interfaces: list[str] = []
    uncounted: list[str] = []
    for element in root.iterfind("devices/interface"):
        kind = element.get("type", "?")
        target = element.find("target")
        device = None if target is None else target.get("dev")
        if device is None and driver == "Xen" and kind not in _PASSED_THROUGH:
            continue
        if device is None or kind in _PASSED_THROUGH or not _NAME.match(device):
            uncounted.append(kind)
        else:
            interfaces.append(device)
    return Description(max(1, vcpus), tuple(dict.fromkeys(interfaces)), tuple(uncounted))
