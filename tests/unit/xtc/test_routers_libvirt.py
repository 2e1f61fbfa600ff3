"""Routers that are domains, from the words of the configuration: interfaces, URIs, and twins."""

import pytest

from common.errors import ConfigError
from xtc.config.plan import plans
from xtc.config.schema import Config, RouterSection
from xtc.measure.collector import Binding
from xtc.spec import LibvirtSpec

GOLD = LibvirtSpec("gold", "xen:///system")


def section(spec: LibvirtSpec = GOLD, **fields: object) -> RouterSection:
    return RouterSection(actuator=spec, **fields)  # type: ignore[arg-type]


def test_without_interfaces_they_are_the_domains() -> None:
    [plan] = plans(Config(router={"gold": section()})).values()
    assert plan.domain == GOLD
    assert plan.binding == Binding()


@pytest.mark.parametrize("fields", [{"interfaces": ("vif7.*",)}, {"domid": 7}])
def test_interfaces_that_are_named_go_before_the_domains(fields: dict[str, object]) -> None:
    [plan] = plans(Config(router={"gold": section(**fields)})).values()
    assert plan.domain is None
    assert plan.binding != Binding()


@pytest.mark.parametrize(
    "uri",
    ["qemu+ssh://root@far/system", "xen://far/system", "lxc+tls://10.0.0.7/", "qemu+tcp://[::1]/"],
)
def test_the_hypervisor_of_another_machine_is_refused(uri: str) -> None:
    with pytest.raises(ConfigError) as caught:
        plans(Config(router={"gold": section(LibvirtSpec("gold", uri))}))
    assert caught.value.where == "router.gold.actuator.uri"
    assert uri in caught.value.problem


@pytest.mark.parametrize(
    "uri", [None, "xen:///system", "qemu:///session", "lxc:///", "qemu+unix:///system?socket=/x"]
)
def test_a_hypervisor_of_this_machine_is_accepted(uri: str | None) -> None:
    assert plans(Config(router={"gold": section(LibvirtSpec("gold", uri))}))


def test_the_same_domain_twice_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"router\.other\.actuator"):
        plans(Config(router={"gold": section(), "other": section()}))
