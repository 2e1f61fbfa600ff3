"""Reads ports of a Linux bridge, router or host: the queueing disciplines of its interfaces."""

import socket
from collections.abc import Iterable, Sequence

from xco.errors import PortError, PortGone, PortUncounted
from xco.ports.qdiscs import INGRESS, ROOT, Qdisc, QdiscSocket
from xco.ports.reader import Counters, Reading
from xco.ports.unwrap import Unwrapped
from xco.ports.xstats import counts_marks, marks


class LinuxReader:
    """Interfaces of this network namespace. One request serves all of them.

    What left a port is what its root qdisc sent, which for mq is the sum over the queues. Marks are
    those of all its qdiscs together: mostly a leaf counts them.
    """

    def __init__(self, interfaces: Sequence[str]) -> None:
        """Take the names of the interfaces."""
        self._ports = [_Interface(name) for name in interfaces]
        self._socket: QdiscSocket | None = None

    def read(self) -> Sequence[Reading]:
        """Return a reading for each interface.

        Raises:
            PortError: the kernel does not answer.
        """
        try:
            if self._socket is None:
                self._socket = QdiscSocket()
            qdiscs = self._socket.qdiscs()
        except OSError as error:
            self.close()
            raise PortError("netlink", str(error), "see the kernel's log") from error
        return [_reading(port, qdiscs) for port in self._ports]

    def close(self) -> None:
        """Close the socket."""
        if self._socket is not None:
            self._socket.close()
        self._socket = None


def _reading(port: "_Interface", qdiscs: Iterable[Qdisc]) -> Reading:
    try:
        return port.counters(qdiscs)
    except PortError as error:
        return error


class _Interface:
    """One interface, and what continues its counters of 32 bits."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._identity: tuple[int, int, str] | None = None
        self._bytes = 0
        self._begin()

    def _begin(self) -> None:
        self._packets, self._drops, self._marks = Unwrapped(), Unwrapped(), Unwrapped()

    def counters(self, qdiscs: Iterable[Qdisc]) -> Counters:
        """Return its counters.

        Raises:
            PortGone: there is no such interface.
            PortUncounted: its root qdisc counts nothing.
        """
        mine = self._own(qdiscs)
        root = next((one for one in mine if one.parent == ROOT), None)
        if root is None or root.kind == "noqueue":
            fix = f"give it a queue: tc qdisc add dev {self._name} root fq_codel"
            raise PortUncounted(self._name, "has no queue, so that nothing is counted", fix)
        self._follow(root)
        return Counters(
            self._packets.value(root.packets),
            root.sent_bytes,
            self._marks.value(sum(marks(one.kind, one.xstats, one.options) for one in mine)),
            self._drops.value(root.drops),
            root.backlog_bytes,
            any(counts_marks(one.kind) for one in mine),
        )

    def _own(self, qdiscs: Iterable[Qdisc]) -> list[Qdisc]:
        try:
            index = socket.if_nametoindex(self._name)
        except OSError as error:
            fix = "create it, or correct `interface`"
            raise PortGone(self._name, "there is no such interface", fix) from error
        return [one for one in qdiscs if one.interface == index and one.parent != INGRESS]

    def _follow(self, root: Qdisc) -> None:
        """Begin again when the root was replaced, or its bytes (64 bits) fell."""
        identity = root.interface, root.handle, root.kind
        if identity != self._identity or root.sent_bytes < self._bytes:
            self._begin()
        self._identity, self._bytes = identity, root.sent_bytes
