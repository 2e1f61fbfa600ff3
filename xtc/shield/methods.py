"""Which way of limiting an interface gets, and why: decided from what was found, nothing else."""

from dataclasses import dataclass
from enum import Enum


class Way(Enum):
    """How an interface is limited, the cheapest first."""

    CLSACT = "clsact"
    """A BPF program before the queueing discipline."""
    TBF = "tbf"
    """A token bucket as the queueing discipline."""
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Findings:
    """What was found on a host and on one of its interfaces; "" means that nothing is wrong."""

    present: bool = True
    """Whether there is such an interface."""
    privileged: bool = True
    """Whether the daemon has CAP_NET_ADMIN and CAP_SYS_ADMIN."""
    bpf: str = ""
    """Why the program cannot be loaded."""
    clsact: str = ""
    """Why a filter cannot be put on the interface."""
    foreign_filter: str = ""
    """Another owner's filter in the same direction."""
    tbf: str = ""
    """Why a TBF cannot be used: the kernel has none, or another owner's qdisc is there."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A way, and why it is not a cheaper one."""

    way: Way
    reason: str = ""


def choose(found: Findings) -> Choice:
    """Return the cheapest way that what was found allows."""
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
