"""How `xtc config check` tells the way of each limit."""

from dataclasses import replace

from simulated_rig import plan

from xtc.config.check import LimitWay, limit_ways
from xtc.config.host_facts import HostFacts
from xtc.measure.collector import Binding, Side
from xtc.shield.methods import Choice, Way
from xtc.spec import CgroupSpec

HELD = replace(plan("held"), spec=CgroupSpec("/g"), binding=Binding(("v*",)))
CHOICES = {"v0": Choice(Way.CLSACT), "v1": Choice(Way.TBF, "another owner's filter")}


def test_the_way_of_each_interface_is_told_with_its_reason() -> None:
    facts = HostFacts(cpus=2, present=frozenset({"v1", "v0", "lo"}))
    assert limit_ways({"held": HELD}, facts, CHOICES.__getitem__) == (
        LimitWay("held", "v0", "clsact", ""),
        LimitWay("held", "v1", "tbf", "another owner's filter"),
    )


def test_the_interfaces_that_bear_a_shield_are_told() -> None:
    facts = HostFacts(cpus=2, present=frozenset({"v1", "v0"}))
    ways = limit_ways({"held": replace(HELD, shield=True)}, facts, CHOICES.__getitem__)
    assert {way.interface: way.shield for way in ways} == {"v0": True, "v1": False}


def test_only_what_the_host_sends_into_a_router_is_limited() -> None:
    facts = HostFacts(cpus=2, present=frozenset({"v0", "s.0"}))
    own = replace(HELD, binding=Binding(("v*",), side=Side.ROUTER))
    assert limit_ways({"own": own, "s": plan("s")}, facts, CHOICES.__getitem__) == ()
