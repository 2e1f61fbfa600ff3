"""Ethernet frames as the model of the switch reads and writes them."""

from dataclasses import dataclass
from typing import Final

TAG: Final = 0x8100
SERVICE_TAG: Final = 0x88A8
IPV4: Final = 0x0800
IPV6: Final = 0x86DD


@dataclass(frozen=True)
class Ethernet:
    """A frame's header, and what follows its tag."""

    destination: bytes
    source: bytes
    tag: int | None
    """Priority and VLAN."""
    rest: bytes
    """From the type on."""

    @property
    def vlan(self) -> int:
        """The VLAN of its tag, 0 for none."""
        return (self.tag or 0) & 0xFFF

    @property
    def type(self) -> int:
        """What the frame carries."""
        return int.from_bytes(self.rest[:2], "big")

    @property
    def hides_a_tag(self) -> bool:
        """Whether a tag lies behind its tag, which would be taken for its own without that."""
        return self.tag is not None and self.type in {TAG, SERVICE_TAG}

    @property
    def dscp(self) -> int | None:
        """The code point of an IP packet."""
        if len(self.rest) < 4:
            return None
        if self.type == IPV4:
            return self.rest[3] >> 2
        if self.type == IPV6:
            return (int.from_bytes(self.rest[2:4], "big") >> 4 & 0xFF) >> 2
        return None

    def as_bytes(self) -> bytes:
        """Return the frame."""
        tag = b"" if self.tag is None else TAG.to_bytes(2, "big") + self.tag.to_bytes(2, "big")
        return self.destination + self.source + tag + self.rest


def parse(frame: bytes) -> Ethernet | None:
    """Read a frame's header; None if it has none."""
    if len(frame) < 14:
        return None
    destination, source, rest = frame[:6], frame[6:12], frame[12:]
    if int.from_bytes(rest[:2], "big") != TAG:
        return Ethernet(destination, source, None, rest)
    if len(rest) < 6:
        return None
    return Ethernet(destination, source, int.from_bytes(rest[2:4], "big"), rest[4:])
