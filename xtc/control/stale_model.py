"""Whether a router still takes the CPU that its model says: one finding, after many samples; pure.

A model is of one host, one router and one kind of packets. Another kernel, a slower clock, rules
added to the router or larger packets change what a packet costs. The loop follows such changes by
itself; what was promised by the model does not.
"""

from typing import Final

from msgspec.structs import replace

from models import HostModel
from xtc.control.headroom import is_spent
from xtc.control.instance import Instance
from xtc.control.law import Sample
from xtc.modes import Finding

STALE_AFTER: Final = 30
"""Samples that must be outside of the model's interval, more than inside of it."""
REMEMBERED: Final = 40
"""So many of them count at most, so that a router that is as it was is soon believed again."""


def count_outside(
    outside: int, instance: Instance, sample: Sample | None, model: HostModel | None, *, polls: bool
) -> int:
    """Return how many more samples were outside of a model's interval than inside of it.

    Args:
        outside: the count before.
        instance: the loop after its step; only a router that is held tells anything.
        sample: what the step saw, in packets/s.
        model: what the router is taken to do.
        polls: whether it uses all of its cap whatever it forwards.
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
    """Return the loop with the finding where nothing is wrong but that its model no longer fits."""
    if instance.finding is Finding.NONE and outside >= STALE_AFTER:
        return replace(instance, finding=Finding.MODEL_STALE)
    return instance


def _taken(sample: Sample, *, polls: bool) -> float | None:
    """Return the CPU that a sample's throughput took; None where nothing tells.

    Where the cap holds the rate, it is the cap. Behind a shield a router is given more than it
    needs: what it used tells, unless it used all of it or polls.
    """
    if not sample.guarded:
        return sample.cap if sample.binding else None
    unknown = polls or sample.coarse or sample.used is None or is_spent(sample)
    return None if unknown else sample.used
