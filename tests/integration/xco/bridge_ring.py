"""Three Linux bridges in a ring with the spanning tree protocol on, and two hosts: namespaces."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from support.waiting import eventually

from xco.errors import TopologyError
from xco.topology.discovery import discover
from xco.topology.graph import Topology

SETTLE_S = 60
"""Twenty times what these bridges take: a forward delay of 2 s, twice."""


class Ring:
    """The names of what is in it; no two rings of a machine share a prefix."""

    def __init__(self, prefix: str) -> None:
        self.s1, self.s2, self.s3 = self.switches = tuple(f"{prefix}-s{n}" for n in (1, 2, 3))
        self.h1, self.h3 = self.hosts = (f"{prefix}-h1", f"{prefix}-h3")
        self.between = ((self.s1, self.s2), (self.s2, self.s3), (self.s3, self.s1))
        self.edges = ((self.h1, self.s1), (self.h3, self.s3))

    @contextmanager
    def built(self) -> Iterator[None]:
        """Make it and remove it; the first bridge is the root of the tree."""
        try:
            for name in (*self.switches, *self.hosts):
                sh("ip", "netns", "add", name)
            for rank, name in enumerate(self.switches):
                stp = ("stp_state", "1", "forward_delay", "200", "priority", str(4096 * (rank + 1)))
                inside(name, "ip", "link", "add", "br0", "type", "bridge", *stp)
                inside(name, "ip", "link", "set", "br0", "up")
            for a, b in self.between:
                self._cable(a, "next", b, "back")
            for host, switch in self.edges:
                self._cable(host, "eth0", switch, "edge")
            yield
        finally:
            for name in (*self.switches, *self.hosts):
                subprocess.run(["ip", "netns", "delete", name], check=False, capture_output=True)

    def _cable(self, a: str, port_a: str, b: str, port_b: str) -> None:
        sh("ip", "link", "add", port_a, "netns", a, "type", "veth", "peer", port_b, "netns", b)
        for name, port in ((a, port_a), (b, port_b)):
            inside(name, "ip", "link", "set", port, "up")
            if name in self.switches:
                inside(name, "ip", "link", "set", port, "master", "br0")


def sh(*command: str) -> None:
    """Run a command that has to succeed."""
    subprocess.run(command, check=True, capture_output=True, text=True)


def inside(name: str, *command: str) -> None:
    """Run one in a namespace."""
    sh("ip", "netns", "exec", name, *command)


def settled(file: Path) -> Topology:
    """Read the tree until the bridges agree on one."""
    problems = [""]

    def agreed() -> Topology | None:
        try:
            return discover(file)
        except TopologyError as error:
            problems.append(str(error))
            return None

    found = eventually(agreed, SETTLE_S, poll_s=0.2, state=lambda: problems[-1])
    assert found is not None
    return found
