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
    ],
)
def test_a_field_out_of_range_or_unknown_is_refused(text: str) -> None:
    with pytest.raises(msgspec.ValidationError):
        decoded(text)


@pytest.mark.parametrize(
    ("contract", "words"),
    [
        (Contract(2e4, burst=0), "0 packets; a burst is at least 1 packet"),
        (Contract(2e4, burst=-5), "-5 packets"),
        (Contract(2e4, burst=0.9), "0.9 packets"),
        (Contract(2e4, burst=float("nan")), "nan packets"),
        (Contract(2e4, burst=float("inf")), "inf packets are more than 60 s of the guarantee"),
        (Contract(2e4, ceiling_pps=9e4, burst=1.3e6), "more than 60 s of the guarantee"),
        (Contract(0, ceiling_pps=1e3, burst=6.1e4), "more than 60 s of the ceiling"),
        (Contract(0, burst=100), "neither a guarantee nor a ceiling"),
    ],
)
def test_a_burst_that_cannot_be_kept_is_refused_with_what_to_give(
    contract: Contract, words: str
) -> None:
    (problem,) = contradictions(contract)
    assert problem.field == "burst"
    assert words in problem.problem
    assert "give" in problem.fix


def test_a_burst_is_as_many_seconds_below_the_guarantee_and_as_many_packets_above() -> None:
    contract = Contract(guarantee_pps=2e4, ceiling_pps=8e4, burst=4e3)
    assert [contract.burst_at(rate) for rate in (8e4, 2e4, 5e3, 1.0)] == [4e3, 4e3, 1e3, 1.0]


def test_without_a_guarantee_it_goes_with_the_ceiling() -> None:
    contract = Contract(guarantee_pps=0, ceiling_pps=8e4, burst=4e3)
    assert [contract.burst_at(rate) for rate in (8e4, 2e4)] == [4e3, 1e3]


def test_a_contract_without_a_burst_leaves_it_to_the_daemon() -> None:
    assert Contract(guarantee_pps=2e4).burst_at(1e4) is None


def host(**changed: str | None) -> Host:
    fields = {"requests": "tcp://10.0.0.1:7000", "telemetry": "tcp://10.0.0.1:7001"} | changed
    return Host(name="h1", capacity_pps=1e5, **fields)  # type: ignore[arg-type]  # of any field


def test_tcp_takes_the_daemons_key() -> None:
    assert [problem.field for problem in host_contradictions(host())] == ["server_key"]
    assert list(host_contradictions(host(server_key="a" * 40))) == []


def test_a_local_socket_takes_none() -> None:
    local = host(requests="ipc:///run/xtc/manager.sock", telemetry="ipc:///run/xtc/telemetry.sock")
    assert list(host_contradictions(local)) == []
