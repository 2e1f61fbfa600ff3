"""Names and addresses of a lab, and the checks on what callers ask for."""

import pytest

from lab.errors import BadRequestError
from lab.plan import MAX_ROUTERS, check_kind, check_name, check_prefix, namespace, ports
from lab.programs.processes import check_rate, check_share


def test_host_interfaces_bear_xen_s_names() -> None:
    assert [port.host_interface for port in ports(7)] == ["vif7.0", "vif7.1"]


def test_no_two_ports_of_a_full_lab_share_an_address() -> None:
    everyone = [port for index in range(1, MAX_ROUTERS + 1) for port in ports(index)]
    addresses = [
        value
        for port in everyone
        for value in (port.host_address, port.router_address, port.nowhere_address)
    ]
    macs = [
        value
        for port in everyone
        for value in (port.host_mac, port.router_mac, port.idle_mac, port.nowhere_mac)
    ]
    assert len(set(addresses)) == len(addresses)
    assert len(set(macs)) == len(macs)


def test_no_prefix_matches_the_namespaces_of_another() -> None:
    check_prefix("lab")
    with pytest.raises(BadRequestError, match="prefix"):
        check_prefix("lab-dom0")
    assert not namespace("labs", "vr1").startswith("lab-")


@pytest.mark.parametrize("prefix", ["", "x", "Lab", "lab/..", "lab 1", "1lab", "a" * 17])
def test_a_prefix_unfit_for_names_is_refused(prefix: str) -> None:
    with pytest.raises(BadRequestError, match="prefix"):
        check_prefix(prefix)


@pytest.mark.parametrize("name", ["", "dom0", "../vr1", "vr 1", "VR1", "-vr"])
def test_a_router_s_name_unfit_for_a_file_is_refused(name: str) -> None:
    with pytest.raises(BadRequestError, match="name"):
        check_name(name)


def test_an_unknown_kind_is_refused_with_the_known_ones() -> None:
    assert check_kind("kernel") == "kernel"
    with pytest.raises(BadRequestError, match="user-space, kernel"):
        check_kind("hardware")


@pytest.mark.parametrize("rate", [-1.0, float("nan"), float("inf"), 2e9])
def test_a_rate_that_is_none_is_refused(rate: float) -> None:
    with pytest.raises(BadRequestError, match="rate_pps"):
        check_rate(rate)


@pytest.mark.parametrize("share", [0.0, -0.1, 1.1, float("nan")])
def test_a_share_that_is_none_is_refused(share: float) -> None:
    with pytest.raises(BadRequestError, match="share"):
        check_share(share)
