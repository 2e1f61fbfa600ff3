"""What Xen and dom0 count of guests, without libvirt: its answers would cost dom0 more time."""

import ctypes
import time
from pathlib import Path
from typing import Any, Final

COLUMNS: Final = 16
RECEIVED, SENT, NOT_SENT = 1, 9, 11
"""Columns of /proc/net/dev, as dom0's end of an interface counts."""
Handle = ctypes.c_void_p
FUNCTIONS: Final = {
    "init": (Handle,),
    "get_node": (Handle, Handle, ctypes.c_uint),
    "free_node": (None, Handle),
    "node_num_domains": (ctypes.c_uint, Handle),
    "node_domain_by_index": (Handle, Handle, ctypes.c_uint),
    "domain_id": (ctypes.c_uint, Handle),
    "domain_name": (ctypes.c_char_p, Handle),
    "domain_cpu_ns": (ctypes.c_ulonglong, Handle),
}
"""Of libxenstat: what each returns, and takes."""


class Xen:
    """Xen's own counters of its domains."""

    def __init__(self) -> None:
        library = ctypes.CDLL(str(next(Path("/usr/lib").glob("*/libxenstat.so.*"))))
        self._calls: dict[str, Any] = {}
        for name, (result, *arguments) in FUNCTIONS.items():
            call = getattr(library, f"xenstat_{name}")
            call.restype, call.argtypes = result, arguments
            self._calls[name] = call
        self._handle = self._calls["init"]()

    def counts(self) -> dict[str, dict[str, float]]:
        """Return of every domain that runs its number and CPU time, its packets, and when."""
        begun = time.monotonic()
        domains = self._domains()
        interfaces = _interfaces()
        counted_at = (begun + time.monotonic()) / 2
        return {
            name: {"domid": domid, "counted_at": counted_at, "cpu_s": cpu_s}
            | _packets(interfaces, domid)
            for name, (domid, cpu_s) in domains.items()
        }

    def _domains(self) -> dict[str, tuple[int, float]]:
        calls, node = self._calls, self._calls["get_node"](self._handle, 0)
        if not node:
            return {}  # one came or went while they were listed
        count = calls["node_num_domains"](node)
        found = [calls["node_domain_by_index"](node, index) for index in range(count)]
        domains = {
            calls["domain_name"](one).decode(): (
                calls["domain_id"](one),
                calls["domain_cpu_ns"](one) / 1e9,
            )
            for one in found
        }
        calls["free_node"](node)
        return domains


def forwarded(domid: int) -> int:
    """Return the packets that came back to dom0 from a guest."""
    return int(_packets(_interfaces(), domid)["forwarded"])


def _packets(interfaces: dict[str, list[int]], domid: int) -> dict[str, float]:
    """Return what came out of a guest, and what dom0 sent towards it or its queue had to drop."""
    into, out = (interfaces.get(f"vif{domid}.{n}", [0] * COLUMNS) for n in (0, 1))
    return {"forwarded": out[RECEIVED], "offered": into[SENT] + into[NOT_SENT]}


def _interfaces() -> dict[str, list[int]]:
    lines = Path("/proc/net/dev").read_text().splitlines()[2:]
    split = (line.partition(":") for line in lines)
    return {name.strip(): [int(number) for number in rest.split()] for name, _, rest in split}
