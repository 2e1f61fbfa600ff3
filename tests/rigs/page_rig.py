"""A fleet with a real store and real rounds, made of what daemons would say; time is told."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from support.stores import hurried, with_tables

from policer.contracts.contract import Contract
from policer.contracts.host import Host
from policer.contracts.overrides import excused, standing
from policer.contracts.reach import UNLIMITED, Reach
from policer.decide.round import decide_round
from policer.decide.state import HostState, HostView, Policy
from policer.decide.telemetry import HostTelemetry, seen
from policer.fleet.inbox import Inbox
from policer.fleet.live import Fleet, HostLive, Leadership
from policer.store import Event, PunishmentRow, open_store
from xtc.modes import Finding, Mode
from xtc.wire import Report, Telemetry

INJECTION = "<img src=x onerror=\"document.title='bad'\"><script>document.title='bad'</script>"
"""What a daemon's words would be if it meant harm."""


def report(vr: str, throughput: float, offered: float, setpoint: float | None = None) -> Report:
    """Return what a daemon says of a healthy router; rates in packets/s."""
    return Report(
        vr=vr,
        active=setpoint is not None,
        mode=Mode.CLOSED_LOOP if setpoint is not None else Mode.RELEASED,
        finding=Finding.NONE,
        setpoint_pps=setpoint,
        throughput_pps=throughput,
        offered_pps=offered,
        cap=None if setpoint is None else setpoint / 100e3,
        used=0.2,
        binding=setpoint is not None,
        lease_remaining_s=None if setpoint is None else 12.0,
        sample_age_s=0.1,
        interfaces=("vif1.0", "vif1.1"),
    )


class Fleetwork:
    """The fleet as the policer's own rounds make it of what daemons say; its clock is told."""

    def __init__(self, folder: Path) -> None:
        self.store = hurried(open_store(with_tables(folder / "policer.db")))
        self.fleet, self.inbox, self.now = Fleet(), Inbox(), 1000.0
        self.fleet.leadership = Leadership(leading=True, epoch=7, holder="policer-a")
        self._sights: dict[str, HostTelemetry] = {}
        self._states: dict[str, HostState] = {}
        self.said: dict[str, tuple[Report, ...]] = {}
        """What each host's daemon says with every tick; a host that is not there is silent."""
        self.follows: dict[str, dict[str, str]] = {}
        """Of each host, names of the contracts that followed routers there, by router."""
        self.refusals: dict[str, dict[str, str]] = {}
        """What each host's daemon does not carry out."""

    def add_host(self, name: str, capacity: float = 100e3) -> None:
        """Enter a host that has not said anything yet."""
        requests, telemetry = f"ipc:///run/{name}/requests", f"ipc:///run/{name}/telemetry"
        self.store.hosts.add(Host(name, requests, telemetry, capacity), "anna")

    def promise(self, host: str, vr: str, **terms: Any) -> None:
        """Enter a contract."""
        self.store.contracts.put(host, vr, Contract(**terms), None, "anna")

    def tick(self, times: int = 1) -> None:
        """Let seconds pass: telemetry in, a round for each host."""
        for _ in range(times):
            self.now += 1.0
            self.follow()
            contracts = self.store.contracts.all()
            for stored in self.store.hosts.all():
                promised = contracts.get(stored.value.name, {})
                self._round(stored.value, {vr: kept.value for vr, kept in promised.items()})
        self._keep_punishments()

    def follow(self) -> None:
        """Show what operators override, as the service does several times a second."""
        self.fleet.overrides = standing(self.store.overrides.all(), datetime.now(UTC))

    def _round(self, host: Host, contracts: dict[str, Contract]) -> None:
        telemetry = self._sights.get(host.name, HostTelemetry())
        if host.name in self.said:
            message = Telemetry(self.now, int(self.now), self.said[host.name])
            telemetry = seen(telemetry, message, self.now, host.capacity_pps)
        exempt = self.fleet.overrides.exempt_on(host.name, {})
        view = HostView(host.capacity_pps, excused(contracts, exempt), telemetry)
        done = decide_round(self.now, view, self._states.get(host.name, HostState()), Policy())
        self._sights[host.name], self._states[host.name] = telemetry, done.state
        self.store.events.add([Event(host.name, n.kind, n.words, n.vr) for n in done.notes])
        live = HostLive(host, contracts, telemetry=telemetry, state=done.state, orders=done.orders)
        live = replace(live, follows=self.follows.get(host.name, {}))
        self.fleet.put(replace(live, refusals=self.refusals.get(host.name, {})))

    def _keep_punishments(self) -> None:
        """Store who is punished, as the service does for the next leader."""
        rows = [
            PunishmentRow(
                live.host.name,
                vr,
                state.punishment.height,
                state.punishment.guilty,
                self.store.events.page(None, 1)[0].at,
                live.contracts[vr].measures[state.punishment.height - 1],
            )
            for live in self.fleet.hosts.values()
            for vr, state in live.state.routers.items()
            if state.punishment.height
        ]
        self.store.punishments.set(rows, set(self.store.punishments.all()) - _keys(rows))

    def token(self, scope: str = "operate", name: str = "ops", reach: Reach = UNLIMITED) -> str:
        """Return the secret of a new token."""
        return self.store.tokens.add(name, [scope], None, "anna", reach)[1]


def _keys(rows: list[PunishmentRow]) -> set[tuple[str, str]]:
    return {(row.host, row.vr) for row in rows}
