"""Burst: what a router may forward above its ceiling for a while, saved up below it; pure."""

from policer.contracts.contract import Contract

SPENT_WITHIN_S = 1.0
"""The saved packets may be spent within this time."""


def saved_after(saved: float, contract: Contract, throughput_pps: float, seconds: float) -> float:
    """Return the saved packets after some seconds at a throughput: a token bucket at the ceiling.

    Packets spent before the setpoint could fall again are a debt (less than 0) of one burst at
    most. Later savings repay the debt first.
    """
    if contract.ceiling_pps is None:
        return 0.0
    most = contract.burst_packets
    return min(most, max(-most, saved + (contract.ceiling_pps - throughput_pps) * seconds))


def ceiling_now(contract: Contract, saved: float) -> float:
    """Return the ceiling plus the saved packets, in packets/s."""
    return contract.ceiling + max(0.0, saved) / SPENT_WITHIN_S
