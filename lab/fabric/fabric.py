"""A fabric: hosts behind switches with a shallow-buffered port, in network namespaces.

The two set-ups of the paper's Fig. 1, scaled to one machine, and a separate management network: a
controller in the namespace ``PREFIX-ctl`` reaches every host without using the data network.
"""

import subprocess
from collections.abc import Callable, Iterable, Sequence
from types import TracebackType
from typing import Any, Final, Self, TypeVar

from lab.errors import BadRequestError
from lab.fabric import counters as fabric_counters
from lab.fabric import links as fabric_links
from lab.fabric import plan as fabric_plan
from lab.fabric.conditions import Conditions
from lab.fabric.plan import (
    CONTROLLER,
    CONTROLLER_ADDRESS,
    DATA_INTERFACE,
    FabricHost,
    FabricPlan,
    parse_bitrate,
)
from lab.plan import check_prefix, namespace
from lab.programs.processes import Place
from lab.system import namespaces, requirements
from lab.system.teardown import Remains, alone, tear_down

DEFAULT_FABRIC_PREFIX: Final = "xcolab"
Result = TypeVar("Result")


class Fabric(Conditions):
    """A running fabric, as a context manager; leaving it removes all that it created.

    An existing one with the same prefix, running or left over, is torn down first. Its programs die
    with the thread that started them, even if that is killed; ``tear_down`` removes the rest.

    Raises:
        BadRequestError: the prefix is invalid.
        MissingRequirementError: this machine cannot hold a fabric.
    """

    def __init__(self, prefix: str = DEFAULT_FABRIC_PREFIX) -> None:
        """Create the controller's namespace; ``incast`` or ``uplink`` creates the rest."""
        super().__init__(check_prefix(prefix))
        self._started: list[subprocess.Popen[Any]] = []
        requirements.check()
        fabric_links.check()
        with alone(prefix):
            tear_down(prefix)
            try:
                fabric_links.build_controller(prefix)
                self._handle = namespaces.Handle(namespace(prefix, CONTROLLER))
            except BaseException:  # even Ctrl-C must leave nothing behind
                tear_down(prefix)
                raise

    def incast(
        self,
        senders: int,
        bottleneck: str | int = "500Mbps",
        buffer_bytes: int = 32_000,
        line: str | int | None = None,
        vms: int = 1,
    ) -> Self:
        """Build the paper's Fig. 1(a): senders and one receiver at one switch.

        Args:
            senders: number of senders.
            bottleneck: capacity of the receiver's link, enforced by the switch's port.
            buffer_bytes: of that port.
            line: capacity of a sender's link; None means that of the bottleneck, as in the paper.
            vms: addresses of each host.

        Raises:
            BadRequestError: a value is invalid, or the fabric is already built.
        """
        capacity = parse_bitrate("bottleneck", bottleneck)
        line_bps = capacity if line is None else parse_bitrate("line", line)
        return self._build(fabric_plan.incast(senders, capacity, buffer_bytes, line_bps, vms))

    def uplink(
        self,
        pairs: int = 13,
        edge: str | int = "50Mbps",
        uplink: str | int = "500Mbps",
        buffer_bytes: int = 32_000,
        vms: int = 1,
    ) -> Self:
        """Build the paper's Fig. 1(b), or Fig. 6 with two pairs: two switches and a shared link.

        Args:
            pairs: number of senders, at one switch, and of receivers, at the other.
            edge: capacity of a host's link, enforced only by ``pace``.
            uplink: capacity between the switches, enforced by their ports.
            buffer_bytes: of these two ports.
            vms: addresses of each host.

        Raises:
            BadRequestError: a value is invalid, or the fabric is already built.
        """
        edge_bps, uplink_bps = parse_bitrate("edge", edge), parse_bitrate("uplink", uplink)
        return self._build(fabric_plan.uplink(pairs, edge_bps, uplink_bps, buffer_bytes, vms))

    @property
    def senders(self) -> tuple[FabricHost, ...]:
        """The hosts that send."""
        return self.plan.senders

    @property
    def receivers(self) -> tuple[FabricHost, ...]:
        """The hosts that receive."""
        return self.plan.receivers

    def netns(self, host: FabricHost | None = None) -> str:
        """Return the path of a host's network namespace, or of the controller's."""
        return namespaces.path(self._name(host))

    def place(self, host: FabricHost | None = None, cpu: int | None = None) -> Place:
        """Return the place for a program of a host, or of the controller."""
        return Place(self.netns(host), cpu=cpu)

    def run(
        self, host: FabricHost | None, argv: Sequence[str], **options: Any
    ) -> "subprocess.Popen[Any]":
        """Start any program on a host, or (None) on the controller; options go to Popen.

        The kernel kills it when the calling thread ends.
        """
        command = self.place(host).command(argv)
        program = subprocess.Popen(command, **options)  # noqa: S603  the caller's program
        self._started.append(program)
        return program

    def inside(self, host: FabricHost | None, function: Callable[[], Result]) -> Result:
        """Call a function in a host's namespace, or the controller's, and return its result."""
        return namespaces.inside(self._name(host), function)

    def pace(
        self, hosts: Iterable[FabricHost] | None = None, rate: str | int | None = None
    ) -> None:
        """Hold hosts to a rate on the wire, as a network card of that rate would (TBF at the root).

        Args:
            hosts: the hosts; None means all senders.
            rate: None means the capacity of each host's link.

        Raises:
            BadRequestError: the rate is invalid.
        """
        for host in self.senders if hosts is None else hosts:
            capacity = self.plan.link_of(host).capacity_bps
            bps = capacity if rate is None else parse_bitrate("rate", rate)
            queue = fabric_links.LINE_QUEUE_BYTES
            fabric_links.shape(self._name(host), DATA_INTERFACE, bps, queue)

    def unpace(self, hosts: Iterable[FabricHost] | None = None) -> None:
        """Remove any shaping from hosts; None means all senders."""
        for host in self.senders if hosts is None else hosts:
            fabric_links.unshape(self._name(host), DATA_INTERFACE)

    def drops(self) -> int:
        """Return the packets dropped because a shallow port's buffer was full."""
        ports = self.plan.shallow_ports()
        return sum(self.port(switch, port).drops for switch, port, _ in ports)

    def port(self, switch: str, port: str) -> fabric_counters.PortCounts:
        """Return the counts of a shallow port: for example, of switch ``s1`` towards ``h6``."""
        return fabric_counters.port_counts(namespace(self.prefix, switch), port)

    def wire_bytes(self, hosts: Iterable[FabricHost] | None = None) -> int:
        """Return the bytes that hosts have received, with Ethernet headers; None: all receivers."""
        chosen = self.receivers if hosts is None else hosts
        return sum(fabric_counters.wire_bytes(self._name(h), DATA_INTERFACE) for h in chosen)

    def timeouts(self, hosts: Iterable[FabricHost] | None = None) -> int:
        """Return the TCP timeouts of hosts (TcpExtTCPTimeouts); None means all senders."""
        return self._extended("TCPTimeouts", hosts)

    def loss_probes(self, hosts: Iterable[FabricHost] | None = None) -> int:
        """Return the tail loss probes of hosts (TcpExtTCPLossProbes); None means all senders."""
        return self._extended("TCPLossProbes", hosts)

    def repeated(self, hosts: Iterable[FabricHost] | None = None) -> int:
        """Return what hosts sent again though it had arrived (D-SACK); None means all senders."""
        names = ("TCPDSACKRecv", "TCPDSACKOfoRecv")
        return sum(self._extended(name, hosts) for name in names)

    def retransmitted(self, hosts: Iterable[FabricHost] | None = None) -> int:
        """Return the TCP segments that hosts have sent again; None means all senders."""
        chosen = self.senders if hosts is None else hosts
        return sum(fabric_counters.tcp_retransmitted(self._name(h)) for h in chosen)

    def describe(self) -> dict[str, Any]:
        """Return the fabric as plain values, for a topology file."""
        controller = {"netns": self.netns(), "address": CONTROLLER_ADDRESS}
        described = self.plan.describe() | {"controller": controller}
        for host, values in zip(self.plan.hosts, described["hosts"], strict=True):
            values["netns"] = self.netns(host)
        return described

    def close(self) -> Remains:
        """Stop every program and remove the fabric; return what was removed.

        A later fabric with the same prefix, which has replaced this one, is left alone.

        Raises:
            LabError: something cannot be removed.
        """
        self.stop_conditions()
        for program in self._started:  # one that is about to enter its namespace is not found there
            program.kill()
        with self._handle as handle, alone(self.prefix):
            return tear_down(self.prefix) if handle.current() else Remains([], [], [])

    def _build(self, plan: FabricPlan) -> Self:
        if self._plan is not None:
            raise BadRequestError(
                "fabric", self.prefix, "a fabric without hosts: make another for these"
            )
        self._plan = plan
        fabric_links.build(self.prefix, plan)
        return self

    def _extended(self, name: str, hosts: Iterable[FabricHost] | None) -> int:
        chosen = self.senders if hosts is None else hosts
        return sum(fabric_counters.tcp_counts(self._name(host))[name] for host in chosen)

    def _name(self, host: FabricHost | None) -> str:
        return namespace(self.prefix, CONTROLLER if host is None else host.name)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
