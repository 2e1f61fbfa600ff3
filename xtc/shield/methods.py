"""Chooses the way of limiting an interface, purely from findings."""

from dataclasses import dataclass
from enum import Enum


class Way(Enum):
    """Ways to limit an interface, cheapest first."""

    CLSACT = "clsact"
    """A BPF program before the queueing discipline."""
    TBF = "tbf"
    """A token bucket as the queueing discipline."""
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Findings:
    """Findings on a host and one of its interfaces; "" means no problem."""

    present: bool = True
    """Whether the interface exists."""
    privileged: bool = True
    """Whether the daemon has CAP_NET_ADMIN and CAP_SYS_ADMIN."""
    bpf: str = ""
    """Why the program cannot be loaded."""
    clsact: str = ""
    """Why a filter cannot be attached to the interface."""
    foreign_filter: str = ""
    """Another owner's filter in the same direction."""
    tbf: str = ""
    """Why a TBF cannot be used: the kernel has none, or another owner's qdisc is there."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A way, and why no cheaper one is used."""

    way: Way
    reason: str = ""


def choose(found: Findings) -> Choice:
    """Return the cheapest way that the findings allow."""
    if not found.present:
        return Choice(Way.NONE, "there is no such interface")
    needs = "" if found.privileged else "the program needs CAP_NET_ADMIN and CAP_SYS_ADMIN"
    obstacle = needs or found.bpf or found.clsact
    if found.foreign_filter:
        obstacle = obstacle or f"{found.foreign_filter} belongs to another owner"
    if not obstacle:
        return Choice(Way.CLSACT)
    if not found.tbf:
        return Choice(Way.TBF, obstacle)
    return Choice(Way.NONE, f"{obstacle}; {found.tbf}")
