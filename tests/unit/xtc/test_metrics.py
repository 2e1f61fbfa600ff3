"""Metrics: what a scrape sees, and names as Prometheus wants them."""

import re
import urllib.request

import msgspec
import pytest
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from common.errors import ConfigError
from xtc.daemon.metrics import Metrics
from xtc.modes import Finding, Mode
from xtc.wire import HostDrops, Report

HELD = Report(
    vr="edge1",
    active=True,
    mode=Mode.CLOSED_LOOP,
    finding=Finding.NONE,
    setpoint_pps=20e3,
    throughput_pps=19e3,
    offered_pps=90e3,
    cap=0.25,
    used=0.24,
    binding=True,
    lease_remaining_s=60.0,
    sample_age_s=0.1,
    interfaces=("vif7.0",),
)
UNITS = ("seconds", "ratio", "packets_per_second", "bits_per_second", "info", "total")
STATES = {
    "xtc_libvirt_up",
    "xtc_listening",
    "xtc_mode",
    "xtc_finding",
    "xtc_vr_capped",
    "xtc_vr_cpu_weight",
    "xtc_vr_floor_problem",
    "xtc_vr_observing",
    "xtc_vr_problem",
    "xtc_journal_writable",
    "xtc_config_last_reload_successful",
}


@pytest.fixture
def metrics() -> Metrics:
    metrics = Metrics()
    metrics.show((HELD,))
    metrics.configured(b"{}")
    return metrics


def samples(metrics: Metrics) -> dict[tuple[str, str], float]:
    text = generate_latest(metrics.registry).decode()
    return {
        (sample.name, sample.labels.get("mode", "")): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_a_scrape_shows_the_latest_report(metrics: Metrics) -> None:
    seen = samples(metrics)
    assert seen["xtc_vr_throughput_packets_per_second", ""] == 19e3
    assert seen["xtc_vr_control_error_packets_per_second", ""] == 1e3
    assert seen["xtc_vr_cap_ratio", ""] == 0.25
    assert seen["xtc_vr_capped", ""] == 1
    assert seen["xtc_vr_problem", ""] == 0
    assert seen["xtc_mode", "closed_loop"] == 1
    assert seen["xtc_mode", "hold"] == 0


def test_what_was_promised_and_not_kept_is_counted(metrics: Metrics) -> None:
    assert "xtc_vr_breach_seconds_total" not in {name for name, _ in samples(metrics)}
    kept = {"over_promise_packets": 7.0, "under_promise_packets": 0.0, "breach_seconds": 2.5}
    metrics.show((msgspec.structs.replace(HELD, **kept),))
    seen = samples(metrics)
    assert seen["xtc_vr_over_promise_packets_total", ""] == 7
    assert seen["xtc_vr_under_promise_packets_total", ""] == 0
    assert seen["xtc_vr_breach_seconds_total", ""] == 2.5
    assert ("xtc_vr_over_promise_bits_total", "") not in seen
    bits = {"over_promise_bits": 8e3, "under_promise_bits": 0.0}
    metrics.show((msgspec.structs.replace(HELD, **bits),))
    assert samples(metrics)["xtc_vr_over_promise_bits_total", ""] == 8e3


def test_a_router_that_is_held_in_bits_has_its_error_in_bits(metrics: Metrics) -> None:
    in_bits = {"setpoint_pps": None, "setpoint_bps": 50e6, "throughput_bps": 48e6}
    metrics.show((msgspec.structs.replace(HELD, **in_bits, offered_bps=60e6),))
    seen = samples(metrics)
    assert seen["xtc_vr_setpoint_bits_per_second", ""] == 50e6
    assert seen["xtc_vr_throughput_bits_per_second", ""] == 48e6
    assert seen["xtc_vr_offered_bits_per_second", ""] == 60e6
    assert seen["xtc_vr_control_error_bits_per_second", ""] == 2e6
    assert seen["xtc_vr_throughput_packets_per_second", ""] == 19e3
    for name in ("setpoint", "control_error"):
        assert (f"xtc_vr_{name}_packets_per_second", "") not in seen


def test_names_follow_the_rules(metrics: Metrics) -> None:
    for family in metrics.registry.collect():
        assert re.fullmatch(r"xtc_[a-z][a-z0-9_]*", family.name)
        assert "percent" not in family.name
        assert family.documentation
        ending = family.name if family.type != "counter" else f"{family.name}_total"
        assert ending in STATES or ending.endswith(UNITS), ending


def test_an_uncapped_router_has_no_cap_rather_than_a_cap_of_nothing(metrics: Metrics) -> None:
    metrics.show(
        (Report(**{**{f: getattr(HELD, f) for f in HELD.__struct_fields__}, "cap": None}),)
    )
    seen = samples(metrics)
    assert ("xtc_vr_cap_ratio", "") not in seen
    assert seen["xtc_vr_capped", ""] == 0


def test_what_is_not_known_of_the_host_s_drops_has_no_sample(metrics: Metrics) -> None:
    cards, backlog = (f"xtc_host_{of}_drops_packets_per_second" for of in ("card", "backlog"))
    value = metrics.registry.get_sample_value
    assert value(backlog) is None
    metrics.drops = HostDrops({"eth0": 7.0, "eth1": 0.0}, None)
    assert value(cards, {"interface": "eth0"}) == 7.0
    assert value(cards, {"interface": "eth1"}) == 0.0
    assert value(backlog) is None
    metrics.drops = HostDrops({}, 0.0)
    assert value(cards, {"interface": "eth0"}) is None
    assert value(backlog) == 0.0


def test_one_configuration_is_in_force(metrics: Metrics) -> None:
    metrics.configured(b"other")
    families = {family.name: family for family in metrics.registry.collect()}
    assert len(families["xtc_config_hash_info"].samples) == 1


def test_metrics_are_served(metrics: Metrics) -> None:
    server = metrics.listen("127.0.0.1:0")
    try:
        with urllib.request.urlopen(
            f"http://127.0.0.1:{server.server_port}/metrics", timeout=5
        ) as answer:
            assert b'xtc_vr_cap_ratio{vr="edge1"} 0.25' in answer.read()
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize(
    "address", ["", "9167", ":9167", "localhost:", "localhost:http", "127.0.0.1:99999"]
)
def test_what_is_no_address_is_refused(metrics: Metrics, address: str) -> None:
    with pytest.raises(ConfigError) as caught:
        metrics.listen(address)
    assert (caught.value.where, caught.value.fix) == ("metrics.listen", "127.0.0.1:9167")


def test_an_address_that_is_taken_is_refused(metrics: Metrics) -> None:
    server = metrics.listen("127.0.0.1:0")
    try:
        with pytest.raises(ConfigError, match="in use"):
            metrics.listen(f"127.0.0.1:{server.server_port}")
    finally:
        server.shutdown()
        server.server_close()
