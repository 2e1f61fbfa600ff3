"""The coordinator's compiled pure parts, with time as a parameter."""

import ctypes
import subprocess
from pathlib import Path
from typing import ClassVar

CORE = Path(__file__).parents[2] / "xco" / "core"
SHIMS = [Path(__file__).with_name(f"xco_{name}_shim.c") for name in ("coordinator", "peers", "vms")]
PARTS = ("coordinator/config.c", "qdisc/watch.c", "common/budget.c")
GATES = 65
US, MS = 1000, 1_000_000
GUARD, HYSTERESIS, HEARTBEAT, GAP, SILENCE = 50 * US, 50 * US, 5 * MS, 100 * US, 50 * MS
TIMES = (GUARD, HYSTERESIS, HEARTBEAT, GAP, SILENCE, 100 * MS, 50 * US, 250 * US)
LINE = 10**9
PACED = LINE // 100 * 98
REPORT, HELLO, FELL_BACK, CONTROLLED = 2, 4, 8, 16
CLOSED, SLICE, RATE, OPEN = range(4)
NOW = 10**12
FLAGS = ("-std=c17", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-O1", "-fPIC", "-shared")


def build(folder: Path) -> ctypes.CDLL:
    """Compile the pure parts and load them."""
    library = folder / "shim.so"
    sources = [
        *sorted((CORE / "coordinator" / "engine").glob("*.c")),
        *(CORE / part for part in PARTS),
    ]
    subprocess.run(["cc", *FLAGS, f"-I{CORE}", "-o", library, *SHIMS, *sources, "-lm"], check=True)
    loaded = ctypes.CDLL(str(library))
    for name in ("shim_begin", "shim_flows", "shim_peers", "shim_vms"):
        getattr(loaded, name).restype = ctypes.c_void_p
    for name in ("shim_alarm", "shim_offset", "shim_sight", "shim_arrival"):
        getattr(loaded, name).restype = ctypes.c_int64
    loaded.shim_gave_up.restype = loaded.shim_free.restype = ctypes.c_uint64
    for name in ("offer", "between", "wants", "gate_rate", "allowed", "safe"):
        getattr(loaded, f"shim_{name}").restype = ctypes.c_uint64
    for name in ("level", "spare", "even", "part"):
        getattr(loaded, f"xco_shares_{name}").restype = ctypes.c_uint64
    loaded.shim_peers_write.restype = ctypes.c_bool
    loaded.shim_vms_sent.restype = ctypes.c_uint64
    loaded.shim_vms_look.restype = ctypes.c_uint32
    for name in ("shim_see", "shim_answers", "xco_flows_room"):
        getattr(loaded, name).restype = ctypes.c_bool
    return loaded


def long(value: int) -> ctypes.c_int64:
    return ctypes.c_int64(value)


class Way(ctypes.Structure):
    """struct xco_way."""

    _fields_: ClassVar = [
        ("count", ctypes.c_uint),
        ("links", ctypes.c_uint16 * 16),
        ("shares_bps", ctypes.c_uint64 * 16),
    ]


class Core:
    """A coordinator's core whose clock is a parameter."""

    def __init__(self, shim: ctypes.CDLL, skew: int = 0) -> None:
        self._shim, self._skew, self._sequence = shim, skew, 0
        times = (ctypes.c_int64 * len(TIMES))(*TIMES)
        state = shim.shim_begin(times, ctypes.c_uint64(LINE), ctypes.c_uint64(980_000), long(NOW))
        self._state = ctypes.c_void_p(state)
        self.rates = (ctypes.c_uint64 * GATES)()

    def direct(
        self,
        now: int,
        mode: int,
        start: int,
        end: int,
        *,
        to: int = 1,
        rate: int = 0,
        epoch: int = 1,
    ) -> int:
        """Give a directive whose exchange took no time; times are the host's."""
        self._sequence += 1
        exchange = (ctypes.c_int64 * 3)(now, now + self._skew, now + self._skew)
        times = [long(instant + self._skew if instant else 0) for instant in (start, end)]
        numbers = [ctypes.c_uint64(epoch), ctypes.c_uint64(self._sequence)]
        rest = [*times, to, ctypes.c_uint64(rate), exchange]
        self._shim.shim_directive(self._state, long(now), *numbers, mode, *rest)
        return self._sequence

    def only_pace(self) -> None:
        """Have gates that cannot close."""
        self._shim.shim_only_pace(self._state)

    def welcome(self, now: int, status: int, epoch: int = 1) -> None:
        self._shim.shim_welcome(self._state, long(now), ctypes.c_uint64(epoch), status)

    def add(self, now: int, host: int, *way: tuple[int, int]) -> int:
        """Add a destination behind these links, with what is safe on each."""
        links, shares = zip(*(way or ((host, LINE // 4),)), strict=True)
        made = Way(len(links), links, shares)
        return int(self._shim.xco_core_add(self._state, long(now), host, ctypes.byref(made)))

    def look(self, now: int, gate: int, backlog: int, sent: int = 0) -> None:
        self._shim.xco_core_look(self._state, long(now), gate, backlog, ctypes.c_uint64(sent))

    def lose(self) -> None:
        self._shim.xco_core_lost(self._state)

    def remake(self) -> None:
        self._shim.xco_core_remade(self._state)

    def report(self) -> tuple[int, list[tuple[int, int, int]]]:
        """Return the report's flags, and (destination, backlog, rate in kbit/s) of each entry."""
        numbers = (ctypes.c_uint64 * (3 * (GATES - 1)))()
        told = self._shim.shim_report(self._state, numbers)
        count = told & 0xFFFF
        return told >> 16, [tuple(numbers[3 * n : 3 * n + 3]) for n in range(count)]  # type: ignore[misc]

    def answers(self, now: int, kind: int, echo: int) -> bool:
        return bool(self._shim.shim_answers(self._state, long(now), kind, ctypes.c_uint64(echo)))

    def decide(self, now: int) -> int:
        return int(self._shim.shim_decide(self._state, long(now), self.rates))

    def alarm(self, now: int) -> tuple[int, bool]:
        precise = ctypes.c_int()
        at = self._shim.shim_alarm(self._state, long(now), ctypes.byref(precise))
        return at, bool(precise.value)

    def advance(self, by: int) -> None:
        self._shim.shim_advance(self._state, long(by))

    @property
    def state(self) -> ctypes.c_void_p:
        """The compiled state."""
        return self._state

    @property
    def gave_up(self) -> int:
        return int(self._shim.shim_gave_up(self._state))

    @property
    def free(self) -> int:
        """When what was given up ends, in the host's time; 0: at once."""
        told = int(self._shim.shim_free(self._state))
        return told - self._skew if told else 0
