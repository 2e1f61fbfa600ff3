"""What the readers of ports have in common: the counters, and the interface."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from xco.errors import PortError

UNCOUNTED: Final = 2**64 - 1
"""Largest value of a counter; OpenFlow's mark for one that the switch does not have."""


@dataclass(frozen=True, slots=True)
class Counters:
    """What left a port since its counters began, and what waits now."""

    packets: int
    bytes: int
    marks: int = 0
    """Packets marked because of congestion (ECN)."""
    drops: int = 0
    backlog_bytes: int = 0
    counts_marks: bool = False
    """Whether the port counts marks; otherwise they are 0."""
    read_ns: int = field(default=0, compare=False)
    """When they were read, on the monotonic clock; 0: when the look was taken."""


Reading = Counters | PortError
"""Of one port: its counters, or why there are none."""


class PortReader(Protocol):
    """Reads ports that are read together, such as those of one switch. For one thread."""

    def read(self) -> Sequence[Reading | None]:
        """Return a reading for each port, in the order of the configuration.

        None stands for a port that has nothing new; the first look has no None.

        Raises:
            PortError: none of them can be read.
        """
        ...

    def close(self) -> None:
        """Release the connection, if any; the next `read` opens it again."""
        ...
