"""Whether this kernel carries a switch's ports to containers without loss: tried, by the core."""

import ctypes
import threading
from typing import Final, Literal

import msgspec

from zovn import core_files
from zovn.errors import CoreError
from zovn.native.library import loaded

_REASON_BYTES: Final = 256
"""ZOVN_VETH_PROBLEM of zovn/core/veth/veth_port.h."""
_RESULTS: Final[tuple[Literal["lossy", "lossless", "unknown"], ...]] = (
    "lossy",
    "lossless",
    "unknown",
)
"""In the order of enum zovn_veth_probed."""


class Veths(msgspec.Struct, frozen=True, kw_only=True):
    """What a port to a container is on this kernel."""

    result: Literal["lossless", "lossy", "unknown"]
    reason: str = ""
    """Why it is not lossless, or could not be tried."""

    @property
    def said(self) -> str:
        """The result in words."""
        words = {"lossy": "lossy on this kernel", "unknown": "not tried"}.get(self.result)
        return f"{words}: {self.reason}" if words else self.result


def probe_veths() -> Veths:
    """Flood a veth in a network namespace that exists only for that; it takes some 50 ms."""
    found: list[Veths] = []
    # In a thread of its own, which leaves its namespace meanwhile.
    thread = threading.Thread(target=lambda: found.append(_probed()), name="zovn-probe")
    thread.start()
    thread.join()
    return found[0]


def _probed() -> Veths:
    reason = ctypes.create_string_buffer(_REASON_BYTES)
    try:
        library = loaded(str(core_files.library()))
    except CoreError as error:
        return Veths(result="unknown", reason=str(error))
    result = _RESULTS[library.zovn_veth_probe(reason)]
    return Veths(result=result, reason=reason.value.decode(errors="replace"))
