"""Contracts and hosts: what contradicts itself is named by field, with a way out."""

import msgspec
import pytest

from policer.contracts.contract import Contract, contradictions
from policer.contracts.host import Host
from policer.contracts.host import contradictions as host_contradictions
from policer.contracts.ladder import Step


def decoded(text: str) -> Contract:
    return msgspec.json.decode(text, type=Contract)


def test_a_guarantee_is_all_that_a_contract_needs() -> None:
    contract = decoded('{"guarantee_pps": 20000}')
    assert contract == Contract(guarantee_pps=2e4)
    assert list(contradictions(contract)) == []
    assert Step.PAUSE not in contract.measures


@pytest.mark.parametrize(
    ("contract", "field", "words"),
    [
        (Contract(1e3, guarantee_bps=1e6), "guarantee_bps", "given in packets/s too"),
        (Contract(ceiling_pps=1e3, ceiling_bps=1e6), "ceiling_bps", "given in packets/s too"),
        (
            Contract(guarantee_bps=2e9, ceiling_bps=1e9),
            "ceiling_bps",
            "1 Gb/s is below the guarantee of 2 Gb/s",
        ),
        (
            Contract(1e3, ceiling_bps=1e6, packet_bytes=1000),
            "ceiling_bps",
            "125 is below the guarantee of 1000 packets/s, at 1000 bytes each",
        ),
        (
            Contract(guarantee_bps=28e6, ceiling_pps=9e3),
            "ceiling_pps",
            "9000 is below the guarantee of 10000 packets/s, at 350 bytes each",
        ),
        (Contract(guarantee_bps=1e6, burst_packets=5), "burst_packets", "no ceiling"),
        (Contract(guarantee_bps=28e6, burst=7e5), "burst", "more than 60 s of the guarantee"),
        (Contract(ceiling_bps=2.8e6, burst=7e4), "burst", "more than 60 s of the ceiling"),
    ],
)
def test_rates_in_bits_are_judged_as_those_in_packets(
    contract: Contract, field: str, words: str
) -> None:
    (problem,) = contradictions(contract)
    assert problem.field == field
    assert words in problem.problem


def test_the_size_sold_says_what_bits_take() -> None:
    sold = Contract(guarantee_bps=1e9, ceiling_bps=2e9, packet_bytes=1000, burst=5e6)
    assert list(contradictions(sold)) == []
    assert (sold.reserve_pps, sold.ceiling, sold.reference_pps) == (125e3, 250e3, 125e3)
    assert Contract(ceiling_bps=2.8e6).reference_pps == 1e3
    assert Contract(guarantee_pps=1.0, ceiling_bps=1e3, packet_bytes=64).reserve_pps == 1.0


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
        '{"guarantee_bps": 0}',
        '{"guarantee_bps": 2e12}',
        '{"ceiling_bps": 999}',
        '{"ceiling_bps": 1e6, "packet_bytes": 63}',
        '{"ceiling_bps": 1e6, "packet_bytes": 65536}',
        '{"ceiling_bps": 1e6, "packet_bytes": 350.5}',
        '{"ceiling_bps": NaN}',
    ],
)
def test_a_field_out_of_range_or_unknown_is_refused(text: str) -> None:
    with pytest.raises(msgspec.DecodeError):
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
