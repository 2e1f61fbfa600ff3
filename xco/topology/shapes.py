"""Topologies of regular shapes, created in memory: the paper's, and those for tests."""

from collections.abc import Iterable, Sequence
from ipaddress import ip_address
from itertools import chain, repeat

from xco.topology.elements import Host, Link, Switch
from xco.topology.graph import Topology
from xco.units import parse_rate

FIRST_ADDRESS = int(ip_address("10.0.0.1"))


def tree_topology(
    rows: int,
    racks_per_row: int = 10,
    hosts_per_rack: int = 20,
    edge: str = "1Gbps",
    uplink: str = "10Gbps",
) -> Topology:
    """Return the paper's data centre (section 5.2): hosts, TOR switches, EOR switches, a core.

    Host number ``(row * racks_per_row + rack) * hosts_per_rack + place`` is called
    `h<row>-<rack>-<place>`; in names all count from 1. Link number i is host i's, for every host;
    uplinks follow.

    Raises:
        UnitError: `edge` or `uplink` is no rate.
        ValueError: a count is below 1.
    """
    _check_counts(rows, racks_per_row, hosts_per_rack)
    eors = [f"eor{row + 1}" for row in range(rows)]
    tors = [f"tor{row + 1}-{rack + 1}" for row in range(rows) for rack in range(racks_per_row)]
    names = [f"h{tor[3:]}-{place + 1}" for tor in tors for place in range(hosts_per_rack)]
    cables = chain(
        _cables(names, _each(tors, hosts_per_rack), edge),
        _cables(tors, _each(eors, racks_per_row), uplink),
        _cables(eors, ["core"] * rows, uplink),
    )
    return _topology(["core", *eors, *tors], names, cables)


def star_topology(hosts: int, capacity: str) -> Topology:
    """Return hosts `h1`, `h2` ... on one switch, each by a link of this capacity.

    Raises:
        UnitError: `capacity` is no rate.
        ValueError: `hosts` is below 1.
    """
    _check_counts(hosts)
    names = [f"h{number + 1}" for number in range(hosts)]
    return _topology(["switch"], names, _cables(names, ["switch"] * hosts, capacity))


def dumbbell(senders: int, receivers: int, edge: str, uplink: str) -> Topology:
    """Return hosts `s1` ... and `r1` ... on two switches with one uplink (paper, figure 1).

    Senders come first; the uplink is the last link, from `left` to `right`.

    Raises:
        UnitError: `edge` or `uplink` is no rate.
        ValueError: a count is below 1.
    """
    _check_counts(senders, receivers)
    left = [f"s{number + 1}" for number in range(senders)]
    right = [f"r{number + 1}" for number in range(receivers)]
    cables = chain(
        _cables(left, ["left"] * senders, edge),
        _cables(right, ["right"] * receivers, edge),
        _cables(["left"], ["right"], uplink),
    )
    return _topology(["left", "right"], [*left, *right], cables)


def _topology(switches: Sequence[str], names: Sequence[str], cables: Iterable[Link]) -> Topology:
    hosts = (
        Host(name, (str(ip_address(FIRST_ADDRESS + index)),)) for index, name in enumerate(names)
    )
    return Topology(tuple(map(Switch, switches)), tuple(hosts), tuple(cables))


def _cables(below: Sequence[str], above: Sequence[str], capacity: str) -> list[Link]:
    rate = parse_rate(capacity, field="capacity")
    return [Link(a, b, rate) for a, b in zip(below, above, strict=True)]


def _each(names: Sequence[str], times: int) -> list[str]:
    return list(chain.from_iterable(repeat(name, times) for name in names))


def _check_counts(*counts: int) -> None:
    if min(counts) < 1:
        raise ValueError("at least one of each is needed")
