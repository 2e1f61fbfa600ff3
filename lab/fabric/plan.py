"""The parts of a fabric: hosts, switches and links, as pure functions of a few numbers.

Host N (from 1) of the data network has the interface ``eth0``, joined to the port ``hN`` of a
switch's bridge ``br0``. Its VM M (from 0) has the address 10.240.M.N; all are one network. On the
management network its interface ``ctl0`` has the address 10.250.0.N, joined to the port ``hN`` of
the bridge ``br0`` in the controller's namespace, which has the address 10.250.0.254 itself.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, Literal

from lab.errors import BadRequestError

Role = Literal["sender", "receiver"]

BRIDGE: Final = "br0"
DATA_INTERFACE: Final = "eth0"
CONTROL_INTERFACE: Final = "ctl0"
CONTROLLER: Final = "ctl"
CONTROLLER_ADDRESS: Final = "10.250.0.254"
CONTROLLER_MAC: Final = "02:00:fa:00:00:fe"
DATA_PREFIX_LENGTH: Final = 16
CONTROL_PREFIX_LENGTH: Final = 24
MAX_HOSTS: Final = 200
MAX_VMS: Final = 16
SMALLEST_BUFFER: Final = 2_000
"""Bytes; a buffer smaller than a packet passes none."""
LARGEST_BUFFER: Final = 1 << 30
HIGHEST_BPS: Final = 10_000_000_000
_RATE = re.compile(r"^([0-9]+(?:\.[0-9]+)?) ?(k|M|G|)(?:bps|bit/s|b/s)$")
_SCALE: Final = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9}


@dataclass(frozen=True, slots=True)
class FabricHost:
    """One host: its place and its names."""

    index: int
    """From 1."""
    role: Role
    switch: str
    vms: int = 1

    @property
    def name(self) -> str:
        """Its name, which is also the name of its port."""
        return f"h{self.index}"

    @property
    def addresses(self) -> tuple[str, ...]:
        """The IPv4 addresses of its VMs."""
        return tuple(f"10.240.{vm}.{self.index}" for vm in range(self.vms))

    @property
    def address(self) -> str:
        """The IPv4 address of its first VM."""
        return self.addresses[0]

    @property
    def control_address(self) -> str:
        """Its IPv4 address on the management network."""
        return f"10.250.0.{self.index}"

    @property
    def mac(self) -> str:
        """The MAC address of all its VMs."""
        return f"02:00:f0:00:00:{self.index:02x}"

    @property
    def control_mac(self) -> str:
        """Its MAC address on the management network."""
        return f"02:00:fa:00:00:{self.index:02x}"


@dataclass(frozen=True, slots=True)
class FabricLink:
    """A physical link, both ways; the ends are names of hosts and switches."""

    a: str
    b: str
    capacity_bps: int
    """As in the topology. The shallow port or ``Fabric.pace`` enforces it."""
    buffer_bytes: int | None = None
    """The buffer of each switch's port to this link; None: no port enforces its capacity."""


@dataclass(frozen=True, slots=True)
class FabricPlan:
    """A whole data network; it has no loops."""

    switches: tuple[str, ...]
    hosts: tuple[FabricHost, ...]
    links: tuple[FabricLink, ...]

    @property
    def senders(self) -> tuple[FabricHost, ...]:
        """The hosts that send."""
        return tuple(host for host in self.hosts if host.role == "sender")

    @property
    def receivers(self) -> tuple[FabricHost, ...]:
        """The hosts that receive."""
        return tuple(host for host in self.hosts if host.role == "receiver")

    def shallow_ports(self) -> tuple[tuple[str, str, FabricLink], ...]:
        """Return each shallow-buffered port as (switch, port, its link)."""
        ends = [(end, link) for link in self.links for end in ((link.a, link.b), (link.b, link.a))]
        return tuple(
            (switch, other, link)
            for (switch, other), link in ends
            if switch in self.switches and link.buffer_bytes is not None
        )

    def link_of(self, host: FabricHost) -> FabricLink:
        """Return the only link of a host."""
        return next(link for link in self.links if host.name in {link.a, link.b})

    def port_towards(self, switch: str, host: FabricHost) -> str:
        """Return the port of a switch through which a host is reached."""
        return host.name if host.switch == switch else host.switch

    def describe(self) -> dict[str, Any]:
        """Return switches, hosts and links as plain values, for a topology file."""
        return {
            "switches": list(self.switches),
            "hosts": [_describe_host(host) for host in self.hosts],
            "links": [_describe_link(link) for link in self.links],
        }


def incast(
    senders: int, bottleneck_bps: int, buffer_bytes: int, line_bps: int, vms: int = 1
) -> FabricPlan:
    """Return the paper's Fig. 1(a): senders and one receiver at one switch.

    Raises:
        BadRequestError: a number is invalid.
    """
    _check_count("senders", senders, vms)
    check_buffer(buffer_bytes)
    sending = _hosts(range(1, senders + 1), "sender", "s1", vms)
    receiving = _hosts([senders + 1], "receiver", "s1", vms)
    links = [FabricLink(host.name, "s1", line_bps) for host in sending]
    links += [FabricLink(host.name, "s1", bottleneck_bps, buffer_bytes) for host in receiving]
    return FabricPlan(("s1",), (*sending, *receiving), tuple(links))


def uplink(
    pairs: int, edge_bps: int, uplink_bps: int, buffer_bytes: int, vms: int = 1
) -> FabricPlan:
    """Return the paper's Fig. 1(b), or with two pairs Fig. 6: senders and receivers apart.

    Raises:
        BadRequestError: a number is invalid.
    """
    _check_count("pairs", 2 * pairs, vms)
    check_buffer(buffer_bytes)
    sending = _hosts(range(1, pairs + 1), "sender", "s1", vms)
    receiving = _hosts(range(pairs + 1, 2 * pairs + 1), "receiver", "s2", vms)
    links = [FabricLink(host.name, host.switch, edge_bps) for host in (*sending, *receiving)]
    links.append(FabricLink("s1", "s2", uplink_bps, buffer_bytes))
    return FabricPlan(("s1", "s2"), (*sending, *receiving), tuple(links))


def parse_bitrate(field: str, rate: str | int) -> int:
    """Return a rate in bits/s, from a text such as ``500Mbps`` or a number in bits/s.

    Raises:
        BadRequestError: the rate is invalid, or not from 1 kb/s to 10 Gb/s.
    """
    if isinstance(rate, str):
        match = _RATE.match(rate.strip())
        bps = round(float(match[1]) * _SCALE[match[2]]) if match else -1
    else:
        bps = rate
    if not 1_000 <= bps <= HIGHEST_BPS:
        raise BadRequestError(field, rate, "a rate from 1kbps to 10Gbps such as 500Mbps")
    return bps


def check_buffer(buffer_bytes: int) -> int:
    """Return the size of a port's buffer.

    Raises:
        BadRequestError: it is smaller than a packet.
    """
    if not SMALLEST_BUFFER <= buffer_bytes <= LARGEST_BUFFER:
        raise BadRequestError(
            "buffer_bytes",
            buffer_bytes,
            f"from {SMALLEST_BUFFER} bytes, so that a packet fits, to 1 GiB",
        )
    return buffer_bytes


def _hosts(indices: Iterable[int], role: Role, switch: str, vms: int) -> tuple[FabricHost, ...]:
    return tuple(FabricHost(index, role, switch, vms) for index in indices)


def _check_count(field: str, hosts: int, vms: int) -> None:
    if not 1 <= hosts < MAX_HOSTS:
        raise BadRequestError(field, hosts, f"a number that makes 2 to {MAX_HOSTS} hosts")
    if not 1 <= vms <= MAX_VMS:
        raise BadRequestError("vms", vms, f"a number from 1 to {MAX_VMS}")


def _describe_host(host: FabricHost) -> dict[str, Any]:
    return {
        "name": host.name,
        "role": host.role,
        "addresses": list(host.addresses),
        "interface": DATA_INTERFACE,
        "control_address": host.control_address,
    }


def _describe_link(link: FabricLink) -> dict[str, Any]:
    return {
        "between": [link.a, link.b],
        "capacity_bps": link.capacity_bps,
        "buffer_bytes": link.buffer_bytes,
    }
