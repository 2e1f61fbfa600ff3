"""Conditions of a running fabric that tests change: ports that mark, and late management."""

from lab.errors import LabError
from lab.fabric import delays as fabric_delays
from lab.fabric.plan import FabricPlan
from lab.marking.port import Marked, marker
from lab.marking.terms import Marking
from lab.plan import namespace
from lab.programs.processes import Place
from lab.programs.reporter import Reporter
from lab.system import namespaces
from lab.traffic.counts import Delayed
from lab.traffic.program import Traffic


class Conditions:
    """The part of a fabric that holds its conditions, whose programs end with their thread."""

    def __init__(self, prefix: str) -> None:
        """Begin without hosts, marks and delays."""
        self.prefix = prefix
        self._plan: FabricPlan | None = None
        self._delayed: Traffic[Delayed] | None = None
        self._markers: dict[tuple[str, str], Reporter[Marked]] = {}

    @property
    def plan(self) -> FabricPlan:
        """The plan that was built.

        Raises:
            LabError: nothing was.
        """
        if self._plan is None:
            raise LabError("the fabric has no hosts yet: call incast() or uplink()")
        return self._plan

    def delay(self, delay_s: float) -> None:
        """Delay all traffic of the management network, until ``undelay`` or the end.

        Args:
            delay_s: in seconds, between a host and the controller, one way.

        Raises:
            BadRequestError: it is not from 0 to 1 s.
            ProgramError: the delaying program ends.
        """
        self.undelay()
        self._delayed = fabric_delays.insert(self.prefix, self.plan.hosts, delay_s)

    def undelay(self) -> None:
        """Connect hosts and controller directly again, if they are not."""
        if self._delayed is not None:
            self._delayed.stop()
            self._delayed = None
            fabric_delays.remove(self.prefix, self.plan.hosts)

    def delayed(self) -> Delayed:
        """Return the counts of the delay of the management network.

        Raises:
            LabError: there is none, or its program has ended.
        """
        if self._delayed is None:
            raise LabError("the management network is not delayed: call delay()")
        return self._delayed.counts()

    def mark(self, marking: Marking | None = None) -> None:
        """Make every shallow port mark ECN-capable packets, until ``unmark`` or the end.

        The kernel also ends it with the calling thread.

        Args:
            marking: when; None means above a fifth of the buffer.

        Raises:
            MissingRequirementError: there is no clang, C compiler or libbpf.
            ProgramError: the kernel cannot (Linux 6.6 with BTF is needed).
        """
        self.unmark()
        for switch, port, link in self.plan.shallow_ports():
            assert link.buffer_bytes is not None  # a shallow port has a buffer
            self._markers[switch, port] = marker(
                Place(namespaces.path(namespace(self.prefix, switch))),
                port,
                marking or Marking(),
                rate_bps=link.capacity_bps,
                buffer_bytes=link.buffer_bytes,
            )

    def unmark(self) -> None:
        """Stop marking, if any port does."""
        while self._markers:
            self._markers.popitem()[1].stop()

    def marked(self, switch: str, port: str) -> Marked:
        """Return the counts of a marking port: for example, of switch ``s1`` towards ``h6``.

        Raises:
            LabError: it does not mark, or its marker has ended.
        """
        if (switch, port) not in self._markers:
            raise LabError(f"port {port} of {switch} does not mark: call mark()")
        return self._markers[switch, port].counts()

    def marks(self) -> int:
        """Return the packets that shallow ports have marked since ``mark``; 0 without it."""
        return sum(running.counts().marks for running in self._markers.values())

    def stop_conditions(self) -> None:
        """End the programs of all conditions; what they used stays as it is."""
        self.unmark()
        if self._delayed is not None:
            self._delayed.stop()
