"""Detects over many samples that a router's CPU cost no longer matches its model; pure.

A model describes one host, one router and one kind of packets. Another kernel, a slower clock, new
rules in the router or larger packets change the cost of a packet. The loop follows such changes;
promises based on the model do not.
"""

from typing import Final

from msgspec.structs import replace

from models import HostModel
from xtc.control.headroom import is_spent
from xtc.control.instance import Instance
from xtc.control.law import Sample
from xtc.modes import Finding

STALE_AFTER: Final = 30
"""Samples that must be outside of the model's interval, in excess of those inside."""
REMEMBERED: Final = 40
"""Maximum that is counted, so that a router back to normal is soon trusted again."""


def count_outside(
    outside: int, instance: Instance, sample: Sample | None, model: HostModel | None, *, polls: bool
) -> int:
    """Return the excess of samples outside of a model's interval over those inside.

    Args:
        outside: the previous count.
        instance: the loop after its step; only controlled routers count.
        sample: of the step, in packets/s.
        model: the expected behaviour.
        polls: whether it uses all of its cap at any load.
    """
    if instance.finding is not Finding.NONE or not instance.capped or sample is None:
        return outside
    taken = _taken(sample, polls=polls)
    if taken is None or model is None or model.uncertainty is None:
        return outside
    caps = model.uncertainty.caps_for(model.curve, sample.throughput)
    if caps is None:
        return outside
    inside = caps[0] <= taken <= caps[1]
    return max(outside - 1, 0) if inside else min(outside + 1, REMEMBERED)


def with_stale_model(instance: Instance, outside: int) -> Instance:
    """Return the loop with this finding, unless it has another problem."""
    if instance.finding is Finding.NONE and outside >= STALE_AFTER:
        return replace(instance, finding=Finding.MODEL_STALE)
    return instance


def _taken(sample: Sample, *, polls: bool) -> float | None:
    """Return the CPU that a sample's throughput took; None where unknown.

    Where the cap holds the rate, it is the cap. Behind a shield, a router gets more than it needs:
    its usage counts, unless it used all of its cap or polls.
    """
    if not sample.guarded:
        return sample.cap if sample.binding else None
    unknown = polls or sample.coarse or sample.used is None or is_spent(sample)
    return None if unknown else sample.used
