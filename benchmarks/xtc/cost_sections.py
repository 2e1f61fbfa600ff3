"""A daemon's time by function, each without the measured functions that it calls."""

import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from functools import wraps
from importlib import import_module
from typing import Any, Final

SECTIONS: Final[Mapping[str, tuple[str, ...]]] = {
    "read /proc/net/dev": ("xtc.measure.meter:ProcNetDev.read",),
    "rates of interfaces": ("xtc.daemon.loop:rates",),
    "readings of routers": ("xtc.measure.collector:Collector.aggregate",),
    "drops of the host": ("xtc.measure.host_drops:HostWatch.look",),
    "tick, itself": ("xtc.daemon.loop:Daemon._timed_tick",),
    "manager, itself": ("xtc.manager.manager:Manager.tick",),
    "loop, itself": ("xtc.manager.router:ManagedRouter.step",),
    "law": ("xtc.control.adaptive:AdaptiveLaw.step",),
    "actuator, look": ("xtc.manager.cap:CapController.view",),
    "actuator, write": ("xtc.manager.router:ManagedRouter.carry_out",),
    "shield, count": ("xtc.manager.shields:Shields.look",),
    "shield, tend": ("xtc.manager.shields:Shields.tend", "xtc.manager.shields:Shields.claim"),
    "shield, filters of others": ("xtc.manager.shields:Shields.look_ahead",),
    "journal": (
        "xtc.manager.manager:Manager._durable_originals",
        "xtc.manager.manager:Manager._store_lazily",
    ),
    "reports": ("xtc.manager.manager:Manager.reports",),
    "telemetry": ("xtc.daemon.server:Server.publish",),
}


class Sections:
    """Measure the loop's thread between two ticks; functions missing in a version are left out."""

    def __init__(self) -> None:
        self._open: list[float] = []
        """Time of nested calls, for each active call."""
        self._spent: dict[str, float] = defaultdict(float)
        self._ticks: list[dict[str, float]] = []

    def install(self) -> None:
        """Start to measure the functions."""
        for name, places in SECTIONS.items():
            for place in places:
                self._wrap(name, place)

    def end_tick(self) -> None:
        """Record the time since the previous tick."""
        self._ticks.append(dict(self._spent))
        self._spent.clear()

    def means(self, first: int, last: int) -> dict[str, float]:
        """Return the mean seconds a period of each section, over some ticks."""
        ticks = self._ticks[first:last]
        names = [name for name in SECTIONS if any(name in tick for tick in ticks)]
        return {name: sum(t.get(name, 0.0) for t in ticks) / len(ticks) for name in names}

    def _wrap(self, name: str, place: str) -> None:
        module, _, path = place.partition(":")
        holder: Any = import_module(module)
        *classes, attribute = path.split(".")
        for one in classes:
            holder = getattr(holder, one)
        if hasattr(holder, attribute):
            setattr(holder, attribute, self._measured(name, getattr(holder, attribute)))

    def _measured(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        opened, spent, clock = self._open, self._spent, time.perf_counter

        @wraps(function)
        def measured(*args: Any, **options: Any) -> Any:
            opened.append(0.0)
            start = clock()
            try:
                return function(*args, **options)
            finally:
                elapsed = clock() - start
                spent[name] += elapsed - opened.pop()
                if opened:
                    opened[-1] += elapsed

        return measured
