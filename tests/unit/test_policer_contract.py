"""Contracts and hosts: what contradicts itself is named by field, with a way out."""

import msgspec
import pytest

from policer.contract import Contract, contradictions
from policer.hosts import Host
from policer.hosts import contradictions as host_contradictions
from policer.ladder import Step


def decoded(text: str) -> Contract:
    return msgspec.json.decode(text, type=Contract)


def test_a_guarantee_is_all_that_a_contract_needs() -> None:
    contract = decoded('{"guarantee_pps": 20000}')
    assert contract == Contract(guarantee_pps=2e4)
    assert list(contradictions(contract)) == []
    assert Step.PAUSE not in contract.measures


@pytest.mark.parametrize(
    ("contract", "field"),
    [
        (Contract(guarantee_pps=2e4, ceiling_pps=1e4), "ceiling_pps"),
        (Contract(guarantee_pps=2e4, burst_packets=10), "burst_packets"),
        (Contract(guarantee_pps=1, measures=(Step.LIMIT, Step.WARN)), "measures"),
        (Contract(guarantee_pps=1, measures=(Step.WARN, Step.WARN)), "measures"),
    ],
)
def test_a_contradiction_names_its_field_and_a_fix(contract: Contract, field: str) -> None:
    problems = list(contradictions(contract))
    assert [problem.field for problem in problems] == [field]
    assert all(problem.fix for problem in problems)


@pytest.mark.parametrize(
    "text",
    [
        '{"guarantee_pps": -1}',
        '{"guarantee_pps": 1e10}',
        '{"guarantee_pps": 1, "weight": 0}',
        '{"guarantee_pps": 1, "ceiling_pps": 0}',
        '{"guarantee_pps": 1, "cost": 0}',
        '{"guarantee_pps": 1, "guarranty": 2}',
        '{"guarantee_pps": 1, "measures": ["shout"]}',
        "{}",
    ],
)
def test_a_field_out_of_range_or_unknown_is_refused(text: str) -> None:
    with pytest.raises(msgspec.ValidationError):
        decoded(text)


def host(**changed: str | None) -> Host:
    fields = {"requests": "tcp://10.0.0.1:7000", "telemetry": "tcp://10.0.0.1:7001"} | changed
    return Host(name="h1", capacity_pps=1e5, **fields)  # type: ignore[arg-type]  # of any field


def test_tcp_takes_the_daemons_key() -> None:
    assert [problem.field for problem in host_contradictions(host())] == ["server_key"]
    assert list(host_contradictions(host(server_key="a" * 40))) == []


def test_a_local_socket_takes_none() -> None:
    local = host(requests="ipc:///run/xtc/manager.sock", telemetry="ipc:///run/xtc/telemetry.sock")
    assert list(host_contradictions(local)) == []
