"""The first cap of a router that nothing else holds: at its activation, not a period later.

From the trained model, else from what the last run has learned, else from a guess. It is used where
no shield holds the rate alone, and for laws that leave a wrong cap within two or three periods.
"""

import math
from typing import Final

from msgspec.structs import replace

from common.units import CapFraction, PacketsPerSecond
from xtc.control.adaptive import AdaptiveLaw, extended_cap
from xtc.control.instance import Act, Command, Instance, Profile, Watch, spent
from xtc.control.prior import guess

WITHOUT_REFERENCE: Final = 5.0
"""The least first cap, in floors, where it is not known what the router forwards uncapped: at the
floor alone nothing would show whether it answers to its cap (`xtc.control.instance`)."""


def first(
    instance: Instance,
    profile: Profile,
    in_force: CapFraction | None,
    forwarded: PacketsPerSecond | None,
) -> tuple[Instance, Command | None]:
    """Return a loop that begins, and its first cap; None where it is to wait for a sample.

    Args:
        instance: the loop, which may know of an earlier run (`Instance.prior`).
        profile: its law and its bounds.
        in_force: a cap that stands already, which no first cap exceeds.
        forwarded: what the router forwarded without this cap; None where that is not known.
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
