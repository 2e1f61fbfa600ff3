"""Context of every handler: the store, the fleet, and the settings of the service."""

from dataclasses import dataclass, replace
from datetime import datetime

from litestar.datastructures import State
from litestar.di import NamedDependency
from litestar.types import Scope

from policer.fleet.limited import ReachedFleet, tenant_of
from policer.fleet.live import Fleet, HostLive
from policer.rest.access.gate import Gate
from policer.rest.access.settings import RestSettings
from policer.rest.access.slots import Slots
from policer.store import ReachedStore, Requester, Store, TokenRow


@dataclass(frozen=True, slots=True)
class Context:
    """Passed to handlers as `context`."""

    store: Store
    fleet: Fleet
    settings: RestSettings
    streams: Slots

    def live(self, host: str) -> HostLive | None:
        """Return the state of a host; None if the policer has not started it yet."""
        return self.fleet.get(host)

    def today(self) -> datetime:
        """Return the time of day."""
        return self.settings.today()

    def now(self) -> float:
        """Return the policer's time."""
        return self.settings.clock()

    def of(self, token: TokenRow) -> "Context":
        """Return the context limited to what a token may see."""
        if not token.reach.limited:
            return self
        requester = Requester(
            token.id,
            token.reach,
            self._tenant_of,
            self._reported,
            self._unclear,
            self.fleet.located,
            self._seen_on,
        )
        fleet = ReachedFleet(self.fleet, token.reach, requester.override)
        return replace(self, store=ReachedStore(self.store, requester), fleet=fleet)

    def _tenant_of(self, host: str, vr: str) -> str | None:
        return tenant_of(self.fleet.get(host), vr)

    def _seen_on(self, router: str) -> str | None:
        having = self.fleet.having(router, self.now())
        return having[0] if len(having) == 1 else None

    def _reported(self, host: str, vr: str) -> bool:
        live = self.fleet.get(host)
        return live is not None and vr in live.telemetry.routers

    def _unclear(self, host: str, vr: str) -> bool:
        live = self.fleet.get(host)
        if live is None:  # the policer has just begun
            return True
        report = live.telemetry.routers.get(vr)
        return bool(live.unnamed) if report is None else report.uuid.lower() in live.unnamed


GivenDesk = NamedDependency[Context]
GivenGate = NamedDependency[Gate]
"""Parameters `context` and `gate` of handlers."""


async def provide_gate(state: State) -> Gate:
    """Provide the application's gate."""
    gate = state.gate
    assert isinstance(gate, Gate)
    return gate


async def provide_context(state: State, scope: Scope) -> Context:
    """Provide the application's context, limited to what the token may see."""
    context, requester = state.context, scope.get("user")
    assert isinstance(context, Context)
    return context.of(requester) if isinstance(requester, TokenRow) else context
