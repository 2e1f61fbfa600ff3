"""Algorithm 1 of the paper: the lossless vSwitch (zVALE), which pushes and pulls, to be read.

Each sender j has an input queue I_j, each receiver k an output queue O_k. The paper's processes are
functions here, and "sleep" is an answer: the caller tries again when it is woken up.

The forwarder is a loop over all packets of I_j. Read literally, it goes past a packet whose output
queue is full, and removes others behind it. The rings of VALE and netmap return their slots in
order only, so behind such a packet removed ones keep their places until it goes: with
`in_order=True`, the default, a full output queue thus stops all packets of a sender once its input
queue is used up (head-of-line blocking). The compiled switch completes descriptors in any order.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

Answer = Literal["sleep", "done"]


@dataclass(frozen=True)
class Packet:
    """A packet; `destination` is where the forwarding table's lookup of its address leads."""

    source: int
    destination: int
    number: int


@dataclass
class InputQueue:
    """I_j: slots that hold a packet, or, if they are returned in order, one that was removed."""

    length: int
    in_order: bool
    slots: deque[Packet | None] = field(default_factory=deque)

    @property
    def full(self) -> bool:
        """Whether no slot is free."""
        return len(self.slots) == self.length

    def enqueue(self, packet: Packet) -> None:
        """Use the next slot."""
        self.slots.append(packet)

    def remove(self, packet: Packet) -> None:
        """Free the packet's slot, or mark it until those before it are free, too."""
        self.slots[self.slots.index(packet)] = None
        if not self.in_order:
            self.slots.remove(None)
        while self.slots and self.slots[0] is None:
            self.slots.popleft()


class LosslessSwitch:
    """Input queues, output queues, and the processes that the paper describes."""

    def __init__(
        self, inputs: Sequence[int], outputs: Sequence[int], *, in_order: bool = True
    ) -> None:
        self.inputs: Final = [InputQueue(length, in_order) for length in inputs]
        self.outputs: Final = [deque[Packet](maxlen=length) for length in outputs]

    def sender(self, packet: Packet) -> Answer:
        """Enqueue a packet that was produced, and push."""
        queue = self.inputs[packet.source]
        if queue.full:
            return "sleep"
        queue.enqueue(packet)
        self.forwarder(packet.source)
        return "done"

    def receiver(self, k: int) -> Packet | Literal["sleep"]:
        """Consume a packet; if there is none, pull first."""
        if not self.outputs[k]:
            for j in range(len(self.inputs)):
                self.forwarder(j)
        if not self.outputs[k]:
            return "sleep"
        return self.outputs[k].popleft()

    def forwarder(self, j: int) -> None:
        """Move what finds room, from one input queue to all output queues."""
        for packet in list(self.inputs[j].slots):
            if packet is None:
                continue
            output = self.outputs[packet.destination]
            if len(output) != output.maxlen:
                self.inputs[j].remove(packet)
                output.append(packet)
