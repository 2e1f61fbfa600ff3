"""Fleets for tests of the fleet's file: any that could be entered, and small ones."""

from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import strategies as st

from policer.contracts.contract import DEFAULT_MEASURES, Contract
from policer.contracts.host import Host
from policer.contracts.ladder import Step
from policer.contracts.promised import ANYWHERE
from policer.contracts.schedule import DAYS, Hours
from policer.contracts.tenant import Tenant
from policer.fleetfile.document import Entered

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
HOSTS = ["gold", "silver", "h-7.example.com"]
CLASSES, TENANTS = ["c1", "c.2", "C_3"], ["acme", "t.1"]
ROUTERS = ["r1", "r:2", "host", "contracts", "4f1c0b8e-3a52-4d0c-9d53-0b3c0f7e2a11"]

rates = st.one_of(st.sampled_from([1.0, 999.0, 1000.0, 20e3, 1.5e6, 1e9]), st.floats(1e-3, 1e9))
in_bits = st.builds(
    dict,
    guarantee_bps=st.none() | st.floats(1e3, 1e6),
    ceiling_bps=st.none() | st.sampled_from([50e6, 1.5e9, 1e12]) | st.floats(1e6, 1e12),
    packet_bytes=st.sampled_from([64, 350, 1500]),
)
words = st.text(max_size=40)
windows = st.builds(
    Hours,
    start=st.sampled_from(["00:00", "08:30", "22:00"]),
    end=st.sampled_from(["06:00", "17:45", "23:59"]),
    days=st.lists(st.sampled_from(DAYS), min_size=1, unique=True).map(tuple),
    class_name=st.none() | st.sampled_from(CLASSES),
)
instants = st.none() | st.datetimes(
    datetime(2020, 1, 1),  # noqa: DTZ001  the strategy adds the zone
    datetime(2030, 1, 1),  # noqa: DTZ001
    timezones=st.just(UTC),
)


@st.composite
def terms(draw: st.DrawFn) -> dict[str, Any]:
    """Return terms of a contract or class that contradict nothing."""
    guarantee = draw(st.just(0.0) | rates)
    ceiling = draw(st.none() | rates)
    if ceiling is not None and ceiling < guarantee:
        guarantee, ceiling = ceiling, guarantee
    saved = 0.0 if ceiling is None else draw(st.sampled_from([0.0, 5e3, 0.25]))
    bursty = (guarantee or ceiling or 0.0) > 1
    if draw(st.booleans()):
        sold = {"guarantee_pps": guarantee, "ceiling_pps": ceiling}
    else:
        sold = draw(in_bits)
        saved, bursty = 0.0, False
    return {
        **sold,
        "weight": draw(st.sampled_from([1.0, 2.0, 0.125])),
        "burst_packets": saved,
        "measures": draw(st.sampled_from([DEFAULT_MEASURES, (), (Step.WARN,), tuple(Step)])),
        "dry_run": draw(st.booleans()),
        "punish": draw(st.sampled_from(["never", "when_harming", "always"])),
        "cost": draw(st.sampled_from([1.0, 2.5])),
        "burst": draw(st.none() | st.floats(1, 50)) if bursty else None,
    }


@st.composite
def contracts(draw: st.DrawFn, classes: list[str], tenants: list[str]) -> Contract:
    """Return a contract that names what there is."""
    of_class = draw(st.none() | st.sampled_from(classes)) if classes else None
    begin = draw(instants)
    hours = draw(st.lists(windows, max_size=2).map(tuple))
    named = {one.class_name for one in hours} - {None}
    return Contract(
        **({} if of_class else draw(terms())),
        class_name=of_class,
        valid_from=begin,
        valid_until=None if begin is None else begin + timedelta(seconds=1.5),
        hours=hours if named <= set(classes) else (),
        zone=draw(st.sampled_from(["UTC", "Europe/Berlin"])),
        tenant=draw(st.none() | st.sampled_from(tenants)) if tenants else None,
    )


@st.composite
def fleets(draw: st.DrawFn) -> Entered:
    """Return a fleet that could be entered: its hosts may overcommit."""
    tenants = draw(st.dictionaries(st.sampled_from(TENANTS), st.builds(Tenant, words)))
    classes = draw(st.dictionaries(st.sampled_from(CLASSES), terms().map(lambda t: Contract(**t))))
    names = draw(st.lists(st.sampled_from(HOSTS), unique=True))
    hosts = {name: draw(entries(name)) for name in names}
    keys = st.tuples(st.sampled_from([*names, ANYWHERE]), st.sampled_from(ROUTERS))
    promised = contracts(sorted(classes), sorted(tenants))
    return Entered(tenants, classes, hosts, draw(st.dictionaries(keys, promised, max_size=8)))


def entries(name: str) -> st.SearchStrategy[Host]:
    """Return entries of a host, whose daemon is no other's."""
    return st.builds(
        Host,
        name=st.just(name),
        requests=st.sampled_from([f"ipc:///run/{name}/a", f"ipc:///run/{name}/b"]),
        telemetry=st.just(f"ipc:///run/{name}/t"),
        capacity_pps=rates,
        overcommit=st.just(value=True),
        capacity_source=st.sampled_from(["operator", "model"]),
    )
