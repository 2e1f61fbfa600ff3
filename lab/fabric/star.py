"""Hosts behind one physical switch: a star with finite buffers, lossy or lossless by PFC.

Unlike a `Fabric`, of which the ports are queues of the kernel that can stop a sender on the same
machine, its switch is a program: what a host sends has left it, as on a cable.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final, Self, TypeVar

from lab.errors import BadRequestError
from lab.fabric import links as fabric_links
from lab.fabric.plan import DATA_INTERFACE, parse_bitrate
from lab.plan import check_prefix, namespace
from lab.programs.processes import Place
from lab.system import namespaces, requirements
from lab.system.links import enter_neighbour, index_of, set_up, turn_offloads_off
from lab.system.teardown import tear_down
from lab.traffic.program import Traffic
from lab.traffic.star import Buffers, Line, Starred, star

DEFAULT_STAR_PREFIX: Final = "xcostar"
SWITCH: Final = "s1"
PREFIX_LENGTH: Final = 24
MAX_HOSTS: Final = 60
OVERLAY_MTU: Final = 1600
"""Room for a full frame inside VXLAN."""
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class StarHost:
    """One host and its line."""

    index: int
    """From 1."""
    rate_bps: int
    delay_s: float

    @property
    def name(self) -> str:
        """Its name, which is also the name of its port."""
        return f"h{self.index}"

    @property
    def address(self) -> str:
        """Its IPv4 address."""
        return f"10.241.0.{self.index}"

    @property
    def mac(self) -> str:
        """Its Ethernet address."""
        return f"02:00:f1:00:00:{self.index:02x}"

    @property
    def line(self) -> Line:
        """The line from its port."""
        return Line(self.name, [self.mac], self.rate_bps, self.delay_s)


class StarFabric:
    """Running hosts and their switch, as a context manager; leaving it removes all of it.

    An existing one with the same prefix is torn down first.

    Raises:
        BadRequestError: a value is invalid.
        MissingRequirementError: this machine cannot hold a lab.
    """

    def __init__(
        self,
        rates: Sequence[str | int],
        buffers: Buffers,
        *,
        delay_s: float = 0.0,
        mtu: int = OVERLAY_MTU,
        prefix: str = DEFAULT_STAR_PREFIX,
    ) -> None:
        """Create the hosts and the switch.

        Args:
            rates: of the line from the switch to each host. A host has to keep its own rate.
            buffers: of the switch.
            delay_s: of each line, one way.
            mtu: of all interfaces.
            prefix: of the namespaces' names.
        """
        self.prefix = check_prefix(prefix)
        if not 2 <= len(rates) <= MAX_HOSTS:
            raise BadRequestError("rates", len(rates), f"2 to {MAX_HOSTS} hosts")
        bits = [parse_bitrate("rates", rate) for rate in rates]
        self.hosts = [StarHost(index, rate, delay_s) for index, rate in enumerate(bits, start=1)]
        requirements.check()
        tear_down(prefix)
        try:
            self._build(mtu)
            lines = [host.line for host in self.hosts]
            self.switch: Traffic[Starred] = star(self._place(SWITCH), lines, buffers)
        except BaseException:  # even Ctrl-C must leave nothing behind
            tear_down(prefix)
            raise

    def netns(self, host: StarHost) -> str:
        """Return the name of a host's namespace."""
        return namespace(self.prefix, host.name)

    def place(self, host: StarHost, cpu: int | None = None) -> Place:
        """Return the place for a program of a host."""
        return self._place(host.name, cpu)

    def inside(self, host: StarHost, function: Callable[[], Result]) -> Result:
        """Run a function in a host's namespace, in a thread of its own."""
        return namespaces.inside(self.netns(host), function)

    def counts(self) -> Starred:
        """Return the switch's counters."""
        return self.switch.counts()

    def close(self) -> None:
        """End the switch, and remove everything."""
        self.switch.stop()
        tear_down(self.prefix)

    def _build(self, mtu: int) -> None:
        switch = namespace(self.prefix, SWITCH)
        namespaces.create(switch)
        for host in self.hosts:
            namespaces.create(self.netns(host))
            namespaces.write_sysctls(self.netns(host), fabric_links.HOST_SYSCTLS)
            self._connect(switch, host, mtu)

    def _connect(self, switch: str, host: StarHost, mtu: int) -> None:
        inner = self.netns(host)
        peer = {"ifname": DATA_INTERFACE, "net_ns_fd": inner, "mtu": mtu}
        new: dict[str, Any] = {"ifname": host.name, "kind": "veth", "peer": peer, "mtu": mtu}
        namespaces.configure(switch, lambda ip: ip.link("add", **new))
        turn_offloads_off(switch, host.name)
        turn_offloads_off(inner, DATA_INTERFACE)
        namespaces.configure(switch, lambda ip: _raise(ip, host.name))
        namespaces.configure(inner, lambda ip: self._address(ip, host))

    def _address(self, ip: Any, host: StarHost) -> None:
        _raise(ip, "lo")
        set_up(ip, DATA_INTERFACE, host.mac)
        index = index_of(ip, DATA_INTERFACE)
        ip.addr("add", index=index, address=host.address, prefixlen=PREFIX_LENGTH)
        for other in self.hosts:
            if other is not host:
                enter_neighbour(ip, index, other.address, other.mac)

    def _place(self, name: str, cpu: int | None = None) -> Place:
        return Place(namespaces.path(namespace(self.prefix, name)), cpu=cpu)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def _raise(ip: Any, interface: str) -> None:
    ip.link("set", index=index_of(ip, interface), state="up")
