"""The first cap of a router without a shield: at its activation, not a period later.

It comes from the trained model, else from the last run's estimate, else from a guess. It is used
where no shield holds the rate, and for laws that correct a wrong cap within two or three periods.
"""

import math
from typing import Final

from msgspec.structs import replace

from common.units import CapFraction, PacketsPerSecond
from xtc.control.adaptive import AdaptiveLaw, extended_cap
from xtc.control.instance import Act, Command, Instance, Profile, Watch, spent
from xtc.control.prior import guess

WITHOUT_REFERENCE: Final = 5.0
"""Minimum first cap, in multiples of the floor, where the router's uncapped throughput is unknown:
at the floor itself, it would not show whether the router responds to its cap
(`xtc.control.instance`)."""


def first(
    instance: Instance,
    profile: Profile,
    in_force: CapFraction | None,
    forwarded: PacketsPerSecond | None,
) -> tuple[Instance, Command | None]:
    """Return a starting loop and its first cap; None where it must wait for a sample.

    Args:
        instance: the loop, which may have knowledge from an earlier run (`Instance.prior`).
        profile: its law and its bounds.
        in_force: the cap already in force, an upper bound of the first cap.
        forwarded: throughput without this cap; None where unknown.
    """
    law, target = profile.law_of(instance.lease.unit), instance.lease.target
    if not isinstance(law, AdaptiveLaw):
        return instance, None
    if law.curve is not None:
        cap = extended_cap(law.curve, target)
    else:
        prior = instance.prior or guess(instance.lease.unit)
        cap, instance = prior.cap_for(target), replace(instance, prior=prior)
    if not math.isfinite(cap) or cap >= min(profile.bounds.ceiling, in_force or math.inf):
        return instance, None
    if forwarded is None:
        cap = max(cap, WITHOUT_REFERENCE * profile.bounds.floor)
    period, owed = spent(CapFraction(cap), profile)
    watch = Watch(reference=forwarded)
    return replace(instance, capped=True, owed=owed, watch=watch), Command(Act.SET, period)
