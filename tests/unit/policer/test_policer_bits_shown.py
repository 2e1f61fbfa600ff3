"""Contracts in bits/s over REST, on the command line and in metrics: what was sold is shown."""

from typing import TYPE_CHECKING

import msgspec
import pytest
from prometheus_client import generate_latest
from rest_rig import GOLD, report

from policer.contracts.contract import Contract
from policer.daemon.metrics import Metrics
from policer.decide.state import Order
from policer.decide.telemetry import HostTelemetry
from policer.fleet.compliance import Counted, Kept
from policer.fleet.live import Fleet, HostLive
from policer.rest.answers.telemetry import telemetry
from xtc.wire import Report

if TYPE_CHECKING:
    from policer_shell_rig import Shell
    from rest_rig import Rig

pytest_plugins = ["policer_shell_rig"]

SOLD = Contract(guarantee_bps=80e6, ceiling_bps=160e6, packet_bytes=1000)
TOLD = Order(setpoint_bps=160e6, burst=4e6)
KEPT = Kept(900.0, Counted(), Counted(3.0, 0.0, 1.5, 4e6, 5e3))


def held() -> Report:
    in_bits = {"throughput_bps": 160e6, "offered_bps": 200e6, "setpoint_bps": 160e6}
    return msgspec.structs.replace(report("r1", 20e3), active=True, **in_bits)


def show(rig: "Rig") -> None:
    """Let a router be held in bits/s."""
    rig.store.contracts.put("gold", "r1", SOLD, 1, "test")
    rig.show(GOLD, held(), contracts={"r1": SOLD}, orders={"r1": TOLD}, kept={"r1": KEPT})


# --- REST


def test_a_contract_in_bits_is_put_and_read(rig: "Rig") -> None:
    client = rig.client()
    path = "/v1/hosts/gold/contracts/r2"
    body = {"guarantee_bps": 80e6, "ceiling_bps": 160e6, "packet_bytes": 1000}
    put = client.put(path, json=body, headers={"If-None-Match": "*"})
    assert put.status_code == 201
    read = client.get(path)
    kept = read.json()["contract"]
    assert {name: kept[name] for name in body} == body
    assert (kept["guarantee_pps"], kept["ceiling_pps"]) == (0.0, None)
    again = client.put(path, json=kept, headers={"If-Match": read.headers["ETag"]})
    assert again.status_code == 200  # what was read can be put back


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"guarantee_pps": 1.0, "guarantee_bps": 1e6}, "guarantee_bps"),
        ({"ceiling_pps": 1.0, "ceiling_bps": 1e6}, "ceiling_bps"),
        ({"guarantee_bps": 2e6, "ceiling_bps": 1e6}, "ceiling_bps"),
        ({"guarantee_bps": 1e12}, "guarantee_bps"),
        ({"guarantee_bps": 1.0}, "guarantee_bps"),
        ({"guarantee_bps": 1e6, "packet_bytes": 1}, "packet_bytes"),
        ({"guarantee_bps": "1 Gb/s"}, "guarantee_bps"),
    ],
)
def test_what_is_wrong_is_told_at_its_field(
    rig: "Rig", body: dict[str, object], field: str
) -> None:
    answer = rig.client().put(
        "/v1/hosts/gold/contracts/r2", json=body, headers={"If-None-Match": "*"}
    )
    assert answer.status_code == 422
    assert [error["field"].removeprefix("$.") for error in answer.json()["errors"]] == [field]


def test_answers_have_both_units(rig: "Rig") -> None:
    show(rig)
    client = rig.client("read")
    router = client.get("/v1/hosts/gold/routers/r1").json()
    assert (router["order"]["setpoint_pps"], router["order"]["setpoint_bps"]) == (None, 160e6)
    assert (router["report"]["throughput_pps"], router["report"]["throughput_bps"]) == (20e3, 160e6)
    assert (router["kept"]["over_promise_bits"], router["kept"]["under_promise_bits"]) == (4e6, 5e3)
    (told,) = client.get("/v1/setpoints?host=gold").json()["items"]
    assert (told["setpoint_pps"], told["setpoint_bps"]) == (None, 160e6)
    assert (told["confirmed_pps"], told["confirmed_bps"]) == (None, 160e6)
    assert told["burst"] == 4e6
    (gold, _) = client.get("/v1/capacity").json()["hosts"]
    assert gold["promised_pps"] == 10e3


def test_telemetry_has_both_units() -> None:
    fleet = Fleet()
    heard = HostTelemetry(heard_at=5.0, routers={"r1": held()})
    fleet.put(HostLive(GOLD, telemetry=heard, orders={"r1": TOLD, "r2": Order(5.0)}))
    host = telemetry(fleet, None, 5.0).hosts["gold"]
    assert host.orders == {"r1": None, "r2": 5.0}
    assert host.orders_bps == {"r1": 160e6}
    router = host.routers["r1"]
    assert (router.setpoint_pps, router.setpoint_bps) == (None, 160e6)
    assert (router.throughput_bps, router.offered_bps) == (160e6, 200e6)


# --- metrics


def test_metrics_have_setpoints_and_sums_in_bits() -> None:
    fleet = Fleet()
    fleet.put(HostLive(GOLD, contracts={"r1": SOLD}, orders={"r1": TOLD}, kept={"r1": KEPT}))
    text = generate_latest(Metrics(fleet, lambda: 5.0).registry).decode()
    labels = '{host="gold",vr="r1"}'
    for line in (
        'policer_host_routers_held{host="gold"} 1.0',
        'policer_host_promised_packets_per_second{host="gold"} 10000.0',
        f"policer_vr_setpoint_bits_per_second{labels} 1.6e+08",
        f"policer_vr_over_promise_bits_total{labels} 4e+06",
        f"policer_vr_under_promise_bits_total{labels} 5000.0",
        f"policer_vr_breach_seconds_total{labels} 1.5",
    ):
        assert line in text
    assert f"policer_vr_setpoint_packets_per_second{labels}" not in text


# --- the command line


def test_a_contract_is_given_in_bits_and_shown_so(shell: "Shell") -> None:
    words = ("--guarantee", "80Mb/s", "--ceiling", "0.16Gb/s", "--packet-bytes", "1000")
    said = shell("contract", "set", "gold", "r2", *words)
    assert "80 Mb/s (1000 B)" in said
    assert "160 Mb/s" in said
    kept = shell.json("contract", "get", "gold", "r2")["contract"]
    assert (kept["guarantee_bps"], kept["ceiling_bps"], kept["packet_bytes"]) == (80e6, 160e6, 1000)


def test_a_rate_in_one_unit_replaces_the_other(shell: "Shell") -> None:
    def rates() -> list[float | None]:
        kept = shell.json("contract", "get", "gold", "r1")["contract"]
        names = ("guarantee_pps", "guarantee_bps", "ceiling_pps", "ceiling_bps")
        return [kept[name] for name in names]

    assert rates() == [20e3, None, 50e3, None]
    shell("contract", "set", "gold", "r1", "--guarantee", "28Mb/s", "--ceiling", "280Mb/s")
    assert rates() == [0.0, 28e6, None, 280e6]
    shell("contract", "set", "gold", "r1", "--guarantee", "5kpps")
    assert rates() == [5e3, None, None, 280e6]
    shell("contract", "set", "gold", "r1", "--ceiling", "none")
    assert rates() == [5e3, None, None, None]
    shell("contract", "set", "gold", "r1", "--guarantee", "28Mb/s")
    shell("contract", "set", "gold", "r1", "--guarantee", "0")
    assert rates() == [0.0, None, None, None]


def test_a_class_may_be_in_bits(shell: "Shell") -> None:
    shell("class", "set", "line", "--guarantee", "5kpps")
    shell("class", "set", "line", "--guarantee", "28Mb/s", "--ceiling", "28Mb/s")
    shell("contract", "set", "gold", "r2", "--class", "line")
    terms = shell.json("contract", "get", "gold", "r2")["terms"]
    assert (terms["guarantee_pps"], terms["guarantee_bps"]) == (0.0, 28e6)
    said = shell("class", "set", "line", "--guarantee", "1Gb/s", "--ceiling", "none", code=1)
    assert "on gold" in said


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--guarantee", "1Gbps"), "write 1Gb/s for bits"),
        (("--guarantee", "20kbps"), "or packets as in 20kpps"),
        (("--ceiling", "10MB/s"), "bytes are not counted"),
        (("--ceiling", "fast"), "50Mb/s (bits)"),
        (("--guarantee", "1kpps", "--packet-bytes", "9"), "--packet-bytes"),
    ],
)
def test_a_rate_that_may_be_meant_otherwise_is_refused(
    shell: "Shell", words: tuple[str, ...], said: str
) -> None:
    assert said in shell("contract", "set", "gold", "r2", *words, code=2)


def test_a_router_that_is_held_in_bits_is_shown_with_both(rig: "Rig", shell: "Shell") -> None:
    show(rig)
    said = shell("router", "show", "gold", "r1")
    rows = {line.split("  ")[0]: line for line in said.splitlines()}
    assert "80 Mb/s (1000 B)" in rows["guarantee"]
    assert "160 Mb/s" in rows["held at"]
    assert "160 Mb/s" in rows["told setpoint"]
    assert "4000000 bits" in rows["told burst"]
    assert "20 kp/s, 160 Mb/s" in rows["throughput"]
    assert "3 packets and 4000000 bits" in rows["over its promise"]
    (row,) = [line for line in shell("router", "list").splitlines() if line.startswith("gold")]
    rates = ("80 Mb/s", "160 Mb/s", "160 Mb/s", "200 Mb/s", "160 Mb/s")
    assert " ".join(row.split()[2:12]) == " ".join(rates)


def test_a_guarantee_in_bits_is_fitted_by_the_size_sold(shell: "Shell") -> None:
    found = shell.json("fit", "80Mb/s", "--packet-bytes", "1000", "--cost", "2")
    assert found["takes_pps"] == 20e3
    assert shell.json("fit", "28Mb/s")["takes_pps"] == 10e3
    assert "no host has room" in shell("fit", "10Gb/s", code=1)


def test_where_routers_of_a_lost_host_could_go_counts_bits(rig: "Rig", shell: "Shell") -> None:
    rig.store.contracts.put("gold", "r1", SOLD, 1, "test")
    assert shell.json("what-if", "--lose", "gold")["moves"] == [
        {"host": "gold", "vr": "r1", "pps": 10e3, "to": "silver"}
    ]
