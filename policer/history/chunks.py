"""Points of a host's routers as they come in: short chunks of seconds, long ones of minutes."""

from array import array
from typing import Final, NamedTuple

from policer.history.point import WIDTH

SECOND_S: Final = 1
MINUTE_S: Final = 60
POINTS: Final = {SECOND_S: 10, MINUTE_S: 60}
"""Points of a chunk, by their length in seconds."""
MOST_ROUTERS: Final = 512
"""Without a contract, of one host and chunk: a host that invents names fills no database."""
Values = tuple[float, float, float, float, float, float, float, float]
"""One for each column of a point."""
_CODES: Final = {SECOND_S: "d", MINUTE_S: "f"}
"""Of arrays: an hour of all routers stays in memory, where seven digits are enough."""


class RawChunk(NamedTuple):
    """A chunk that is to be written."""

    host: str
    span: int
    """Length of a point, seconds."""
    at: int
    """When it begins, seconds since 1970."""
    part: int
    """Which recorder made it."""
    routers: dict[str, "array[float]"]

    @property
    def key(self) -> tuple[str, int, int, int]:
        """What no other chunk has."""
        return self.host, self.span, self.at, self.part


class Chunk:
    """Points of one host that begin within a chunk's time."""

    __slots__ = ("at", "changed", "routers", "span")

    def __init__(self, span: int, at: int) -> None:
        self.span, self.at = span, at
        self.routers: dict[str, array[float]] = {}
        self.changed = False

    def rows(self, vr: str, *, contracted: bool) -> "array[float] | None":
        """Return a router's points, to be added to; None where there is no room for it."""
        rows = self.routers.get(vr)
        if rows is None and (contracted or len(self.routers) < MOST_ROUTERS):
            rows = array(_CODES[self.span], [0.0]) * (WIDTH * POINTS[self.span])
            self.routers[vr] = rows
        return rows

    def add(self, rows: "array[float]", at: int, values: Values, seconds: float = 1.0) -> None:
        """Add to the point that an instant is in.

        Args:
            rows: a router's, as `rows` returned them.
            at: the instant, seconds since 1970.
            values: for each second.
            seconds: how many there are.
        """
        data, offered, delivered, held, setpoint, guaranteed, breach, punished = values
        begin = WIDTH * ((at - self.at) // self.span)
        # Written out: it is done for every router of the fleet, twice a second.
        rows[begin] += seconds * data
        rows[begin + 1] += seconds * offered
        rows[begin + 2] += seconds * delivered
        if held:
            rows[begin + 3] += seconds * held
            rows[begin + 4] += seconds * setpoint
        if guaranteed:
            rows[begin + 5] += seconds * guaranteed
        if breach:
            rows[begin + 6] += seconds * breach
        if punished:
            rows[begin + 7] += seconds * punished
        self.changed = True

    def sums(self, vr: str) -> Values:
        """Return a router's columns, each added up."""
        rows = self.routers[vr]
        a, b, c, d, e, f, g, h = (sum(rows[place::WIDTH]) for place in range(WIDTH))
        return a, b, c, d, e, f, g, h

    @property
    def end(self) -> int:
        """When it ends."""
        return self.at + self.span * POINTS[self.span]

    def taken(self, host: str, part: int) -> RawChunk:
        """Return what is to be written, which changes no more."""
        self.changed = False
        copies = {vr: rows[:] for vr, rows in self.routers.items()}
        return RawChunk(host, self.span, self.at, part, copies)


def begin_of(span: int, at: int) -> int:
    """Return when the chunk begins that an instant is in."""
    return at - at % (span * POINTS[span])
