"""The timing inequality of slice, lead, guard, exchange, silence, heartbeat (docs/reference).

poll_open <= hysteresis                 an unused slice is noticed in time
2 * (guard + spin) <= shortest slice    guard time must not consume a slice
guard + hysteresis < shortest slice     an unused slice can still be given up
3 * heartbeat <= silence                two lost messages do not count as silence
exchange + poll_closed <= heartbeat     the controller answers before the next heartbeat
silence < hang                          fallback comes before the guard kills the loop
"""

from typing import Final

import msgspec

from xco.errors import ConfigError

SHORTEST_SLICE_NS: Final = 1_000_000
"""Slices are 1 to 10 ms (paper, section 3.2)."""
LONGEST_SLICE_NS: Final = 10_000_000
EXCHANGE_NS: Final = 1_000_000
"""A report and its directive, p99 (paper, section 4.8: less than 1 ms)."""
HEARTBEATS_OF_SILENCE: Final = 3


class Timing(msgspec.Struct, frozen=True, kw_only=True):
    """The coordinator's times in nanoseconds, named as in its configuration."""

    guard: int
    hysteresis: int
    heartbeat: int
    silence: int
    hello: int
    poll_open: int
    poll_closed: int
    spin: int
    burst: int
    hang: int
    flow_window: int
    flow_idle: int

    def check(self, file: str) -> None:
        """Reject times that cannot work together.

        Raises:
            ConfigError: names the key to change, and its new value.
        """
        for key, holds, fix in self._laws():
            if not holds:
                raise ConfigError(file, f"coordinator.{key}", "does not fit the other times", fix)

    def _laws(self) -> tuple[tuple[str, bool, str], ...]:
        guarded = 2 * (self.guard + self.spin)
        return (
            ("poll_open", 0 < self.poll_open <= self.hysteresis, "at most the hysteresis"),
            ("guard", guarded <= SHORTEST_SLICE_NS, "guard and spin at most 500us together"),
            ("hysteresis", self.guard + self.hysteresis < SHORTEST_SLICE_NS, "below 1ms - guard"),
            (
                "silence",
                HEARTBEATS_OF_SILENCE * self.heartbeat <= self.silence,
                "three heartbeats or more",
            ),
            (
                "heartbeat",
                EXCHANGE_NS + self.poll_closed <= self.heartbeat,
                "at least 1ms more than poll_closed",
            ),
            ("hang", self.silence < self.hang, "longer than the silence"),
            ("flow_idle", self.flow_window < self.flow_idle, "longer than flow_window"),
        )
