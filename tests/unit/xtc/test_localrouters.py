"""What is proposed for a namespace or container, as a configuration that can be pasted."""

import pytest

from xtc.actuator.containers import Container
from xtc.config.discover import LocalRouter, _places, propose
from xtc.config.file import parse_config
from xtc.config.host_facts import Inside
from xtc.config.plan import plans
from xtc.spec import CgroupSpec, DeadlineSpec

TWO = Inside({"eth1": "veth9", "eth0": "veth8", "dummy0": None})


def proposed(
    inside: Inside = TWO, *, name: str = "edge", forwards: bool = True, group: str = ""
) -> LocalRouter:
    netns = group or f"/run/netns/{name}"
    return propose("netns", name, inside, forwards=forwards, netns=netns, group=group)


def test_the_kernel_s_router_gets_its_threads_capped() -> None:
    found = proposed()
    section = parse_config(found.configuration).router["edge"]
    assert section.actuator == DeadlineSpec("/run/netns/edge", ("eth0", "eth1"))
    assert section.interfaces == ("veth8", "veth9")
    assert (found.actuator, found.reasons) == ("deadline", ())


def test_a_container_in_user_space_gets_a_quota_by_its_name() -> None:
    found = proposed(forwards=False, group="container:edge")
    assert parse_config(found.configuration).router["edge"].actuator == CgroupSpec("container:edge")


def test_a_container_in_which_the_kernel_may_forward_gets_both_to_choose_from() -> None:
    text = proposed(group="container:edge").configuration
    assert parse_config(text).router["edge"].actuator == DeadlineSpec(
        "container:edge", ("eth0", "eth1")
    )
    assert '# actuator = { kind = "cgroup", path = "container:edge" }' in text


def test_a_namespace_that_does_not_forward_is_not_proposed() -> None:
    found = proposed(forwards=False)
    assert (found.actuator, found.configuration) == ("", "")
    assert "ip_forward" in found.reasons[0]


def test_what_does_not_end_here_cannot_be_counted() -> None:
    found = proposed(Inside({"eth0": None}))
    assert (found.actuator, found.configuration) == ("", "")
    assert "counted" in found.reasons[0]


def test_one_interface_is_said_to_be_all() -> None:
    text = proposed(Inside({"eth0": "veth8"})).configuration
    assert parse_config(text).router["edge"].one_interface


@pytest.mark.parametrize("name", ["a.b", "über", "-x", "_", 'q"uote', "x" * 90])
def test_every_name_makes_a_configuration_that_can_be_read(name: str) -> None:
    assert len(plans(parse_config(proposed(name=name).configuration))) == 1


def test_containers_of_one_name_are_named_with_their_engine() -> None:
    containers = [
        Container(engine, name, "", 1)
        for engine, name in (("docker", "a"), ("lxc", "a"), ("lxc", "b"))
    ]
    assert _places(containers) == ["container:docker/a", "container:lxc/a", "container:b"]
