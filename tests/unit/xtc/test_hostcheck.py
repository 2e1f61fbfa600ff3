"""What a host shows to be wrong with a configuration, on facts given by the test."""

from dataclasses import replace

import pytest

from common.errors import ConfigError
from xtc.config.file import parse_config
from xtc.config.host_check import check_host
from xtc.config.host_facts import HostFacts, Inside, Trouble
from xtc.config.plan import plans

CGROUP = """
[router.{0}]
actuator = {{ kind = "cgroup", path = "/sys/fs/cgroup/{0}" }}
interfaces = ["tap-{0}-*"]
"""
DEADLINE = """
[router.gold]
actuator = { kind = "deadline", netns = "/run/netns/gold", interfaces = ["r0", "r1"] }
interfaces = ["vif1.*"]
"""
FACTS = HostFacts(
    cpus=2,
    present=frozenset({"lo", "tap-a-0", "tap-a-1", "vif1.0", "vif1.1"}),
    groups={"/sys/fs/cgroup/a": None},
    namespaces={"/run/netns/gold": Inside({"r0": "vif1.0", "r1": "vif1.1"})},
)


def doubts(text: str, facts: HostFacts = FACTS) -> tuple[ConfigError, ...]:
    return check_host(plans(parse_config(text)), facts)


def told(errors: tuple[ConfigError, ...]) -> list[tuple[str, str]]:
    return [(error.where, error.problem) for error in errors]


def inside(**ends: str | None) -> HostFacts:
    return replace(FACTS, namespaces={"/run/netns/gold": Inside(ends)})


@pytest.mark.parametrize("text", [CGROUP.format("a"), DEADLINE, ""])
def test_what_the_host_bears_out_is_not_doubted(text: str) -> None:
    assert doubts(text) == ()


@pytest.mark.parametrize(
    ("more", "key", "problem"),
    [
        ("floor = 5", "floor", "500% is more than the 2 CPUs of this host"),
        ("safe_cap = 5", "safe_cap", "500% is more than the 2 CPUs of this host"),
        ("floor = 0.2\nsafe_cap = '10%'", "safe_cap", "10% is below the floor, 20%"),
        ("ceiling = 0.2\nsafe_cap = 0.3", "safe_cap", "30% is above the ceiling, 20%"),
    ],
)
def test_a_cap_that_cannot_be_meant_is_a_warning(more: str, key: str, problem: str) -> None:
    assert told(doubts(CGROUP.format("a") + more)) == [(f"router.a.{key}", problem)]


def test_two_routers_of_one_interface_are_a_warning() -> None:
    text = CGROUP.format("a") + DEADLINE.replace("vif1.*", "*-0").replace("r1", "r0")
    claim = ("router.gold.interfaces", "router.a claims tap-a-0 too")
    assert told(doubts(text))[0] == claim


def test_a_group_that_is_not_there_is_a_warning() -> None:
    facts = replace(FACTS, groups={"/sys/fs/cgroup/a": Trouble("not there", "did you mean b?")})
    (warning,) = doubts(CGROUP.format("a"), facts)
    assert warning.where == "router.a.actuator.path"
    assert str(warning).endswith("/sys/fs/cgroup/a: not there (did you mean b?)")


def test_a_namespace_that_is_not_there_is_a_warning() -> None:
    facts = replace(FACTS, namespaces={"/run/netns/gold": Trouble("not there")})
    assert told(doubts(DEADLINE, facts)) == [
        ("router.gold.actuator.netns", "/run/netns/gold: not there")
    ]


def test_a_wrong_inner_interface_is_a_warning_with_those_that_are_there() -> None:
    (warning,) = doubts(DEADLINE, inside(r0="vif1.0", eth1="vif1.1"))
    assert told((warning,)) == [("router.gold.actuator.interfaces", "r1: not in /run/netns/gold")]
    assert warning.fix == "there is eth1, r0"


@pytest.mark.parametrize(
    ("pattern", "problem"),
    [("vif9.*", "no interface matches vif9.*"), ("vif9.0", "there is no vif9.0")],
)
def test_a_pattern_without_a_match_is_a_warning(pattern: str, problem: str) -> None:
    warnings = doubts(DEADLINE.replace("vif1.*", pattern))
    assert told(warnings) == [("router.gold.interfaces", problem)]


def test_what_is_present_is_not_judged_where_it_cannot_be_read() -> None:
    assert doubts(DEADLINE, replace(FACTS, present=None)) == ()


def test_a_glob_that_matches_only_the_ingress_is_a_warning() -> None:
    (warning,) = doubts(DEADLINE.replace("vif1.*", "vif1.0"))
    assert told((warning,)) == [
        ("router.gold.interfaces", "what leaves by vif1.1 is not counted"),
    ]
    assert "one_interface = true" in warning.fix


ONE = 'interfaces = ["tap-a-0"]'


def test_one_interface_of_a_router_that_cannot_be_looked_into_is_a_warning() -> None:
    text = CGROUP.format("a").replace('interfaces = ["tap-a-*"]', ONE)
    (warning,) = doubts(text)
    assert (
        warning.problem
        == "only tap-a-0 is counted, and packets that leave by another interface are not counted"
    )
    assert doubts(text + "one_interface = true") == ()


def test_a_router_on_a_stick_is_known_by_its_namespace() -> None:
    text = DEADLINE.replace(', "r1"', "").replace("vif1.*", "vif1.0")
    assert doubts(text, inside(r0="vif1.0")) == ()
    (warning,) = doubts(text, inside(r0="vif1.0", wan=None))
    assert warning.problem.startswith("only vif1.0 is counted")


def test_interfaces_counted_inside_are_not_compared_with_their_other_ends() -> None:
    text = DEADLINE.replace("vif1.*", "vif*") + "side = 'router'"
    assert doubts(text, inside(r0="x", r1="y")) == ()
