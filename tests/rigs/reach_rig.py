"""A fleet of two hosts and three tenants, with tokens that reach parts of it.

What a token must not see has words of its own here, so that a test can look for them in answers.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from rest_rig import Rig, opened, report

from policer.actor import Actor
from policer.contracts.contract import Contract
from policer.contracts.host import Host
from policer.contracts.ladder import Punishment, Step
from policer.contracts.overrides import Override, standing
from policer.contracts.promised import ANYWHERE
from policer.contracts.reach import Reach
from policer.contracts.tenant import Tenant
from policer.decide.evidence import Evidence
from policer.decide.state import HostState, Order, RouterState
from policer.store import Event, PunishmentRow

EDGE = Host("edge-1", "ipc:///run/edgeway/m", "ipc:///run/edgeway/t", capacity_pps=123_457)
CORE = Host("core-9", "ipc:///run/coreway/m", "ipc:///run/coreway/t", capacity_pps=765_433)
ACME = Contract(guarantee_pps=20_000, tenant="acme")
BETA = Contract(guarantee_pps=31_313, tenant="beta")
BEFORE = Contract(guarantee_pps=41_414, tenant="gamma")
OTHER = Contract(guarantee_pps=17_171)
SOON = datetime.now(UTC) + timedelta(days=1)
BOSS = Actor("bigboss", "b055b055b055", "203.0.113.99")
REACHES = {
    "tenant": Reach(tenants=("acme",)),
    "router": Reach(routers=("edge-1/acme-*",)),
    "both": Reach(hosts=("edge-*",), tenants=("acme", "gone")),
    "host": Reach(hosts=("edge-?",)),
    "nothing": Reach(tenants=("none-such",)),
}
_OF_ALL = (
    *("bigboss", "b055b055b055", "203.0.113.99", "core-9", "765433", "coreway", "beta-2"),
    *("roaming-9", "away-9", "vr-9", "lost-9", "velvet-9", "61616", "idle-9", "71717", "hushhush"),
)
_OF_PARTS = ("beta", "31313", "free-1", "17171", "123457", "edgeway", "secretly", "other-1")
SECRETS = {
    "tenant": (*_OF_ALL, *_OF_PARTS, "gamma", "41414"),
    "router": (*_OF_ALL, *_OF_PARTS),
    "both": (*_OF_ALL, *_OF_PARTS, "gamma", "41414"),
    "host": _OF_ALL,
    "nothing": (*_OF_ALL, *_OF_PARTS, "acme", "edge-1"),
}
"""What each token must never be told."""


@contextmanager
def scene(where: Path | str, **settings: Any) -> Iterator[Rig]:
    """Open a service on that fleet; its secrets are of these tokens too."""
    with opened(where, rate_burst=1e9, stream_life_s=0.0, **settings) as rig:
        _enter(rig)
        _happen(rig)
        made = dict(rig.secrets)
        for name, reach in REACHES.items():
            made[name] = rig.store.tokens.add(name, ["operate"], None, BOSS, reach)[1]
        rig.secrets = made
        yield rig


def _enter(rig: Rig) -> None:
    for host in (EDGE, CORE):
        rig.store.hosts.add(host, BOSS)
    for tenant in ("acme", "beta", "gamma"):
        rig.store.tenants.put(tenant, Tenant(), None, BOSS)
    put = rig.store.contracts.put
    put("edge-1", "acme-1", BEFORE, None, BOSS)  # it was another tenant's before
    put("edge-1", "acme-1", ACME, 1, BOSS)
    put("edge-1", "acme-2", ACME, None, BOSS)
    put("edge-1", "beta-1", BETA, None, BOSS)
    put("edge-1", "other-1", OTHER, None, BOSS)
    put("core-9", "beta-2", BETA, None, BOSS)
    rig.store.contracts.remove("edge-1", "acme-2", 1, BOSS)
    _share(rig)


def _share(rig: Rig) -> None:
    """Make classes, and contracts of another tenant that follow routers; one was never seen."""
    rig.store.classes.put("velvet-9", Contract(guarantee_pps=61_616), None, BOSS)
    rig.store.classes.put("idle-9", Contract(guarantee_pps=71_717), None, BOSS)
    for router in ("roaming-9", "away-9", "lost-9"):
        roams = Contract(class_name="velvet-9", tenant="beta")
        rig.store.contracts.put(ANYWHERE, router, roams, None, BOSS)
    rig.store.homes.set({"roaming-9": "core-9", "away-9": "core-9"}, 0)


def _override(rig: Rig) -> None:
    """Override what there is, for reasons that nobody else is told."""
    for wanted in (
        Override("brake", "on", reason="hushhush of core-9"),
        Override("suspension", "suspended", "core-9", reason="hushhush"),
        Override("suspension", "suspended", "edge-1", reason="hushhush"),
        Override("exemption", "exempt", "edge-1", "acme-1", until=SOON, reason="hushhush"),
        Override("exemption", "exempt", "edge-1", "beta-1", until=SOON, reason="hushhush"),
        Override("exemption", "exempt", "core-9", "beta-2", until=SOON, reason="hushhush"),
    ):
        version = rig.store.overrides.brake().version if wanted.kind == "brake" else None
        rig.store.overrides.put(wanted, version, BOSS)
    rig.fleet.overrides = standing(rig.store.overrides.all(), datetime.now(UTC))
    rig.fleet.braked, rig.fleet.counted = True, {"core-9": SOON}


def _happen(rig: Rig) -> None:
    _override(rig)
    guilty = RouterState(
        Evidence((True,), guilty=True), Punishment(2, 990.0, guilty=True, step=Step.LOWER)
    )
    names = ("acme-1", "beta-1", "other-1")
    rig.show(
        EDGE,
        *(report(vr, 1_000.0, 900.0) for vr in (*names, "free-1")),
        contracts={"acme-1": ACME, "beta-1": BETA, "other-1": OTHER},
        state=HostState(at=1000.0, routers=dict.fromkeys(names, guilty)),
        orders=dict.fromkeys(names, Order(900.0)),
        refusals=dict.fromkeys(names, "vr: beta-1 secretly has its interface"),
        link_problem="edgeway: secretly gone",
    )
    rig.show(
        CORE,
        *(report(vr, 1_000.0) for vr in ("beta-2", "roaming-9", "vr-9")),
        contracts={"beta-2": BETA, "roaming-9": BETA, "vr-9": BETA},
        follows={"roaming-9": "roaming-9", "vr-9": "away-9"},
        state=HostState(at=1000.0, routers={"beta-2": guilty}),
        refusals={"beta-2": "no"},
    )
    rig.fleet.braked_hosts = frozenset({"core-9", "edge-1"})
    _punish(rig)
    words = "beta-1 is secretly in the way"
    rig.store.events.add(
        [
            Event("", "brake", "of core-9"),
            Event("core-9", "engaged", words),
            Event("core-9", "punished", "warn", "beta-2", tenant="beta"),
            Event("edge-1", "link", "edgeway: secretly gone"),
            Event("edge-1", "refused", words, "acme-1", tenant="acme"),
            Event("edge-1", "punished", "lower", "acme-1", tenant="acme"),
            Event("edge-1", "pardoned", f"by {BOSS}", "acme-1", str(BOSS), tenant="acme"),
            Event("edge-1", "punished", "warn", "beta-1", tenant="beta"),
            Event("edge-1", "shielded", "up", "free-1"),
            Event("edge-1", "moved", "it came from core-9", "other-1"),
            Event("edge-1", "twice", "it is still on core-9", "other-1"),
        ]
    )


def _punish(rig: Rig) -> None:
    since = datetime(2026, 1, 1, tzinfo=UTC)
    places = [("edge-1", vr) for vr in ("acme-1", "beta-1", "other-1")] + [("core-9", "beta-2")]
    rows = [PunishmentRow(*one, height=1, guilty=True, since=since, step="warn") for one in places]
    rig.store.punishments.set(rows, [])
