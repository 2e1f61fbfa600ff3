"""The active spanning tree as the switches see it, and the capacity of their ports.

A link carries traffic if the port forwards at each end that could be read. Ports are found by the
names in the file, or by their LLDP neighbours.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, NoReturn

from xco.errors import TopologyError, TreeError
from xco.topology.bridge_output import CHANGING, FORWARDING
from xco.topology.check import between, link_key
from xco.topology.elements import Link
from xco.topology.graph import Topology
from xco.units import format_rate

_WORDS: Final = {"disabled": "down"}
"""A bridge calls a port without a carrier disabled."""


@dataclass(frozen=True)
class SwitchView:
    """A switch's data: by port its state, its speed in bits/s, and its neighbour."""

    switch: str
    states: Mapping[str, str]
    speeds_bps: Mapping[str, int] = field(default_factory=dict)
    neighbours: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """By port: the name of the system at the other end, and its port or ""."""


def with_tree(topology: Topology, views: Iterable[SwitchView], file: str = "topology") -> Topology:
    """Return the topology with the spanning tree that its switches use now.

    A link with no end read keeps its part in the tree.

    Raises:
        TreeError: a port cannot be found, is not settled yet, or is slower than its link
            claims; or the ports that forward form no spanning tree.
    """
    reader = _Reader({view.switch: view for view in views}, file)
    before = frozenset(topology.active_links)
    tree = frozenset(
        index
        for index, link in enumerate(topology.links)
        if reader.carries(index, link, before=index in before)
    )
    found = replace(topology, tree=tree)
    try:
        found.check()
    except TopologyError as error:
        raise reader.blamed(found, error) from None
    return found


class _Reader:
    """Finds for each link the ports at its ends, and checks them."""

    def __init__(self, views: Mapping[str, SwitchView], file: str) -> None:
        self._views, self._file = views, file
        for view in views.values():
            self._check_settled(view)

    def carries(self, index: int, link: Link, *, before: bool) -> bool:
        """Return whether all ends that were read forward; as before, if none was read."""
        states = [view.states[port] for view, port in self._ports(index, link)]
        return all(state == FORWARDING for state in states) if states else before

    def blamed(self, topology: Topology, error: TopologyError) -> TreeError:
        """Return a tree's mistake in terms of the ports that cause it."""
        is_loop = error.key.startswith("link[")
        node = error.key.partition(".")[2]
        closed = [] if is_loop else list(self._closed(topology, node))
        if not closed:
            problem = f"{error.problem}, as its ports' states say"
            fix = "check that the spanning tree protocol runs on its switches"
            return TreeError(self._file, error.key, problem, fix if is_loop else error.fix)
        what = "it" if len(closed) == 1 else "one of them"
        down = any(port.endswith(" down") for port in closed)
        repair = f"plug {what} in" if down else f"see why {what} does not forward"
        problem = f"not connected, as {', '.join(closed)}"
        fix = f"{repair}, or take {node} out of the file"
        return TreeError(self._file, error.key, problem, fix)

    def _closed(self, topology: Topology, node: str) -> Iterator[str]:
        """Yield the ports that separate a node, and the nodes joined to it, from all others."""
        part = _reached(topology, node)
        for index, link in enumerate(topology.links):
            if (link.a in part) != (link.b in part):
                for view, port in self._ports(index, link):
                    state = view.states[port]
                    if state != FORWARDING:
                        yield f"port {port} of switch {view.switch} is {_WORDS.get(state, state)}"

    def _ports(self, index: int, link: Link) -> Iterator[tuple[SwitchView, str]]:
        """Yield the ports of a link that were read, checked."""
        for end, view in self._read_ends(link):
            port = link.ports[end] or self._heard(index, link, end, view)
            if port not in view.states:
                fix = f"write one of {', '.join(sorted(view.states))}"
                self._wrong(index, f"ports[{end}]", f"{view.switch} has no port {port!r}", fix)
            self._check_speed(index, link, view, port)
            yield view, port

    def _read_ends(self, link: Link) -> Iterator[tuple[int, SwitchView]]:
        for end, name in enumerate((link.a, link.b)):
            if name in self._views:
                yield end, self._views[name]

    def _heard(self, index: int, link: Link, end: int, view: SwitchView) -> str:
        """Return the port on which LLDP heard the other end of a link."""
        other, port_there = (link.b, link.a)[end], link.ports[1 - end]
        found = [
            port
            for port, (system, port_heard) in view.neighbours.items()
            if system == other and port_there in {"", port_heard}
        ]
        if len(found) != 1:
            many = "several ports" if found else "no port"
            fix = 'write the interfaces at both ends: ports = ["eth1", "eth2"]'
            self._wrong(index, "ports", f"LLDP hears {other} on {many} of {view.switch}", fix)
        return found[0]

    def _check_speed(self, index: int, link: Link, view: SwitchView, port: str) -> None:
        """Check that a link does not claim more than its port can carry."""
        speed = view.speeds_bps.get(port)
        if speed is not None and link.capacity_bps > speed:
            said, real = format_rate(link.capacity_bps), format_rate(speed)
            problem = f"{between(link)} claims {said}, but {port} of {view.switch} carries {real}"
            self._wrong(index, "capacity", problem, f'write "{real}"')

    def _check_settled(self, view: SwitchView) -> None:
        for port, state in view.states.items():
            if state in CHANGING:
                problem = f"port {port} is {state}: the spanning tree is changing"
                fix = "read it again when it has settled, 30 s by default"
                raise TreeError(self._file, f"switch.{view.switch}", problem, fix)

    def _wrong(self, index: int, key: str, problem: str, fix: str) -> NoReturn:
        raise TreeError(self._file, link_key(index, key), problem, fix)


def _reached(topology: Topology, node: str) -> set[str]:
    """Return the nodes that the tree joins to a node, and the node itself."""
    links = [topology.links[index] for index in topology.active_links]
    part, before = {node}, 0
    while len(part) > before:
        before = len(part)
        for link in links:
            if link.a in part or link.b in part:
                part |= {link.a, link.b}
    return part
