"""Which host each router is on whose contract follows it, by what the hosts report.

A router is where it was until it is not there any more: a host that claims a router which another
host still has gets no contract. So a copy that is left behind by a migration, or a daemon that
lies, takes nothing away.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import NamedTuple

from policer.sight import GONE_AFTER_S
from xtc.wire import Finding, Report

UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


class Move(NamedTuple):
    """A router came to a host."""

    router: str
    """The name of its contract: fleet-wide, or its UUID."""
    host: str
    vr: str
    """Its name on that host."""
    from_host: str | None
    """Where it was before; None where it was not known."""
    from_vr: str


class Whereabouts:
    """Where routers are; the service alone uses it, in one thread."""

    def __init__(self, began: float) -> None:
        self._began = began
        self._followed: frozenset[str] = frozenset()
        self._homes: dict[str, str] = {}
        self._at: dict[str, set[str]] = {}
        """The same by host."""
        self._names: dict[str, str] = {}
        """The name that each router has, or last had, on its host."""
        self._here: dict[str, dict[str, str]] = {}
        """What each host has, by its last telemetry: names there by names of contracts."""
        self._heard: dict[str, float] = {}
        self.claims: frozenset[tuple[str, str]] = frozenset()
        """Routers and hosts that claim them though another host has them."""

    @property
    def homes(self) -> Mapping[str, str]:
        """The host of each router that was ever seen."""
        return self._homes

    def follow(self, routers: Collection[str], homes: Mapping[str, str]) -> None:
        """Take over what contracts follow, and where those were that were not seen yet."""
        self._followed = frozenset(routers)
        kept = {router: home for router, home in self._homes.items() if router in self._followed}
        self._settle({r: home for r, home in homes.items() if r in self._followed} | kept)
        self._here = {host: self._of_us(found) for host, found in self._here.items()}
        self.claims = frozenset(claim for claim in self.claims if claim[0] in self._followed)

    def forget(self, host: str) -> None:
        """Forget a host that was removed, and that any router was there."""
        self._here.pop(host, None)
        self._heard.pop(host, None)
        self._settle({router: home for router, home in self._homes.items() if home != host})
        self.claims = frozenset(claim for claim in self.claims if claim[1] != host)

    def heard(self, host: str, reports: Mapping[str, Report], now: float) -> list[Move]:
        """Take over what a host reports; return which routers came to it."""
        found = dict(present(self._followed, reports))
        self._here[host], self._heard[host] = found, now
        foreign = {r: vr for r, vr in found.items() if self._homes.get(r) != host}
        moves = [self._move(r, host, vr) for r, vr in foreign.items() if not self._stays(r, now)]
        self._names.update({r: vr for r, vr in found.items() if self._homes.get(r) == host})
        claimed = {(router, host) for router in foreign.keys() - {move.router for move in moves}}
        others = {claim for claim in self.claims if claim[1] != host}
        if claimed or len(others) < len(self.claims):
            self.claims = frozenset(others | claimed)
        return moves

    def at(self, host: str) -> Iterator[tuple[str, str]]:
        """Yield the routers of a host: name of the contract, and name there."""
        for router in sorted(self._at.get(host, ())):
            yield router, self._names.get(router, router)

    def _settle(self, homes: dict[str, str]) -> None:
        self._homes, self._at = homes, {}
        for router, home in homes.items():
            self._at.setdefault(home, set()).add(router)
        self._names = {router: vr for router, vr in self._names.items() if router in homes}

    def _of_us(self, found: Mapping[str, str]) -> dict[str, str]:
        return {router: vr for router, vr in found.items() if router in self._followed}

    def _move(self, router: str, host: str, vr: str) -> Move:
        before, name = self._homes.get(router), self._names.get(router, router)
        self._homes[router], self._names[router] = host, vr
        self._at.get(before or "", set()).discard(router)
        self._at.setdefault(host, set()).add(router)
        return Move(router, host, vr, before, name)

    def _stays(self, router: str, now: float) -> bool:
        """Whether a router is still where it was, as far as can be known."""
        home = self._homes.get(router)
        if home is None:
            return False
        heard = self._heard.get(home)
        if heard is None:  # it may just not have spoken yet
            return now - self._began < GONE_AFTER_S
        return now - heard < GONE_AFTER_S and router in self._here[home]


def present(followed: Collection[str], reports: Mapping[str, Report]) -> Iterable[tuple[str, str]]:
    """Yield which followed routers a host has; one with two contracts has that of its UUID."""
    if not followed:
        return
    for vr, report in reports.items():
        if report.finding is Finding.GONE or not report.interfaces:
            continue
        router = next((key for key in (report.uuid.lower(), vr) if key in followed), None)
        if router is not None:
            yield router, vr
