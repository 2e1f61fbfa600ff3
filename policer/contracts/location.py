"""Locates each router that a contract follows, by the reports of the hosts; pure.

A router stays at its host until that host reports it absent or has been silent for long. A host
that claims a router which another host still has gets no contract. So neither a copy left by a
migration nor a false report takes anything away. If a claim succeeded only while the router was
absent or its host silent, the router returns when it shows again at its former host.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from math import inf
from typing import NamedTuple, TypeVar

from xtc.wire import Finding, Report

T = TypeVar("T")
UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
SILENT_S = 30.0
"""Silence of its host after which a router may be elsewhere: twice a lease (15 s), and longer than
a restart of the daemon takes."""
RETURN_S = 600.0
"""A router that left a host returns there if it shows again within this time."""
OFTEN, WITHIN_S = 4, 120.0
"""A router that moved this many times within this time stays where it is, whichever host claims
it."""


class Move(NamedTuple):
    """A router came to a host, or has another name there."""

    router: str
    """The name of its contract: fleet-wide, or its UUID."""
    host: str
    vr: str
    """Its name on that host."""
    from_host: str | None
    """Its previous host, possibly the same; None if unknown."""
    from_vr: str | None
    """Its name there; None if unknown."""

    @property
    def came(self) -> bool:
        """Whether it was not on this host before, as far as is known."""
        return self.from_host != self.host


class Left(NamedTuple):
    """Previous place of a router."""

    host: str
    vr: str | None
    """Its name there; None if unknown."""
    until: float
    """The router returns if it shows there again before this time."""


class Whereabouts:
    """Places of routers; used only by the service, in one thread."""

    def __init__(self, began: float) -> None:
        self._began = began
        self._followed: frozenset[str] = frozenset()
        self._homes: dict[str, str] = {}
        self._at: dict[str, set[str]] = {}
        """The same by host."""
        self._names: dict[str, str] = {}
        """Current or last name of each router on its host."""
        self._here: dict[str, dict[str, str]] = {}
        """Routers of each host by its last telemetry: names there by names of contracts."""
        self._heard: dict[str, float] = {}
        self._left: dict[str, Left] = {}
        """Previous places of the routers that may return."""
        self._silent: dict[str, set[str]] = {}
        """Routers taken from a host that was silent, and still is."""
        self._moved: dict[str, tuple[float, ...]] = {}
        """Recent moves of each router."""
        self._claims: dict[str, dict[str, float]] = {}
        """Routers that each host claims, and since when, though their home is another host."""

    @property
    def homes(self) -> Mapping[str, str]:
        """The host of each router that was ever seen."""
        return self._homes

    def follow(self, routers: Collection[str], homes: Mapping[str, str]) -> None:
        """Take over the routers to follow, and the homes of those that were not seen yet."""
        self._followed = frozenset(routers)
        kept = {r: home for r, home in self._homes.items() if r in self._followed}
        self._settle({r: home for r, home in homes.items() if r in self._followed} | kept)
        self._here = {host: self._of_us(found) for host, found in self._here.items()}
        self._claims = {host: self._of_us(claims) for host, claims in self._claims.items()}
        self._left, self._moved = self._of_us(self._left), self._of_us(self._moved)
        self._silent = {host: lost & self._followed for host, lost in self._silent.items()}

    def correct(self, homes: Mapping[str, str]) -> None:
        """Take over the homes known to the previous leader, unless a router shows at its home."""
        others = {
            router: home
            for router, home in homes.items()
            if self._homes.get(router, home) != home and not self.shows(self._homes[router], router)
        }
        self._settle({**self._homes, **others})
        for router in others:
            self._names.pop(router, None)

    def forget(self, host: str) -> None:
        """Forget a removed host, and all places on it."""
        for known in (self._here, self._heard, self._silent, self._claims):
            known.pop(host, None)
        self._left = {router: left for router, left in self._left.items() if left.host != host}
        self._settle({router: home for router, home in self._homes.items() if home != host})

    def heard(self, host: str, reports: Mapping[str, Report], now: float) -> list[Move]:
        """Take over a host's report; return the routers that came or have another name."""
        found = dict(present(self._followed, reports))
        self._here[host], self._heard[host] = found, now
        for router in self._silent.pop(host, set()) & self._left.keys():
            if self._left[router].host == host:
                self._end_silence(router, found, now)
        moves = [
            self._move(router, host, vr, now)
            for router, vr in found.items()
            if self._may_move(router, host, now) or self._is_renamed(router, host, vr)
        ]
        before = self._claims.get(host, {})
        foreign = (router for router in found if self._homes[router] != host)
        self._claims[host] = {router: before.get(router, now) for router in foreign}
        return moves

    def at(self, host: str) -> Iterator[tuple[str, str]]:
        """Yield the routers of a host: name of the contract, and name there; absent ones first."""
        here = self._here.get(host, {})
        for router in sorted(self._at.get(host, ()), key=lambda router: (router in here, router)):
            yield router, self._names.get(router, router)

    def unnamed(self, host: str) -> Iterator[str]:
        """Yield the UUIDs of a host's routers whose names there are not known yet."""
        for router in self._at.get(host, ()):
            if router not in self._names and UUID.fullmatch(router):
                yield router

    def shows(self, host: str, router: str) -> bool:
        """Whether a host had a router by its last report."""
        return router in self._here.get(host, ())

    def claims(self, until: float) -> Iterator[tuple[str, str]]:
        """Yield routers, and the hosts other than their homes that claim them since an instant."""
        for host, claims in self._claims.items():
            for router, since in claims.items():
                if since <= until and router in self._homes:
                    yield router, host

    def name_on(self, host: str, router: str) -> str | None:
        """Return a router's current or last name on a host; None if unknown."""
        left, here = self._left.get(router), self._here.get(host, {})
        if router not in here and left is not None and left.host == host:
            return left.vr
        return here.get(router) or self._names.get(router)

    def now_at(self, host: str, vr: str) -> tuple[str, str] | None:
        """Return host and name of a router that left a host recently; None if none did."""
        for router, left in self._left.items():
            if (left.host, left.vr) == (host, vr):
                return self._homes[router], self._names.get(router, router)
        return None

    def _settle(self, homes: dict[str, str]) -> None:
        self._homes, self._at = homes, {}
        for router, home in homes.items():
            self._at.setdefault(home, set()).add(router)
        self._names = {router: vr for router, vr in self._names.items() if router in homes}
        self._left = {router: left for router, left in self._left.items() if router in homes}

    def _of_us(self, known: Mapping[str, T]) -> dict[str, T]:
        return {router: value for router, value in known.items() if router in self._followed}

    def _end_silence(self, router: str, found: Collection[str], now: float) -> None:
        """Apply the first report of a silent host to a router that was taken from it."""
        if router in found:
            self._left[router] = self._left[router]._replace(until=now + RETURN_S)
        else:
            del self._left[router]

    def _is_renamed(self, router: str, host: str, vr: str) -> bool:
        return self._homes.get(router) == host and self._names.get(router) != vr

    def _may_move(self, router: str, host: str, now: float) -> bool:
        """Whether a router that a host reports may be moved there."""
        home = self._homes.get(router)
        if home is None or home == host:
            return home is None
        lately = self._moved.get(router, ())
        if len(lately) == OFTEN and now - lately[0] < WITHIN_S:
            return False
        left = self._left.get(router)
        returns = left is not None and left.host == host and now < left.until
        left_home = home in self._here and not self.shows(home, router)
        return returns or left_home or self._is_silent(home, now)

    def _is_silent(self, host: str, now: float) -> bool:
        return now - self._heard.get(host, self._began) >= SILENT_S

    def _move(self, router: str, host: str, vr: str, now: float) -> Move:
        """Move a router to a host, under its name there."""
        move = Move(router, host, vr, self._homes.get(router), self._names.get(router))
        self._names[router] = vr
        if move.came:
            self._homes[router] = host
            self._at.get(move.from_host or "", set()).discard(router)
            self._at.setdefault(host, set()).add(router)
            self._leave(move, now)
        return move

    def _leave(self, move: Move, now: float) -> None:
        """Remember a router's previous place, unless it was there only until it returned."""
        before, home = self._left.pop(move.router, None), move.from_host
        given_back = before is not None and before.host == move.host and now < before.until
        if home is None:
            return
        self._moved[move.router] = (*self._moved.get(move.router, ()), now)[-OFTEN:]
        if given_back:
            return
        is_silent = self._is_silent(home, now)
        until = inf if is_silent else now + RETURN_S
        self._left[move.router] = Left(home, move.from_vr, until)
        if is_silent:
            self._silent.setdefault(home, set()).add(move.router)


def present(followed: Collection[str], reports: Mapping[str, Report]) -> Iterator[tuple[str, str]]:
    """Yield which followed routers a host has; one with two contracts has that of its UUID."""
    if not followed:
        return
    for vr, report in reports.items():
        if report.finding is Finding.GONE or not report.interfaces:
            continue
        router = next((key for key in (report.uuid.lower(), vr) if key in followed), None)
        if router is not None:
            yield router, vr
