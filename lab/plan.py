"""Names and addresses of a lab, as pure functions of prefix, router name and index.

Router N has two ports; port 0 faces the source, port 1 faces the sink. Port K is the veth pair
``vifN.K`` (in the lab's Dom0, named like Xen's back ends) and ``rK`` (in the router), on the
network 10.N.K.0/24. Where sources and sinks have separate machines, machine K is joined to Dom0 by
the veth pair ``nic`` (in the machine) and ``ethK`` (in Dom0), which is on the bridge ``brK`` with
every ``vifN.K``.
"""

import re
from dataclasses import dataclass
from typing import Literal, get_args

from lab.errors import BadRequestError

RouterKind = Literal["user-space", "kernel"]
"""The forwarder: a process (which a CPU quota caps), or the kernel of the host."""

DEFAULT_PREFIX = "xtclab"
DOM0 = "dom0"
MACHINES = ("machine.0", "machine.1")
"""The machines of sources and of sinks; routers cannot have these names."""
MAX_ROUTERS = 254
PREFIX_LENGTH = 24

_HOST, _ROUTER, _IDLE, _NOWHERE = 1, 2, 3, 99
_PREFIX = re.compile(r"^[a-z][a-z0-9]{1,15}$")
_NAME = re.compile(r"^[a-z][a-z0-9-]{0,30}$")


@dataclass(frozen=True, slots=True)
class Port:
    """One of a router's two links: interface names, IPv4 addresses and MAC addresses."""

    router: int
    side: int

    @property
    def host_interface(self) -> str:
        """The end in Dom0."""
        return f"vif{self.router}.{self.side}"

    @property
    def inner_interface(self) -> str:
        """The end inside the router."""
        return f"r{self.side}"

    @property
    def host_address(self) -> str:
        """Dom0's address on this link."""
        return self._address(_HOST)

    @property
    def router_address(self) -> str:
        """The router's own address, Dom0's gateway to the other link."""
        return self._address(_ROUTER)

    @property
    def nowhere_address(self) -> str:
        """Destination of floods: behind the router, on no machine."""
        return self._address(_NOWHERE)

    @property
    def host_mac(self) -> str:
        """The MAC address of Dom0's end."""
        return self._mac(_HOST)

    @property
    def router_mac(self) -> str:
        """The MAC address that Dom0 sends to."""
        return self._mac(_ROUTER)

    @property
    def idle_mac(self) -> str:
        """The MAC address of ``rK`` where a process forwards.

        It differs from ``router_mac``, so that the router's kernel immediately drops
        (PACKET_OTHERHOST) what its forwarder reads.
        """
        return self._mac(_IDLE)

    @property
    def nowhere_mac(self) -> str:
        """The MAC address of ``nowhere_address``: Dom0 counts such frames, then drops them."""
        return self._mac(_NOWHERE)

    @property
    def network(self) -> str:
        """The network of this link."""
        return f"{self._address(0)}/{PREFIX_LENGTH}"

    def _address(self, host: int) -> str:
        return f"10.{self.router}.{self.side}.{host}"

    def _mac(self, host: int) -> str:
        return f"02:00:0a:{self.router:02x}:{self.side:02x}:{host:02x}"


@dataclass(frozen=True, slots=True)
class Uplink:
    """A link of Dom0 to a separate machine: side 0 to that of sources, side 1 to that of sinks."""

    side: int

    @property
    def host_interface(self) -> str:
        """The end in Dom0."""
        return f"eth{self.side}"

    @property
    def machine_interface(self) -> str:
        """The end in the machine."""
        return "nic"

    @property
    def bridge(self) -> str:
        """Dom0's bridge for this link and for the routers' links on this side."""
        return f"br{self.side}"

    @property
    def host_mac(self) -> str:
        """The MAC address of Dom0's end."""
        return self._mac(_ROUTER)

    @property
    def machine_mac(self) -> str:
        """The MAC address of the machine's end, for the traffic of all routers."""
        return self._mac(_HOST)

    def _mac(self, host: int) -> str:
        return f"02:00:ff:00:{self.side:02x}:{host:02x}"


def ports(router: int) -> tuple[Port, Port]:
    """Return a router's ports: towards the source, towards the sink."""
    return Port(router, 0), Port(router, 1)


def uplinks() -> tuple[Uplink, Uplink]:
    """Return Dom0's links to the separate machines: of sources, of sinks."""
    return Uplink(0), Uplink(1)


def namespace(prefix: str, name: str) -> str:
    """Return the name of the namespace of a router, of ``dom0``, or of a separate machine."""
    return f"{prefix}-{name}"


def check_prefix(prefix: str) -> str:
    """Return the prefix.

    Raises:
        BadRequestError: it is not usable in names; a dash would let one lab match another's names.
    """
    if not _PREFIX.match(prefix):
        raise BadRequestError("prefix", prefix, "2 to 16 small letters and digits, such as xtclab")
    return prefix


def check_name(name: str) -> str:
    """Return a router's name.

    Raises:
        BadRequestError: it is not usable as a file name, or is ``dom0``.
    """
    if name == DOM0 or not _NAME.match(name):
        raise BadRequestError("name", name, "a router's name such as vr1 (and dom0 is taken)")
    return name


def check_kind(kind: str) -> RouterKind:
    """Return the kind of a router.

    Raises:
        BadRequestError: there is no such kind.
    """
    for known in get_args(RouterKind):
        if kind == known:
            return known  # type: ignore[no-any-return]  # get_args is untyped
    raise BadRequestError("kind", kind, "one of: " + ", ".join(get_args(RouterKind)))
