"""What a router may forward above its ceiling for a while: saved below it, spent above; pure."""

from policer.contracts.contract import Contract

SPENT_WITHIN_S = 1.0
"""What was saved may be spent within this time."""


def saved_after(saved: float, contract: Contract, throughput_pps: float, seconds: float) -> float:
    """Return the packets saved up after so long at a throughput: a token bucket at the ceiling.

    What was spent before its setpoint could fall again is a debt (less than 0), of one burst at
    most; it is saved up first.
    """
    if contract.ceiling_pps is None:
        return 0.0
    most = contract.burst_packets
    return min(most, max(-most, saved + (contract.ceiling_pps - throughput_pps) * seconds))


def ceiling_now(contract: Contract, saved: float) -> float:
    """Return the ceiling with what was saved on top, in packets/s."""
    return contract.ceiling + max(0.0, saved) / SPENT_WITHIN_S
