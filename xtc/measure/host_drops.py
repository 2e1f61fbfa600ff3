"""Packets that the host drops before any router: at its network cards, and in its CPUs' backlogs.

No router's interface counts these packets, so a router looks idle while its traffic is lost.
Metrics and the policer get these counts; no control law uses them.
"""

import re
from collections.abc import Callable, Collection, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from pathlib import Path

import structlog

from common.units import PacketsPerSecond, Seconds
from xtc.errors import MeterError
from xtc.measure.meter import LINE_RATE, Fault, InterfaceRate
from xtc.wire import HostDrops

SOFTNET = "/proc/net/softnet_stat"
SYSFS = Path("/sys/class/net")
MAX_BYTES = 4 << 20
"""A larger file is no softnet_stat: 8192 CPUs take 1.1 MB."""
_LINE = re.compile(rb"[0-9a-f]{8}(?: [0-9a-f]{8}){8,}")
_DROPPED, _CPU = 1, 12
"""Columns; older kernels do not print the CPU."""

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Backlogs:
    """Packets that each CPU's backlog had dropped at an instant, modulo 2^32."""

    at: Seconds
    dropped: Mapping[int, int]


def parse(raw: bytes) -> dict[int, int]:
    """Read the text of /proc/net/softnet_stat (linux/net/core/net-procfs.c): drops by CPU.

    Raises:
        MeterError: any line is not understood; nothing is guessed from the rest.
    """
    if len(raw) > MAX_BYTES:
        raise MeterError(0, f"{len(raw)} bytes are more than any host's CPUs fill", file=SOFTNET)
    if not raw.endswith(b"\n"):
        raise MeterError(0, "the text is empty, or ends within a line", file=SOFTNET)
    dropped: dict[int, int] = {}
    for number, line in enumerate(raw.split(b"\n")[:-1], start=1):
        if not _LINE.fullmatch(line):
            raise MeterError(number, "a column is no hexadecimal counter", file=SOFTNET)
        columns = line.split(b" ")
        cpu = int(columns[_CPU], 16) if len(columns) > _CPU else number - 1
        if cpu in dropped:
            raise MeterError(number, f"CPU {cpu} occurs twice", file=SOFTNET)
        dropped[cpu] = int(columns[_DROPPED], 16)
    return dropped


def backlog_rate(before: Backlogs, after: Backlogs) -> PacketsPerSecond | None:
    """Return the drops of all backlogs between two readings; None where unknown.

    CPUs added or removed in between are left out. Counters have 32 bits, and wrap.
    """
    dt = after.at - before.at
    if dt <= 0:
        return None
    both = before.dropped.keys() & after.dropped.keys()
    lost = sum((after.dropped[cpu] - before.dropped[cpu]) % (1 << 32) for cpu in both)
    return None if lost > LINE_RATE * dt else PacketsPerSecond(lost / dt)


def is_card(name: str, sysfs: Path = SYSFS) -> bool:
    """Whether an interface is a network card, not a software device or a Xen guest's end."""
    device = sysfs / name / "device"
    try:
        return device.exists() and (device / "subsystem").resolve().name != "xen-backend"
    except OSError as error:
        log.warning("no_card", interface=name, problem=str(error))
        return False


class HostWatch:
    """Counts the host's drops per tick; values that cannot be read are unknown."""

    def __init__(
        self, softnet: Path = Path(SOFTNET), card: Callable[[str], bool] = is_card
    ) -> None:
        self._softnet, self._card = softnet, card
        self._cards: dict[str, bool] = {}
        """Every interface at the last check, and whether it is a card."""
        self._before: Backlogs | None = None
        self._problem = ""
        """Why backlogs could not be read; empty while they can."""

    def look(
        self,
        now: Seconds,
        rates: Mapping[str, InterfaceRate | Fault],
        owned: Collection[str],
    ) -> HostDrops:
        """Return the drops since the last call.

        Args:
            now: the current instant.
            rates: of every interface of the host.
            owned: interfaces of routers, which count their own drops.
        """
        self._learn(rates.keys())
        cards = {
            name: float(found.rx_dropped)
            for name, found in rates.items()
            if self._cards[name] and name not in owned and isinstance(found, InterfaceRate)
        }
        return HostDrops(cards, self._backlog(now))

    def _learn(self, names: AbstractSet[str]) -> None:
        """Look up in sysfs the interfaces that are new."""
        known = self._cards
        if known.keys() != names:
            self._cards = {n: known[n] if n in known else self._card(n) for n in names}

    def _backlog(self, now: Seconds) -> PacketsPerSecond | None:
        before, self._before = self._before, self._read(now)
        if before is None or self._before is None:
            return None
        return backlog_rate(before, self._before)

    def _read(self, now: Seconds) -> Backlogs | None:
        """Read the file; log once why it cannot be read."""
        try:
            read = Backlogs(now, parse(self._softnet.read_bytes()))
        except (OSError, MeterError) as error:
            if not self._problem:
                log.warning("backlogs_unknown", problem=str(error))
            self._problem = str(error)
            return None
        self._problem = ""
        return read
