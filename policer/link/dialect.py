"""Sends one daemon what it supports, and remembers for a while what it does not."""

from collections.abc import Awaitable, Callable, Container, Iterable, Iterator, Sequence

from policer.errors import LinkRefused
from policer.link.compat import (
    IN_PACKETS,
    NO_BITS,
    LeftOut,
    Message,
    for_its_bits,
    for_its_burst,
    is_in_bits,
    with_lost_bits,
    with_lost_bursts,
    without_bits,
    without_bursts,
)
from policer.link.connection import AGAIN_S
from xtc.wire import Activate, Refusal

Refusals = Sequence[Refusal | None]
LONGEST_REASON = 200
"""Characters of a daemon's own text that are kept."""
_NEVER = float("-inf")


class Dialect:
    """What one daemon does not support; each item is retried after ten minutes."""

    def __init__(
        self,
        carry_out: Callable[[Sequence[Message]], Awaitable[Refusals]],
        next_sequence: Callable[[], int],
    ) -> None:
        """Assume that the daemon supports everything.

        Args:
            carry_out: sends messages to the daemon, and returns for each the reason of a refusal,
                or None.
            next_sequence: a number above all before it in this epoch.
        """
        self._carry_out, self._next = carry_out, next_sequence
        self._no_bursts_until = self._no_bits_until = _NEVER
        self._in_packets: dict[str, tuple[float, LeftOut]] = {}
        """Routers that cannot be held at a setpoint in bits/s: until when that is assumed, and
        why."""

    def forget(self) -> None:
        """Assume again that it supports everything: it was restarted, and may have been updated."""
        self._no_bursts_until = self._no_bits_until = _NEVER
        self._in_packets = {}

    def packets_only(self, now: float, routers: Iterable[str]) -> frozenset[str]:
        """Return which of its routers must be held in packets/s alone."""
        if now >= self._no_bits_until and not self._in_packets:
            return frozenset()
        return frozenset(vr for vr in routers if self._why_in_packets(now, vr) is not None)

    async def send(
        self, now: float, messages: Sequence[Message], in_bits: Container[str]
    ) -> Refusals:
        """Send messages without what the daemon does not support.

        Args:
            now: seconds of the policer's clock.
            messages: in their order.
            in_bits: routers to hold in bits/s if their daemon supports that.

        Returns:
            For each message its refusal, or what was omitted, or None.

        Raises:
            LinkError: the daemon cannot be reached, or refused all of it for another reason.
        """
        refused = await self._sent(now, messages)
        self._learn(now, messages, refused)
        return tuple(self._shown(now, messages, refused, in_bits))

    async def _sent(self, now: float, messages: Sequence[Message]) -> Refusals:
        if now < self._no_bursts_until:
            return await self._without_bursts(now, messages)
        try:
            return await self._carry_out(messages)
        except LinkRefused as error:
            if for_its_burst(error, messages):
                return await self._without_bursts(now, messages)
            if for_its_bits(error, messages):
                return await self._without_bits(now, messages)
            raise

    async def _without_bursts(self, now: float, messages: Sequence[Message]) -> Refusals:
        plain = tuple(without_bursts(messages, self._next))
        try:
            refused = await self._carry_out(plain)
        except LinkRefused as error:
            if not for_its_bits(error, plain):
                raise
            refused = await self._without_bits(now, plain)
        if now >= self._no_bursts_until:
            self._no_bursts_until = now + AGAIN_S
        return tuple(with_lost_bursts(messages, refused))

    async def _without_bits(self, now: float, messages: Sequence[Message]) -> Refusals:
        """Omit routers in bits/s, which the next round orders in packets/s."""
        rest = tuple(without_bits(messages, self._next))
        refused = await self._carry_out(rest) if rest else ()
        self._no_bits_until = now + AGAIN_S
        return tuple(with_lost_bits(messages, refused))

    def _learn(self, now: float, messages: Sequence[Message], refused: Refusals) -> None:
        """Remember routers that cannot be held in bits/s: their law may support only packets."""
        for message, refusal in zip(messages, refused, strict=True):
            if refusal is None or isinstance(refusal, LeftOut):
                continue
            if is_in_bits(message) and refusal.field == NO_BITS.field:
                words = f"{refusal.problem[:LONGEST_REASON]}; {IN_PACKETS}"
                why = LeftOut(refusal.code, refusal.field, words)
                self._in_packets[message.vr] = now + AGAIN_S, why

    def _shown(
        self,
        now: float,
        messages: Sequence[Message],
        refused: Refusals,
        in_bits: Container[str],
    ) -> Iterator[Refusal | None]:
        """Yield the result of each message, or why its setpoint is in packets/s."""
        for message, refusal in zip(messages, refused, strict=True):
            held = refusal is None and isinstance(message, Activate) and message.vr in in_bits
            yield self._why_in_packets(now, message.vr) if held else refusal

    def _why_in_packets(self, now: float, vr: str) -> LeftOut | None:
        if now < self._no_bits_until:
            return NO_BITS
        until, why = self._in_packets.get(vr, (_NEVER, None))
        return why if now < until else None
