"""A marker on a port: start it, read its counts, stop it."""

from lab.marking.build import built
from lab.marking.terms import Marking
from lab.programs.processes import Place
from lab.programs.reporter import Reporter, words_of
from lab.traffic.counts import Total


class Marked(Total, frozen=True):
    """What has passed a marking port since its marker started; bytes are of whole frames."""

    packets: int
    capable: int
    """Packets that are ECN-capable, those that came marked included."""
    marks: int
    """Packets that were marked here."""
    queued_bytes: int
    """Length of the port's real queue as the last packet came."""


def marker(
    place: Place, interface: str, marking: Marking, *, rate_bps: int, buffer_bytes: int
) -> Reporter[Marked]:
    """Start marking at the egress of an interface, before its queue.

    The kernel detaches the program when the marker ends, however it ends.

    Args:
        place: the namespace of the switch.
        interface: the port.
        marking: when it marks.
        rate_bps: rate of the port in bits/s.
        buffer_bytes: its buffer in bytes.

    Raises:
        MissingRequirementError: there is no clang, C compiler or libbpf.
        ProgramError: the kernel refuses the program (Linux 6.6 with BTF is needed), or there is no
            such interface.
    """
    files = built()
    options = {"object": str(files.programs), "interface": interface}
    words = words_of(**options, **marking.options(rate_bps, buffer_bytes))
    return Reporter("marker", Marked, place.command([str(files.marker), *words]))
