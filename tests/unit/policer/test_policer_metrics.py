"""The policer's metrics: what a scrape sees of a fleet, and names as Prometheus wants them."""

import re
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from policer.contracts.contract import Contract
from policer.contracts.host import Host
from policer.contracts.ladder import Punishment, Step
from policer.contracts.overrides import Override, standing
from policer.daemon.metrics import Health, Metrics
from policer.decide.engagement import EngagementState
from policer.decide.evidence import Evidence
from policer.decide.state import HostState, Order, RouterState
from policer.decide.telemetry import GONE_AFTER_S, HostTelemetry
from policer.fleet.compliance import Counted, Kept
from policer.fleet.live import Fleet, HostLive, Leadership
from policer.webhooks.outcomes import OUTCOMES
from xtc.wire import Finding, Mode, Report

HOST = Host("host7", "ipc:///a", "ipc:///b", 100e3)
UNITS = ("seconds", "ratio", "packets_per_second", "bits_per_second", "info", "total")
STATES = {
    "policer_brake_hosts",
    "policer_brake_mode",
    "policer_brake_on",
    "policer_epoch",
    "policer_history_waiting",
    "policer_events_waiting",
    "policer_host_distrusted",
    "policer_host_engaged",
    "policer_host_link_problem",
    "policer_host_overpromised",
    "policer_host_reachable",
    "policer_host_refusals",
    "policer_host_routers",
    "policer_host_routers_held",
    "policer_host_suspended",
    "policer_leadership_known",
    "policer_leading",
    "policer_overrides",
    "policer_routers_punished",
    "policer_settings_last_reload_successful",
    "policer_store_up",
    "policer_vr_punishment_steps",
}


class Clock:
    """Stands still until it is moved."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def report(vr: str, offered: float, throughput: float) -> Report:
    return Report(
        vr=vr,
        active=True,
        mode=Mode.CLOSED_LOOP,
        finding=Finding.NONE,
        setpoint_pps=None,
        throughput_pps=throughput,
        offered_pps=offered,
        cap=None,
        used=None,
        binding=None,
        lease_remaining_s=None,
        sample_age_s=0.1,
        interfaces=(),
    )


def a_live_host(clock: Clock) -> HostLive:
    """Return a host with a flooder that is limited, and a router that misses its guarantee."""
    return HostLive(
        HOST,
        contracts={
            "gold": Contract(60e3),
            "flood": Contract(10e3, measures=(Step.WARN, Step.LIMIT)),
        },
        telemetry=HostTelemetry(
            heard_at=clock.now,
            routers={"gold": report("gold", 60e3, 40e3), "flood": report("flood", 200e3, 10e3)},
            dropped=3,
        ),
        state=HostState(
            at=clock.now,
            standing=EngagementState(engaged=True, shared=0.8, harmed=("gold",)),
            routers={"flood": RouterState(Evidence(guilty=True), Punishment(2, 90.0, guilty=True))},
        ),
        orders={"gold": Order(60e3), "flood": Order(10e3, punishment=True, limit_pps=11e3)},
        refusals={"flood": "vr: no interface"},
    )


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def fleet(clock: Clock) -> Fleet:
    fleet = Fleet()
    fleet.leadership = Leadership(leading=True, epoch=7, holder="me")
    fleet.put(a_live_host(clock))
    return fleet


@pytest.fixture
def metrics(fleet: Fleet, clock: Clock) -> Metrics:
    return Metrics(fleet, clock)


def samples(metrics: Metrics) -> dict[tuple[str, ...], float]:
    """Return every sample by name and values of labels."""
    text = generate_latest(metrics.registry).decode()
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_a_scrape_shows_how_a_host_stands(metrics: Metrics) -> None:
    seen = samples(metrics)
    expected = {
        "reachable": 1,
        "last_heard_seconds": 0,
        "distrusted": 0,
        "link_problem": 0,
        "refusals": 1,
        "engaged": 1,
        "shared_ratio": 0.8,
        "routers": 2,
        "routers_held": 2,
        "capacity_packets_per_second": 100e3,
        "promised_packets_per_second": 70e3,
        "forwarded_packets_per_second": 50e3,
        "offered_packets_per_second": 260e3,
        "telemetry_dropped_total": 3,
    }
    for name, value in expected.items():
        assert seen[f"policer_host_{name}", "host7"] == value, name


def test_a_scrape_shows_what_routers_are_told(metrics: Metrics) -> None:
    seen = samples(metrics)
    assert seen["policer_vr_setpoint_packets_per_second", "host7", "gold"] == 60e3
    assert seen["policer_vr_limit_packets_per_second", "host7", "flood"] == 11e3
    assert ("policer_vr_limit_packets_per_second", "host7", "gold") not in seen
    assert seen["policer_vr_punishment_steps", "host7", "flood"] == 2
    assert ("policer_vr_punishment_steps", "host7", "gold") not in seen
    steps = {step: seen["policer_routers_punished", step.value] for step in Step}
    assert steps == {Step.WARN: 0, Step.LOWER: 0, Step.LIMIT: 1, Step.PAUSE: 0, Step.STOP: 0}


def test_a_host_that_is_gone_is_shown_as_gone(metrics: Metrics, clock: Clock) -> None:
    clock.now += GONE_AFTER_S + 1
    seen = samples(metrics)
    assert seen["policer_host_reachable", "host7"] == 0
    assert seen["policer_host_last_heard_seconds", "host7"] == GONE_AFTER_S + 1


def test_a_host_that_was_never_heard_has_no_age(fleet: Fleet, metrics: Metrics) -> None:
    fleet.put(HostLive(HOST))
    seen = samples(metrics)
    assert ("policer_host_last_heard_seconds", "host7") not in seen
    assert seen["policer_host_reachable", "host7"] == 0


def test_a_host_that_lies_is_shown_as_such(fleet: Fleet, metrics: Metrics) -> None:
    fleet.put(
        HostLive(
            HOST, telemetry=HostTelemetry(heard_at=100.0, distrust="a router is reported twice")
        )
    )
    assert samples(metrics)["policer_host_distrusted", "host7"] == 1


def test_the_brake_is_shown(fleet: Fleet, metrics: Metrics) -> None:
    assert samples(metrics)["policer_brake_on",] == 0
    fleet.braked = True
    assert samples(metrics)["policer_brake_on",] == 1


def test_overrides_are_counted_by_kind_and_no_label_is_an_operators(
    fleet: Fleet, metrics: Metrics
) -> None:
    fleet.put(HostLive(HOST))
    seen = samples(metrics)
    assert seen["policer_brake_mode", "automatic"] == 1
    assert seen["policer_host_suspended", "host7"] == 0
    fleet.overrides = standing(
        [
            Override("brake", "off", reason="a drill"),
            Override("suspension", "suspended", "host7"),
            Override("suspension", "suspended", "gone"),
            *(Override("exemption", "exempt", "host7", f"r{n}") for n in range(99)),
        ],
        datetime(2026, 3, 1, tzinfo=UTC),
    )
    seen = samples(metrics)
    assert [seen["policer_brake_mode", mode] for mode in ("automatic", "off", "on")] == [0, 1, 0]
    assert seen["policer_overrides", "exemption"] == 99
    assert seen["policer_overrides", "suspension"] == 2
    assert seen["policer_host_suspended", "host7"] == 1
    labels = {key[1] for key in seen if "overrid" in key[0] or "brake_mode" in key[0]}
    assert len(labels) == 4 + 3
    assert ("policer_host_suspended", "gone") not in seen


def test_who_leads_is_shown(fleet: Fleet, metrics: Metrics) -> None:
    fleet.leadership = Leadership(leading=True, epoch=7, holder="me")
    seen = samples(metrics)
    assert (seen["policer_leading",], seen["policer_epoch",]) == (1, 7)
    fleet.leadership = Leadership(problem="locked")
    seen = samples(metrics)
    assert (seen["policer_leading",], seen["policer_leadership_known",]) == (0, 0)


# --- what is counted


def look_for(metrics: Metrics, clock: Clock, seconds: float, health: Health = Health()) -> None:  # noqa: B008  a frozen value
    """Look once a second for so long, while the host is heard."""
    for _ in range(int(seconds)):
        clock.now += 1
        metrics.look(health)


def missed(metrics: Metrics) -> float | None:
    return samples(metrics).get(("policer_vr_guarantee_missed_seconds_total", "host7", "gold"))


def test_seconds_without_a_guarantee_are_counted(
    fleet: Fleet, metrics: Metrics, clock: Clock
) -> None:
    metrics.look(Health())
    look_for(metrics, clock, 4)
    assert missed(metrics) == pytest.approx(4)
    well = HostLive(HOST, {"gold": Contract(60e3)}, telemetry=HostTelemetry(heard_at=clock.now))
    fleet.put(well)
    look_for(metrics, clock, 4)
    assert missed(metrics) == pytest.approx(4)


def test_a_router_that_is_there_by_another_name_is_forgotten_by_its_old_one(
    fleet: Fleet, metrics: Metrics, clock: Clock
) -> None:
    """A host that renames a followed router with every tick would grow a scrape without end."""
    metrics.look(Health())
    for number in range(5):
        live = a_live_host(clock)
        name = f"gold{number}"
        reports = {name: report(name, 60e3, 40e3)}
        fleet.put(
            replace(
                live,
                contracts={name: Contract(60e3)},
                telemetry=replace(live.telemetry, routers=reports),
                state=replace(live.state, standing=EngagementState(harmed=(name,))),
            )
        )
        look_for(metrics, clock, 1)
    assert list(metrics.missed) == [("host7", "gold4")]


def test_one_that_does_not_lead_counts_no_seconds(
    fleet: Fleet, metrics: Metrics, clock: Clock
) -> None:
    """Two policers would count each second twice, and one that was overtaken for ever."""
    metrics.look(Health())
    look_for(metrics, clock, 2)
    fleet.leadership = Leadership(epoch=8, holder="other")
    look_for(metrics, clock, 2)
    assert missed(metrics) == pytest.approx(2)


def test_seconds_that_nobody_saw_are_not_counted(metrics: Metrics, clock: Clock) -> None:
    metrics.look(Health())
    clock.now += 3600  # the machine was suspended
    metrics.look(Health())
    assert missed(metrics) is None
    clock.now += GONE_AFTER_S - 1  # heard last before that
    metrics.look(Health())
    assert missed(metrics) is None


def test_a_host_that_was_removed_is_forgotten(fleet: Fleet, metrics: Metrics, clock: Clock) -> None:
    metrics.look(Health())
    look_for(metrics, clock, 2)
    fleet.put_all({})
    look_for(metrics, clock, 1)
    assert missed(metrics) is None


def test_time_without_a_database_is_counted(metrics: Metrics, clock: Clock) -> None:
    metrics.look(Health())
    look_for(metrics, clock, 3, Health(store_ok=False, events_waiting=9, events_dropped=2))
    seen = samples(metrics)
    assert seen["policer_store_failed_seconds_total",] == pytest.approx(3)
    assert seen["policer_store_up",] == 0
    assert (seen["policer_events_waiting",], seen["policer_events_dropped_total",]) == (9, 2)


def test_rounds_that_failed_are_counted_from_nothing_on(fleet: Fleet, metrics: Metrics) -> None:
    """A counter that begins at 1 would set off no alert: `increase` sees no change."""
    assert samples(metrics)["policer_rounds_failed_total", "host7"] == 0
    fleet.put(HostLive(HOST, rounds_failed=2))
    assert samples(metrics)["policer_rounds_failed_total", "host7"] == 2


def test_a_scrape_shows_how_well_contracts_were_kept(
    metrics: Metrics, fleet: Fleet, clock: Clock
) -> None:
    sums = Kept(90.0, Counted(700, 80, 9), Counted(300, 20, 1.5))
    live = replace(a_live_host(clock), kept={"gold": sums, "free": sums})
    fleet.put(live)
    seen = samples(metrics)
    assert seen["policer_vr_over_promise_packets_total", "host7", "gold"] == 300
    assert seen["policer_vr_under_promise_packets_total", "host7", "gold"] == 20
    assert seen["policer_vr_breach_seconds_total", "host7", "gold"] == 1.5
    without = (
        ("policer_vr_breach_seconds_total", "host7", "free"),
        (
            "policer_vr_breach_seconds_total",
            "host7",
            "flood",
        ),
    )
    assert not any(key in seen for key in without)  # no contract; a daemon that does not count


def test_requests_are_measured_and_streams_are_not(metrics: Metrics) -> None:
    metrics.answered("GET", "/v1/hosts", 200, 0.01)
    metrics.answered("GET", "/v1/events/stream", 200, 3600.0)
    name = "policer_rest_request_duration_seconds_count"
    counts = {key: value for key, value in samples(metrics).items() if key[0] == name}
    assert counts == {(name, "GET", "/v1/hosts", "200"): 1}


def test_names_follow_the_rules(metrics: Metrics) -> None:
    for family in metrics.registry.collect():
        assert re.fullmatch(r"policer_[a-z][a-z0-9_]*", family.name)
        assert family.documentation
        ending = family.name if family.type != "counter" else f"{family.name}_total"
        assert ending in STATES or ending.endswith(UNITS), ending


def test_what_came_of_attempts_is_counted_by_so_many_labels_and_no_more(metrics: Metrics) -> None:
    metrics.tried("timeout")
    metrics.dead_letters.inc()
    seen = samples(metrics)
    counted = {key[1]: value for key, value in seen.items() if "attempts_total" in key[0]}
    assert counted == dict.fromkeys(OUTCOMES, 0.0) | {"timeout": 1.0}
    assert seen["policer_webhook_dead_letters_total",] == 1.0


def test_history_that_waits_or_is_lost_is_shown(metrics: Metrics, clock: Clock) -> None:
    look_for(metrics, clock, 2, Health(history_waiting=7, history_dropped=3))
    seen = samples(metrics)
    assert seen["policer_history_waiting",] == 7
    assert seen["policer_history_dropped_total",] == 3
