"""Admission: a host is promised no more than it can forward, unless the operator says so."""

import re

import msgspec
import pytest

from policer.contracts.admission import problems_of_host, problems_with, promised_pps
from policer.contracts.contract import Contract
from policer.contracts.host import Host

HOST = Host("h1", "ipc:///run/xtc/manager.sock", "ipc:///run/xtc/telemetry.sock", 1e5)
OTHERS = {"b": Contract(guarantee_pps=6e4)}


def fields(
    contract: Contract, host: Host = HOST, others: dict[str, Contract] = OTHERS
) -> list[str]:
    return [problem.field for problem in problems_with("a", contract, host, others)]


def test_what_fits_is_admitted_to_the_last_packet() -> None:
    assert fields(Contract(guarantee_pps=4e4)) == []
    assert fields(Contract(guarantee_pps=4e4 + 1)) == ["guarantee_pps"]


def test_sums_are_exact_enough() -> None:
    host = msgspec.structs.replace(HOST, capacity_pps=0.3)
    assert fields(Contract(guarantee_pps=0.2), host, {"b": Contract(guarantee_pps=0.1)}) == []


def test_a_contract_that_is_replaced_does_not_count_against_itself() -> None:
    assert fields(Contract(guarantee_pps=4e4), others=OTHERS | {"a": Contract(4e4)}) == []


def test_costs_count() -> None:
    assert fields(Contract(guarantee_pps=2e4, cost=2.0)) == []
    assert fields(Contract(guarantee_pps=2e4, cost=2.1)) == ["guarantee_pps"]
    assert promised_pps({"a": Contract(2e4, cost=2.0), "b": Contract(1e4)}) == 5e4


def test_an_operator_may_overcommit() -> None:
    assert fields(Contract(9e4), msgspec.structs.replace(HOST, overcommit=True)) == []


@pytest.mark.parametrize("promised", [100e3 / 3, 1.0, 66666.66666, 99999.99])
@pytest.mark.parametrize("cost", [1.0, 0.3, 7.0])
def test_who_follows_the_advice_is_not_refused_again(promised: float, cost: float) -> None:
    others = {"b": Contract(guarantee_pps=promised)}
    problem = next(problems_with("a", Contract(1e9, cost=cost), HOST, others))
    advised = re.search(r"at most ([0-9.]+),", problem.fix)
    assert advised
    assert fields(Contract(float(advised[1]), cost=cost), others=others) == []


@pytest.mark.parametrize("promised", [100e3 / 3, 1.0, 66666.66666])
@pytest.mark.parametrize("size", [64, 350, 1514])
def test_bits_take_packets_of_the_size_sold(promised: float, size: int) -> None:
    others = {"b": Contract(guarantee_bps=8 * 350 * promised)}
    (problem,) = problems_with("a", Contract(guarantee_bps=1e12, packet_bytes=size), HOST, others)
    assert problem.field == "guarantee_bps"
    assert f"packets/s of {size} bytes" in problem.problem
    advised = re.search(r"at most ([0-9.]+) bits/s,", problem.fix)
    assert advised
    most = float(advised[1])
    assert fields(Contract(guarantee_bps=most, packet_bytes=size), others=others) == []
    over = Contract(guarantee_bps=most * 1.0001, packet_bytes=size)
    assert fields(over, others=others) == ["guarantee_bps"]


def test_where_no_bits_are_left_none_are_advised() -> None:
    full = {"b": Contract(guarantee_pps=1e5)}
    (problem,) = problems_with("a", Contract(guarantee_bps=1e6), HOST, full)
    assert problem.fix == "promise nothing, or let the host overcommit"
    assert fields(Contract(ceiling_bps=1e6), others=full) == []


def test_a_contract_without_guarantee_is_always_welcome() -> None:
    full = {"b": Contract(guarantee_pps=2e5)}
    assert fields(Contract(guarantee_pps=0), others=full) == []


def test_a_capacity_is_not_lowered_below_what_was_promised() -> None:
    lowered = msgspec.structs.replace(HOST, capacity_pps=5e4)
    assert [p.field for p in problems_of_host(lowered, OTHERS)] == ["capacity_pps"]
    assert list(problems_of_host(msgspec.structs.replace(lowered, overcommit=True), OTHERS)) == []
    assert list(problems_of_host(HOST, OTHERS)) == []
