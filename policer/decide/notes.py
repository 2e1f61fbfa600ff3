"""Changes of a round as messages for an operator; pure."""

from collections.abc import Iterator, Mapping

from policer.contracts.contract import Contract
from policer.decide.state import NEW_ROUTER, HostState, Note, Policy, RouterState, only_reported


def notes(
    before: HostState, after: HostState, terms: Mapping[str, Contract], policy: Policy
) -> Iterator[Note]:
    """Describe the changes of the host and of the routers that have terms."""
    was, now = before.standing, after.standing
    if now.engaged and not was.engaged:
        yield Note("engaged", "the host is contended: its routers are held")
    elif was.engaged and not now.engaged:
        yield Note("released", "the host is calm: its routers are released")
    for vr in now.harmed:
        if vr not in was.harmed:
            yield Note("guarantee_missed", "it gets less than its guarantee and could use it", vr)
    for vr in now.yields:
        if vr not in was.yields:
            words = "it drops packets by itself: lowering the others further did not help"
            yield Note("self_inflicted_loss", words, vr)
    for vr, contract in terms.items():
        known = before.routers.get(vr, NEW_ROUTER)
        yield from _of_router(vr, known, after.routers[vr], contract, policy)


def _of_router(
    vr: str, before: RouterState, after: RouterState, contract: Contract, policy: Policy
) -> Iterator[Note]:
    if after.evidence.guilty and not before.evidence.guilty:
        yield Note("misbehaves", "its offered load stays far above its setpoint", vr)
    elif before.evidence.guilty and not after.evidence.guilty:
        yield Note("behaves", "its offered load is acceptable again", vr)
    if after.shield.up and not before.shield.up:
        yield Note("shielded", "its host drops traffic above the setpoint", vr)
    elif before.shield.up and not after.shield.up:
        yield Note("unshielded", "its host no longer drops traffic above the setpoint", vr)
    if after.starving.on and not before.starving.on:
        words = "it forwards less than its load and its cap is not the limit: its CPU is contended"
        yield Note("starved", f"{words}, or it drops packets itself", vr)
    elif before.starving.on and not after.starving.on:
        yield Note("not_starved", "it has the CPU that its cap allows again", vr)
    was, now = before.punishment.height, after.punishment.height
    if now > was:
        would = " (dry run: only reported)" if only_reported(contract, policy) else ""
        yield Note("punished", f"{contract.measures[now - 1]}{would}", vr)
    elif now < was:
        left = contract.measures[now - 1] if now else "nothing"
        words = f"one step down, to {left}"
        if contract.punish == "never":
            words = "its contract or an operator allows no measure now"
        yield Note("pardoned", words, vr)
