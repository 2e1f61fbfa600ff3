"""Names and addresses of machines beside the host: none is given twice, none can be taken."""

import pytest

from lab.errors import BadRequestError
from lab.plan import MACHINES, MAX_ROUTERS, check_name, ports, uplinks
from lab.programs.processes import Place
from lab.routers.router import Surroundings


def test_no_router_can_be_called_as_a_machine_is() -> None:
    for name in MACHINES:
        with pytest.raises(BadRequestError, match="name"):
            check_name(name)


def test_no_bridge_sees_one_mac_address_twice() -> None:
    for side, uplink in enumerate(uplinks()):
        known = [uplink.machine_mac, uplink.host_mac]
        for router in range(1, MAX_ROUTERS + 1):
            port = ports(router)[side]
            known += [port.router_mac, port.host_mac, port.idle_mac, port.nowhere_mac]
        assert len(set(known)) == len(known)


def test_the_two_sides_share_no_name_and_no_network() -> None:
    near, far = uplinks()
    assert near.bridge != far.bridge
    assert near.host_interface != far.host_interface
    assert [port.network for port in ports(7)] == ["10.7.0.0/24", "10.7.1.0/24"]


@pytest.mark.parametrize("side", [0, 1])
def test_the_next_hop_is_the_machine_where_there_is_one(side: int) -> None:
    port, place = ports(3)[side], Place("/run/netns/x")
    plain = Surroundings("x-dom0", place, place, place, beside=False)
    beside = Surroundings("x-dom0", place, place, place, beside=True)
    assert plain.next_hop_mac(port) == port.host_mac
    assert beside.next_hop_mac(port) == uplinks()[side].machine_mac
