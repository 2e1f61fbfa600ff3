"""Rates in two units on the command line: packets/s or bits/s."""

from collections.abc import Mapping
from typing import Any

from common.setpoint import Setpoint, parse_setpoint
from common.units import format_bit_rate, format_rate
from policer.contracts.contract import PACKET_BYTES

Item = Mapping[str, Any]
UNITS = ("pps", "bps")
RATES = ("guarantee", "ceiling")
"""Terms of a contract with a rate in either unit."""


def given_rate(name: str, text: str, option: str) -> dict[str, float]:
    """Return a rate under the name of its unit, such as `ceiling_bps`.

    Raises:
        UnitError: it is not a rate, or its unit is ambiguous.
    """
    setpoint = parse_setpoint(text, field=option)
    unit = "pps" if setpoint.bps is None else "bps"
    return {f"{name}_{unit}": setpoint.rate}


def merged(before: Item, given: Item) -> dict[str, Any]:
    """Return a contract's terms with what is given; a rate in one unit replaces the other's."""
    replaced = {
        f"{name}_{other}"
        for name in RATES
        for unit, other in (UNITS, UNITS[::-1])
        if f"{name}_{unit}" in given
    }
    kept = {name: value for name, value in before.items() if name not in replaced}
    return {**kept, **given}


def rate_of(item: Item, name: str, *, in_bits: bool = False) -> str:
    """Show a rate; `-` if there is none.

    Args:
        item: entry that may have it in either unit.
        name: of the rate, without its unit.
        in_bits: whether to show bits/s if both are known.
    """
    pps, bps = (item.get(f"{name}_{unit}") for unit in UNITS)
    if bps is not None and (in_bits or not pps):
        return format_bit_rate(bps)
    return "-" if pps is None else format_rate(pps)


def is_in_bits(contract: Item) -> bool:
    """Whether a contract has a rate in bits/s."""
    return any(contract.get(f"{name}_bps") is not None for name in RATES)


def guaranteed(contract: Item) -> bool:
    """Whether a contract guarantees anything."""
    return bool(contract.get("guarantee_pps") or contract.get("guarantee_bps"))


def reserve_pps(contract: Item) -> float:
    """Return how much of a host a guarantee takes, at its cost, in packets/s."""
    in_bits = contract.get("guarantee_bps") or 0.0
    sold = in_bits / (8 * contract.get("packet_bytes", PACKET_BYTES))
    taken: float = contract["cost"] * (contract["guarantee_pps"] or sold)
    return taken


def packets_of(setpoint: Setpoint, packet_bytes: int) -> float:
    """Return a rate in packets/s; one in bits/s is converted with this packet size."""
    return setpoint.rate if setpoint.bps is None else setpoint.bps / (8 * packet_bytes)
