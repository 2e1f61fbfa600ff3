"""The fleet as a limited token sees it: what is beyond its reach does not exist; pure.

The visible fields are copied one by one, so new fields elsewhere are hidden until this file copies
them. If a token does not reach a host as a whole, it sees only its own routers: no entry, no
capacity, no sums that include others, and no text of the daemon, which may name others.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TypeVar

import msgspec

from policer.contracts.host import Host
from policer.contracts.overrides import Override, Overrides
from policer.contracts.reach import Reach
from policer.decide.engagement import EngagementState
from policer.decide.state import HostState
from policer.decide.telemetry import HostTelemetry
from policer.fleet.live import Fleet, HostLive
from xtc.wire import Report

T = TypeVar("T")
HIDDEN = "the operator of its host sees what it is"
"""Replaces a daemon's text."""


def tenant_of(live: HostLive | None, vr: str) -> str | None:
    """Return the current tenant of a router; None if it has none."""
    if live is None:
        return None
    contract = live.contracts.get(vr)
    return live.tenants.get(vr) if contract is None else contract.tenant


def reached(live: HostLive, reach: Reach) -> HostLive | None:
    """Return what a token sees of a host; None if it sees nothing."""
    name = live.host.name
    if reach.may_see_host(name):
        return live
    known = {*live.contracts, *live.telemetry.routers}
    own = {vr for vr in known if reach.may_see(name, vr, tenant_of(live, vr))}
    return _part(live, own) if own else None


def _part(live: HostLive, own: set[str]) -> HostLive:
    """Return some routers of a host, without the host."""
    refused = _of(live.refusals, own)
    return HostLive(
        host=Host(live.host.name, requests="", telemetry="", capacity_pps=0.0),
        contracts=_of(live.contracts, own),
        follows=_of(live.follows, own),
        here=frozenset(_of(live.follows, own).values()),
        telemetry=_sight(live.telemetry, own),
        state=_state(live.state, own),
        orders=_of(live.orders, own),
        refusals=dict.fromkeys(refused, HIDDEN),
        kept=_of(live.kept, own),
    )


def _sight(telemetry: HostTelemetry, own: set[str]) -> HostTelemetry:
    reports = {vr: _report(report) for vr, report in _of(telemetry.routers, own).items()}
    return HostTelemetry(heard_at=telemetry.heard_at, tick=telemetry.tick, routers=reports)


def _report(report: Report) -> Report:
    """Return a report without the daemon's text."""
    fields = ("problem", "shield_problem", "floor_problem")
    said = {name: HIDDEN for name in fields if getattr(report, name)}
    return msgspec.structs.replace(report, **said) if said else report


def _state(state: HostState, own: set[str]) -> HostState:
    standing = EngagementState(
        engaged=state.standing.engaged,
        harmed=tuple(vr for vr in state.standing.harmed if vr in own),
    )
    return HostState(at=state.at, standing=standing, routers=_of(state.routers, own))


def _of(values: Mapping[str, T], own: set[str]) -> dict[str, T]:
    return {vr: value for vr, value in values.items() if vr in own}


def without_words(override: Override) -> Override:
    """Return an override without its author and reason, which may name others."""
    return msgspec.structs.replace(override, by="", reason="")


Shown = Callable[[Override], Override]
"""Returns what a token sees of an override within its reach."""


class ReachedFleet(Fleet):
    """A fleet as a limited token sees it, always in its current state."""

    def __init__(self, fleet: Fleet, reach: Reach, shown: Shown = without_words) -> None:
        super().__init__()
        self._fleet, self._reach = fleet, reach
        self.leadership = replace(fleet.leadership, holder="", problem="")
        self.braked_hosts = frozenset(filter(reach.may_see_host, fleet.braked_hosts))
        self.overrides = self._of_overrides(shown)

    def _of_overrides(self, shown: Shown) -> Overrides:
        """Return suspensions of hosts and exemptions of routers; no brake, and no epoch."""
        every, reach = self._fleet.overrides, self._reach
        suspended = {
            host: shown(one) for host, one in every.suspended.items() if reach.may_see_host(host)
        }
        exempt = {
            host: {
                vr: shown(one)
                for vr, one in routers.items()
                if reach.may_see(host, vr, tenant_of(self._fleet.get(host), vr))
            }
            for host, routers in every.exempt.items()
        }
        return Overrides(suspended=suspended, exempt=exempt)

    @property
    def hosts(self) -> Mapping[str, HostLive]:
        """All hosts of which anything is visible."""
        seen = {name: reached(live, self._reach) for name, live in self._fleet.hosts.items()}
        return {name: live for name, live in seen.items() if live is not None}

    def host(self, name: str) -> HostLive:
        """Return one host; raises KeyError if nothing of it is visible."""
        live = self.get(name)
        if live is None:
            raise KeyError(name)
        return live

    def get(self, name: str) -> HostLive | None:
        """Return one host; None if nothing of it is visible."""
        live = self._fleet.get(name)
        return None if live is None else reached(live, self._reach)
