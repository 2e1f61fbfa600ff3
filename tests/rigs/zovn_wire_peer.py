"""A wire of a switch in this process, and its other end, played by a test."""

import socket
import weakref

from rigs.zovn_rig import address, frame
from rigs.zovn_wire_rig import (
    CLASSES,
    TRUSTING,
    VNI,
    Wired,
    ip,
    map_of,
    name,
    packets,
    passing,
    received,
    run,
)

from lab.system import namespaces
from zovn.native.switch import Settings
from zovn.native.wire import (
    RawPath,
    decapsulated,
    encapsulated,
    endpoint,
    pfc_frame,
    pfc_quanta,
)

HERE, THERE = "10.9.0.1", "10.9.0.2"
FAR = b"\x02\0\0\0\1\2"
"""The station behind the other host."""
SINK = 1


class Peer:
    """The other end of a wire, played by the test."""

    def __init__(self, rig: Wired, **settings: object) -> None:
        self.rig = rig
        ip("here", "address", "add", f"{HERE}/24", "dev", "w0")
        ip("there", "address", "add", f"{THERE}/24", "dev", "w0")
        self.raw = packets("there", "w0")
        weakref.finalize(self, self.raw.close)
        self.port = rig.wire("here", "w0", HERE, map_of({FAR: THERE}), TRUSTING, **settings)  # type: ignore[arg-type]
        self.here = endpoint(mac("here"), socket.inet_aton(HERE))
        self.there = endpoint(mac("there"), socket.inet_aton(THERE))
        self.seen: list[bytes] = []
        rig.switch.fix(self.port, 7, FAR)

    def send(self, inner: bytes, klass: int = 0, vni: int = VNI) -> None:
        path = RawPath(self.there, self.here, vni, klass, tagged=True)
        self.raw.send(encapsulated(inner, path))

    def pause(self, quanta: dict[int, int]) -> None:
        self.raw.send(pfc_frame(bytes(self.there.ethernet), quanta))

    def frames(self) -> list[tuple[bytes, int]]:
        """Return the frames of the tunnel that came so far, with their classes."""
        self.seen += iter(lambda: received(self.raw), None)
        found = (decapsulated(one, self.there, VNI) for one in self.seen)
        return [(inner, klass) for result, inner, klass in found if result == "sound"]

    def pauses(self) -> list[dict[int, int]]:
        """Return what the PFC frames that came so far say."""
        self.frames()
        return [said for said in map(pfc_quanta, self.seen) if said is not None]

    def know(self) -> None:
        """Wait until the port knows the other host."""

        def known() -> bool:
            self.rig.ports[0].send(tagged(FAR, 0, 0))
            self.rig.step()
            return bool(self.frames())

        passing(self.rig, until=known)


def mac(host: str) -> bytes:
    """Return the address of a host's interface to the line."""

    def read() -> bytes:
        text = run("ip", "-br", "link", "show", "w0").split()[2]
        return bytes.fromhex(text.replace(":", ""))

    return namespaces.inside(name(host), read)


def tagged(to: bytes, klass: int, number: int, length: int = 100) -> bytes:
    """Return a numbered frame of a class."""
    return frame(address(0), to, number, length, tag=klass << 13 | 7)


def switch(settings: Settings = CLASSES, received: int = 4) -> Wired:
    """A switch with a source and a sink in memory; the sink's address is known."""
    rig = Wired([TRUSTING, TRUSTING], settings, sent=64, received=received)
    rig.switch.fix(SINK, 7, address(SINK))
    return rig
