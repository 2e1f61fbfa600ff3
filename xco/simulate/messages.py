"""Whole messages: a message that loses a single frame is lost (paper, section 2.2)."""

import numpy as np

from xco.arrays import Floats

LEAST = 1e-300
"""Lower limit of a chance before taking its logarithm."""


class Messages:
    """The expected number of whole messages of each flow that arrive; shape (flows,).

    A chain of two states models frame loss: where the ports drop a share p, a message's first frame
    is lost with probability p, and the next after one that arrived with p / burst. With a burst of
    1 losses are independent; larger values make runs of losses longer and spare more messages.
    """

    def __init__(self, flows: int, message_bytes: int, frame_bytes: int, burst: float) -> None:
        self._size, self._frame, self._burst = float(message_bytes), float(frame_bytes), burst
        self._position = np.zeros(flows)
        """Bytes of each flow's current message that were sent."""
        self._chance = np.zeros(flows)
        """The logarithm of the chance that none of its frames was lost so far."""
        self.whole = np.zeros(flows)
        self.complete = np.zeros(flows)

    def sent(self, sent: Floats, kept: Floats) -> None:
        """Count one slot: bytes sent, and the share of them that the path accepts."""
        active = np.flatnonzero(sent)
        sent, kept = sent[active], kept[active]
        position = self._position[active]
        end = position + sent
        done = np.floor(end / self._size)
        rest = end - done * self._size
        finished = done > 0
        until = np.where(finished, self._size - position, sent)
        chance = self._chance[active] + self._survival(position, until, kept)
        start = np.zeros(len(active))
        between = self._survival(start, np.full(len(active), self._size), kept)
        arrived = np.exp(chance) + (done - 1) * np.exp(between)
        self.whole[active] += np.where(finished, arrived, 0.0)
        self.complete[active] += done
        self._chance[active] = np.where(finished, self._survival(start, rest, kept), chance)
        self._position[active] = rest

    def _survival(self, position: Floats, part: Floats, kept: Floats) -> Floats:
        """Return the logarithm of the chance that no loss hits a part of a message."""
        head = np.clip(self._frame - position, 0.0, part)
        first = np.log(np.maximum(kept, LEAST))
        other = np.log(np.maximum((self._burst - 1.0 + kept) / self._burst, LEAST))
        survival: Floats = (head * first + (part - head) * other) / self._frame
        return survival

    @property
    def whole_bytes(self) -> Floats:
        """Bytes of whole messages that arrived, shape (flows,)."""
        whole: Floats = self.whole * self._size
        return whole
