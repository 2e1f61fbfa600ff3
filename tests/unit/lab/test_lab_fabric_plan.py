"""What a fabric consists of, and how its counters are read: pure functions."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.errors import BadRequestError, LabError
from lab.fabric import plan as fabric_plan
from lab.fabric.counters import parse_extended, parse_received
from lab.fabric.plan import FabricPlan, parse_bitrate

NETSTAT = """TcpExt: SyncookiesSent TCPTimeouts TCPSpuriousRTOs
TcpExt: 0 17 2
IpExt: InNoRoutes InTruncatedPkts
IpExt: 0 3
"""
DEVICES = """Inter-|   Receive                          |  Transmit
 face |bytes    packets errs drop fifo |bytes
    lo:     0       0    0    0    0        0
  eth0:123456     100    0    0    0     9999
"""

plans = st.one_of(
    st.builds(
        fabric_plan.incast,
        st.integers(1, 60),
        st.just(10**9),
        st.just(32_000),
        st.just(10**9),
        st.integers(1, 3),
    ),
    st.builds(
        fabric_plan.uplink,
        st.integers(1, 30),
        st.just(10**8),
        st.just(10**9),
        st.just(32_000),
        st.integers(1, 3),
    ),
)


def walk(plan: FabricPlan, switch: str, target: str) -> str:
    """Follow the switches' tables to a host and return where that ends."""
    host = next(host for host in plan.hosts if host.name == target)
    for _ in plan.switches:
        port = plan.port_towards(switch, host)
        if port not in plan.switches:
            return port
        switch = port
    return "a loop"


@given(plans)
def test_every_switch_leads_to_every_host(plan: FabricPlan) -> None:
    for switch in plan.switches:
        for host in plan.hosts:
            assert walk(plan, switch, host.name) == host.name


@given(plans)
def test_no_two_hosts_share_a_name_or_an_address(plan: FabricPlan) -> None:
    for values in (
        [host.name for host in plan.hosts],
        [host.mac for host in plan.hosts] + [host.control_mac for host in plan.hosts],
        [address for host in plan.hosts for address in host.addresses],
        [host.control_address for host in plan.hosts] + [fabric_plan.CONTROLLER_ADDRESS],
    ):
        assert len(set(values)) == len(values)


@given(plans)
def test_a_description_is_a_tree_that_json_can_hold(plan: FabricPlan) -> None:
    described = json.loads(json.dumps(plan.describe()))
    nodes = [*described["switches"], *(host["name"] for host in described["hosts"])]
    reached, links = {nodes[0]}, [set(link["between"]) for link in described["links"]]
    for _ in nodes:
        reached = reached.union(*(link for link in links if link & reached))
    assert reached == set(nodes)
    assert len(links) == len(nodes) - 1


def test_only_ports_of_switches_are_shallow() -> None:
    star = fabric_plan.incast(3, 500_000_000, 32_000, 500_000_000)
    assert [(switch, port) for switch, port, _ in star.shallow_ports()] == [("s1", "h4")]
    line = fabric_plan.uplink(2, 500_000_000, 500_000_000, 32_000)
    assert {(switch, port) for switch, port, _ in line.shallow_ports()} == {
        ("s1", "s2"),
        ("s2", "s1"),
    }


@pytest.mark.parametrize(
    ("text", "bps"),
    [("500Mbps", 500_000_000), ("1.5 Gbit/s", 1_500_000_000), ("64kb/s", 64_000), (1_000, 1_000)],
)
def test_rates_are_read(text: str | int, bps: int) -> None:
    assert parse_bitrate("line", text) == bps


@pytest.mark.parametrize("text", ["", "500", "fast", "-1Mbps", "1Mpps", "0.1kbps", 999, 10**11])
def test_a_rate_that_is_none_is_refused_by_the_name_of_its_field(text: str | int) -> None:
    with pytest.raises(BadRequestError, match="bottleneck: "):
        parse_bitrate("bottleneck", text)


@pytest.mark.parametrize(
    ("field", "senders", "buffer_bytes", "vms"),
    [("senders", 0, 32_000, 1), ("senders", 200, 32_000, 1), ("buffer_bytes", 2, 1_500, 1),
     ("vms", 2, 32_000, 0)],
)  # fmt: skip
def test_numbers_that_make_no_fabric_are_refused(
    field: str, senders: int, buffer_bytes: int, vms: int
) -> None:
    with pytest.raises(BadRequestError, match=f"^{field}: "):
        fabric_plan.incast(senders, 10**9, buffer_bytes, 10**9, vms)


def test_kernel_tables_are_read_by_name() -> None:
    assert parse_extended(NETSTAT, "TcpExt")["TCPTimeouts"] == 17
    assert parse_extended(NETSTAT, "IpExt") == {"InNoRoutes": 0, "InTruncatedPkts": 3}
    assert parse_received(DEVICES) == {"lo": 0, "eth0": 123456}


def test_a_table_that_the_kernel_lacks_is_said() -> None:
    with pytest.raises(LabError, match="MPTcpExt"):
        parse_extended(NETSTAT, "MPTcpExt")
