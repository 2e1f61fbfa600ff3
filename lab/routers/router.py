"""One virtual router of the lab: its place, its traffic and its disturbances."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeVar

import msgspec
from pyroute2.netlink.exceptions import NetlinkError

from lab.errors import BadRequestError, LabError
from lab.plan import Port, RouterKind, ports, uplinks
from lab.programs.forwarder import PortConfig
from lab.programs.processes import Hog, Place, Program, Source, TcpFlow, check_rate, check_share
from lab.programs.source import LARGEST_PAYLOAD, PAYLOAD
from lab.system import links

TCP_PORT: Final = 5001
AnyProgram = TypeVar("AnyProgram", bound=Program)


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Where a router's programs run."""

    dom0: str
    """The name of Dom0's namespace."""
    source: Place
    sink: Place
    inside: Place
    beside: bool
    """Whether source and sink are on separate machines."""

    def next_hop_mac(self, port: Port) -> str:
        """Return the MAC address of the router's neighbour."""
        return uplinks()[port.side].machine_mac if self.beside else port.host_mac


@dataclass(slots=True)
class Router:
    """A virtual router of the lab."""

    name: str
    kind: RouterKind
    index: int
    netns: str
    """The path of its network namespace."""
    cgroup: Path | None
    """The control group of its forwarder; None where the kernel forwards."""
    _where: Surroundings
    _programs: list[Program] = field(default_factory=list)

    @property
    def ports(self) -> tuple[Port, Port]:
        """Its links, with their names and addresses: towards the source, towards the sink."""
        return ports(self.index)

    @property
    def host_interfaces(self) -> tuple[str, str]:
        """The names in Dom0, ``vifN.0`` and ``vifN.1``."""
        return self.ports[0].host_interface, self.ports[1].host_interface

    @property
    def inner_interfaces(self) -> tuple[str, str]:
        """The names inside the router, ``r0`` and ``r1``."""
        return self.ports[0].inner_interface, self.ports[1].inner_interface

    @property
    def forwarder_pid(self) -> int:
        """The process that forwards, in a user-space router."""
        return next(program.pid for program in self._programs if program.name == "forwarder")

    def died(self) -> list[str]:
        """Return the names of its programs that exited without being stopped."""
        return [program.name for program in self._programs if program.died]

    def flood(self, rate_pps: float, payload: int = PAYLOAD) -> Source:
        """Send UDP packets through the router at a rate in packets/s, of 64 bytes by default.

        Raises:
            BadRequestError: the rate is not within [0, 1e9], or the payload not within [1, 1472].
            ProgramError: the source does not start.
        """
        if not 1 <= payload <= LARGEST_PAYLOAD:
            raise BadRequestError("payload", payload, f"1 to {LARGEST_PAYLOAD} bytes")
        near, far = self.ports
        arguments = [near.host_address, far.nowhere_address, str(check_rate(rate_pps))]
        arguments += ["--payload", str(payload)]
        return self._keep(Source("programs.source", arguments, self._where.source))

    def tcp(self, rate_pps: float = 0.0, port: int = TCP_PORT) -> TcpFlow:
        """Send a TCP flow (CUBIC, 524 bytes a segment) through the router.

        The rate is in segments/s; 0 means no limit. Concurrent flows need separate ports.

        Raises:
            BadRequestError: the rate is not within [0, 1e9].
            ProgramError: the sink or the source does not start.
        """
        near, far = self.ports
        place = self._where.sink
        sink = self._keep(Program("programs.sink", [far.host_address, str(port)], place))
        ends = [near.host_address, far.host_address, str(check_rate(rate_pps))]
        source = Source("programs.source", [*ends, "--tcp", str(port)], self._where.source)
        return TcpFlow(self._keep(source), sink)

    def hog(self, share: float) -> Hog:
        """Burn a share of one CPU inside the router's control group.

        Raises:
            BadRequestError: the share is not within (0, 1], or the kernel forwards.
            ProgramError: the hog does not start.
        """
        if self.cgroup is None:
            raise BadRequestError("router", self.name, "a user-space router: only those have CPU")
        return self._keep(Hog("programs.hog", [str(check_share(share))], self._where.inside))

    def set_path_weight(self, filters: int) -> None:
        """Run packets from the source through this many filters that never match; 0: none.

        Raises:
            BadRequestError: the number is negative.
            LabError: the kernel lacks these filters.
        """
        if filters < 0:
            raise BadRequestError("filters", filters, "a number of filters from 0 up")
        netns = Path(self.netns).name
        try:
            links.set_filter_chain(netns, self.inner_interfaces[0], filters)
        except NetlinkError as error:
            raise LabError(f"{self.name}: the kernel refuses the filters: {error}") from error

    def set_packet_cost(self, into: int, back: int) -> None:
        """Make Dom0 compare each packet this often on the way into the router, and on the way back.

        The way in also costs for packets that the router then drops.

        Raises:
            BadRequestError: a number is negative.
            LabError: the kernel lacks these filters.
        """
        if min(into, back) < 0:
            raise BadRequestError("comparisons", (into, back), "numbers from 0 up")
        netns = Path(self.netns).name
        try:
            for port in self.ports:
                links.set_packet_cost(netns, port.inner_interface, into)
                links.set_packet_cost(self._where.dom0, port.host_interface, back)
        except NetlinkError as error:
            raise LabError(f"{self.name}: the kernel refuses the filters: {error}") from error

    def start_forwarder(self) -> Program:
        """Start the process that forwards, in a user-space router."""
        config = msgspec.json.encode([self._port_config(port) for port in self.ports])
        return self._keep(Program("programs.forwarder", [config.decode()], self._where.inside))

    def stop(self) -> None:
        """Stop all its programs."""
        for program in reversed(self._programs):
            program.stop()

    def _keep(self, program: AnyProgram) -> AnyProgram:
        self._programs.append(program)
        return program

    def _port_config(self, port: Port) -> PortConfig:
        next_hop = self._where.next_hop_mac(port)
        neighbours = {port.host_address: next_hop, port.nowhere_address: port.nowhere_mac}
        return PortConfig(port.inner_interface, port.router_mac, neighbours)
