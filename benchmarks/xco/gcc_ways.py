"""Ways to share the port of the lab's dumbbell: none, the ends alone, and xco's strategies."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, get_type_hints

from benchmarks.xco.rig import LAB, Settings, Way, XcoRig
from lab.errors import LabError
from lab.marking.build import built
from lab.plan import namespace
from lab.system import namespaces
from xco.controller.config import ControllerTable

CONTROLS: Final = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
ECN_ASKED: Final = 1
"""Value of net.ipv4.tcp_ecn: in all connections."""
ECN_ANSWERED: Final = 2
"""Only where the other end asks; the kernel's default."""


@dataclass(frozen=True)
class LabWay:
    """One way."""

    name: str
    words: str
    strategy: Way = "uncoordinated"
    marks: bool = False
    """Whether the port marks, and with a strategy hosts count and hide marks."""
    ecn: bool = False
    """Whether the hosts' TCP uses ECN."""
    congestion: str | None = None
    """Congestion control of the hosts' TCP; None is CUBIC."""
    published: bool = False
    """Whether the strategy follows its published law."""
    static: bool = False
    """Whether each host is held to an equal share at all times."""


WAYS: Final = {
    way.name: way
    for way in (
        LabWay("none", "no control"),
        LabWay("ecn", "a port that marks, and ECN in TCP", marks=True, ecn=True),
        LabWay("bbr", "BBR in TCP", congestion="bbr"),
        LabWay("static", "a fixed equal share for each host", static=True),
        LabWay("rate", "xco's rates by demand", "rate"),
        LabWay("timeslice", "xco's timeslices", "timeslice"),
        LabWay("gcc", "xco's budgets of ports, by marks (SDN-GCC)", "gcc", marks=True),
        LabWay("hygenicc", "xco's rates by marks alone (HyGenICC)", "hygenicc", marks=True),
        LabWay("gcc-published", "SDN-GCC as published", "gcc", marks=True, published=True),
        LabWay(
            "hygenicc-published", "HyGenICC as published", "hygenicc", marks=True, published=True
        ),
    )
}
DEFAULT: Final = tuple(name for name, way in WAYS.items() if not way.published)
"""Those that are measured unless others are asked for."""


def lacks(way: LabWay) -> str | None:
    """Return why a way cannot be tried here, or None."""
    strategies = get_type_hints(ControllerTable)["strategy"].__args__
    if way.strategy not in {"uncoordinated", "hygenicc", *strategies}:
        return f"this version of xco has no strategy {way.strategy}"
    if way.congestion and way.congestion not in CONTROLS.read_text(encoding="ascii").split():
        return f"this kernel has no {way.congestion}"
    try:
        if way.marks:
            built()
    except LabError as error:
        return f"no port can mark: {error}"
    return None


def available(names: Iterable[str]) -> tuple[list[LabWay], dict[str, str]]:
    """Return the ways that can be tried here, and why the others cannot, by name."""
    reasons = {name: lacks(WAYS[name]) for name in names}
    skipped = {name: reason for name, reason in reasons.items() if reason}
    return [WAYS[name] for name in reasons if name not in skipped], skipped


def settings(way: LabWay) -> Settings:
    """Return the settings of controller and coordinators; only slices need the lab's own pace."""
    sliced = way.strategy == "timeslice"
    lab = {key: value for key, value in LAB.coordinator.items() if sliced or key != "pace"}
    law = {"law": "published"} if way.published else {}
    controller = {**LAB.controller, **(law if way.strategy == "gcc" else {})}
    coordinator = lab | ({"marks": "hide"} if way.marks else {})
    return Settings(controller, coordinator | (law if way.strategy == "hygenicc" else {}))


def enter(xco: XcoRig, way: LabWay, senders: int) -> None:
    """Put a way in force: hosts, port, controller.

    Args:
        xco: the rig, with any earlier way in force.
        way: the way.
        senders: the number of equal shares of the way `static`.

    Raises:
        LabError: the port cannot mark.
        ControllerError: the hosts do not join.
    """
    fabric = xco.fabric
    xco.stop()
    fabric.unmark()
    if way.marks:
        fabric.mark()
    for host in fabric.plan.hosts:
        ecn = ECN_ASKED if way.ecn else ECN_ANSWERED
        namespaces.write_sysctls(namespace(fabric.prefix, host.name), {"ipv4/tcp_ecn": ecn})
    fabric.pace()  # coordinators replace it on their hosts
    xco.settings = settings(way)
    xco.go(way.strategy)
    if way.static:
        capacity = fabric.plan.link_of(fabric.receivers[0]).capacity_bps
        fabric.pace(fabric.senders[:senders], capacity // senders)
