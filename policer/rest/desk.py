"""What every handler works with: the store, the fleet, and how the service was set up."""

from dataclasses import dataclass
from datetime import datetime

from litestar.datastructures import State
from litestar.di import NamedDependency

from policer.fleet import Fleet, HostLive
from policer.rest.gate import Gate
from policer.rest.settings import RestSettings
from policer.rest.slots import Slots
from policer.store import Store


@dataclass(frozen=True, slots=True)
class Desk:
    """Handed to handlers as `desk`."""

    store: Store
    fleet: Fleet
    settings: RestSettings
    streams: Slots

    def live(self, host: str) -> HostLive | None:
        """Return how a host stands; None where the policer has not taken it up yet."""
        return self.fleet.get(host)

    def today(self) -> datetime:
        """Return the time of day."""
        return self.settings.today()

    def now(self) -> float:
        """Return the policer's time."""
        return self.settings.clock()


GivenDesk = NamedDependency[Desk]
GivenGate = NamedDependency[Gate]
"""What handlers take as `desk` and `gate`."""


async def provide_gate(state: State) -> Gate:
    """Hand out the application's gate."""
    gate = state.gate
    assert isinstance(gate, Gate)
    return gate


async def provide_desk(state: State) -> Desk:
    """Hand out the application's desk."""
    desk = state.desk
    assert isinstance(desk, Desk)
    return desk
