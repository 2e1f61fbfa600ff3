"""A coordinator's clock, flows and configuration, in its compiled pure parts and in Python."""

import ctypes
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from xco_coordinator_rig import MS, NOW, US, build, long

from xco.coordinator.config import checked, endpoint, plain
from xco.coordinator.shell import check_key
from xco.errors import ConfigError
from xco.protocol.keys import derive, host_file
from xco.units import format_duration


@pytest.fixture(scope="module")
def shim(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    return build(tmp_path_factory.mktemp("shim"))


MAPPED = bytes(10) + b"\xff\xff"

exchanges = st.lists(
    st.tuples(st.integers(0, 10**6), st.integers(0, 10**6), st.integers(0, 10**5)),
    min_size=1,
    max_size=40,
)


@given(exchanges, st.integers(-(10**12), 10**12))
def test_the_offset_is_within_half_the_shortest_way_of_late(
    shim: ctypes.CDLL, ways: list[tuple[int, int, int]], skew: int
) -> None:
    stamps = (ctypes.c_int64 * 4 * len(ways))()
    now = 2 * 10**12
    for index, (there, back, within) in enumerate(ways):
        arrived = now + there + skew
        stamps[index][:] = [now, arrived, arrived + within, now + there + within + back]
        now += there + within + back + 1
    way = ctypes.c_int64()
    offset = shim.shim_offset(stamps, len(ways), long(now), ctypes.byref(way))
    shortest = min(there + back for there, back, _ in ways[-16:])
    assert way.value == shortest
    assert abs(offset - skew) <= shortest / 2 + 1


def test_samples_that_cannot_be_are_not_believed(shim: ctypes.CDLL) -> None:
    way = ctypes.c_int64()
    absurd = [(0, 5, 9, 3), (10, 0, 0, 5), (0, 0, 0, 2 * 10**9)]
    stamps = (ctypes.c_int64 * 4 * len(absurd))()
    for index, row in enumerate(absurd):
        stamps[index][:] = row
    shim.shim_offset(stamps, len(absurd), long(100), ctypes.byref(way))
    assert way.value == -1


def test_a_flow_is_large_once_it_passes_the_threshold_within_the_window(
    shim: ctypes.CDLL,
) -> None:
    flows = ctypes.c_void_p(shim.shim_flows(8000, long(10 * MS), long(10**9)))
    seen = [shim.shim_see(flows, long(NOW + n * MS), 7, 1500, False) for n in range(6)]
    assert seen == [False] * 5 + [True]
    slow = [shim.shim_see(flows, long(NOW + n * 3 * MS), 8, 1500, False) for n in range(50)]
    assert not any(slow)
    assert shim.shim_see(flows, long(NOW), 9, 1500, True)  # where newcomers wait, whoever is seen


def test_the_table_of_flows_has_an_end_and_no_duplicates(shim: ctypes.CDLL) -> None:
    flows = ctypes.c_void_p(shim.shim_flows(8000, long(10 * MS), long(MS)))
    assert [shim.shim_add(flows, long(NOW), n) for n in range(257)] == [*range(256), -1]
    shim.xco_flows_remove(flows, 5)
    assert shim.shim_add(flows, long(NOW), 6) == -1  # it has one already
    assert shim.shim_add(flows, long(NOW), 1000) == 5


def test_flows_that_leave_the_topology_leave_room_for_those_that_do_not(
    shim: ctypes.CDLL,
) -> None:
    flows = ctypes.c_void_p(shim.shim_flows(8000, long(10 * MS), long(MS)))
    assert shim.shim_add_outside(flows, long(NOW)) == 128
    assert [shim.shim_add(flows, long(NOW), n + 1000) for n in range(129)][-2:] == [255, -1]
    assert not shim.xco_flows_room(flows, 0, 0)
    for flow in range(128):
        shim.xco_flows_remove(flows, flow)
    assert shim.xco_flows_room(flows, 64, 127)
    assert not shim.xco_flows_room(flows, 64, 128)


@given(st.integers(0, 99 * MS), st.integers(0, 10 * MS))
def test_an_arrival_is_never_before_its_stamp_and_later_by_the_readings_alone(
    shim: ctypes.CDLL, ago: int, step: int
) -> None:
    # both clocks are one here, which every reading sets forward
    arrival = shim.shim_arrival(long(NOW - ago), long(NOW), long(step))
    late = step if ago + step < 100 * MS else ago + 2 * step  # too long ago is not believed
    assert arrival == NOW - ago + late


def packet(version: int, size: int, rest: bytes) -> bytes:
    """Return the beginning of a packet: its version and its size stand where they belong."""
    if version == 4:
        return bytes([0x45, 0]) + size.to_bytes(2, "big") + rest
    return bytes([0x60, 0, 0, 0]) + size.to_bytes(2, "big") + b"\x06\x40" + rest


packets = st.builds(
    packet,
    st.sampled_from([4, 6]),
    st.integers(0, 0xFFFF),
    st.one_of(
        st.binary(min_size=10, max_size=60),
        st.binary(min_size=20, max_size=20).map(lambda rest: MAPPED + rest),
    ),
)


@given(st.one_of(st.binary(max_size=60), packets))
def test_any_bytes_are_a_packet_or_none(shim: ctypes.CDLL, head: bytes) -> None:
    pair = (ctypes.c_uint8 * 32)()
    length = shim.shim_sight(head, ctypes.c_size_t(len(head)), pair)
    if len(head) >= 40 and head[0] >> 4 == 6:
        mapped = head[8:20] == MAPPED
        assert length == (-1 if mapped else 40 + int.from_bytes(head[4:6], "big"))
        assert mapped or bytes(pair) == head[8:40]
    elif len(head) >= 20 and head[0] >> 4 == 4:
        assert length == int.from_bytes(head[2:4], "big")
        assert bytes(pair) == MAPPED + head[12:16] + MAPPED + head[16:20]
    else:
        assert length == -1


HANG = 1000 * MS
START_HANGS = 10


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 4 * HANG)), max_size=30))
def test_a_loop_hangs_when_it_made_no_turn_for_longer_than_it_may(
    shim: ctypes.CDLL, waits: list[tuple[int, int]]
) -> None:
    """What passes between two looks counts up to half of that: the guard had no CPU either."""
    seen, now, turns, still = (ctypes.c_int64 * 3)(), NOW, 0, 0
    shim.xco_progress_begin(seen, long(now))
    shim.xco_progress_hangs.restype = ctypes.c_bool
    for made, wait in waits:
        now, turns = now + wait, turns + made
        still = 0 if made else still + min(wait, HANG // 2)
        hangs = shim.xco_progress_hangs(seen, ctypes.c_uint64(turns), long(now), long(HANG))
        assert hangs == (still > (HANG if turns else START_HANGS * HANG))


GOOD = """
interface eth0
key_file /k
line_bps 1000000000
small_bps 50000000
newcomer_bps 50000000
outside_bps 100000000
controller 10.0.0.7 7400
address 10.0.0.2 2
address fd00::3 3
address 10.0.0.1 1
over 1 0 1000
vm gold0 3 50
vm batch0 1 0
"""


def read(shim: ctypes.CDLL, text: str, address: str = "::ffff:10.0.0.2") -> tuple[str, int]:
    message, host = ctypes.create_string_buffer(200), ctypes.c_int()
    wanted = (text.encode(), address.encode(), ctypes.byref(host), message)
    shim.shim_config(*wanted, ctypes.c_size_t(200))
    return message.value.decode(), host.value


def test_plain_configurations_are_read_and_addresses_found(shim: ctypes.CDLL) -> None:
    hosts = [read(shim, GOOD, one)[1] for one in ("::ffff:10.0.0.2", "fd00::3", "fd00::4")]
    assert hosts == [2, 3, 0xFFFF]
    assert read(shim, GOOD)[0] == ""


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("speed 3", "speed: no such key"),
        ("guard_ns -1", "guard_ns: bad value"),
        ("guard_ns", "guard_ns: bad value"),
        ("host 65535", "host: bad value"),
        ("address 10.0.0.300 1", "address: bad value"),
        ("controller 10.0.0.7 0", "controller: bad value"),
        ("peer 10.0.0.300 1", "peer: bad value"),
        ("hosts 1", "hosts: bad value"),
        ("peer_port 65536", "peer_port: bad value"),
        ("interface an_interface_with_a_long_name", "interface: bad value"),
        ("digest 00", "digest: bad value"),
        ("vm gold0", "vm: bad value"),
        ("vm gold0 101 0", "vm: bad value"),
        ("vm gold0 1 65536", "vm: bad value"),
        ("vm an_interface_with_a_long_name 1 0", "vm: bad value"),
        ("small_bytes 100", "small_bytes: not a power of two"),
    ],
)
def test_plain_mistakes_are_named(shim: ctypes.CDLL, line: str, problem: str) -> None:
    assert problem in read(shim, GOOD + line)[0]


@given(st.text(alphabet="abcdefghost_ns 0123456789.:\n-", max_size=200))
def test_any_plain_text_is_read_or_refused(shim: ctypes.CDLL, text: str) -> None:
    assert read(shim, text)[0]


TOPOLOGY = """
[switch.s]
[host.a]
addresses = ["10.0.0.1"]
[host.b]
addresses = ["10.0.0.2", "fd00::2"]
[[link]]
between = ["a", "s"]
capacity = "1Gbps"
[[link]]
between = ["b", "s"]
capacity = "1Gbps"
"""


@pytest.fixture
def table(tmp_path: Path) -> dict[str, object]:
    (tmp_path / "topology.toml").write_text(TOPOLOGY)
    return {
        "host": "a",
        "interface": "eth0",
        "topology": str(tmp_path / "topology.toml"),
        "key_file": str(tmp_path / "key"),
        "controllers": ["10.0.0.7:7400", "[fd00::7]:7400"],
    }


def test_what_is_written_for_the_loop_is_what_it_reads(
    shim: ctypes.CDLL, table: dict[str, object]
) -> None:
    text = plain(checked(table))
    assert read(shim, text) == ("", 1)
    assert {"line_bps 1000000000", "over 1 0 1000000000", "guard_ns 50000"} <= set(text.split("\n"))


ALONE: dict[str, object] = {"controllers": [], "fallback": "hygenicc", "marks": "hide"}


def test_a_host_needs_no_controller_with_hygenicc(
    shim: ctypes.CDLL, table: dict[str, object]
) -> None:
    text = plain(checked(table | ALONE | {"rate": "500Mbps"}))
    assert read(shim, text)[0] == ""
    lines = {"hygenicc 1", "hosts 2", "peer_port 7401", "port_bps 1000000000", "peer 10.0.0.2 1"}
    assert lines <= set(text.split("\n"))
    assert "controller " not in text


@pytest.mark.parametrize(("law", "line"), [("published", "published 1"), ("fair", "published 0")])
def test_the_loop_is_told_the_law_of_hygenicc(
    shim: ctypes.CDLL, table: dict[str, object], law: str, line: str
) -> None:
    text = plain(checked(table | ALONE | {"law": law}))
    assert read(shim, text)[0] == ""
    assert line in text.split("\n")


@pytest.mark.parametrize(
    ("admission", "line"),
    [(0.5, "admission_ppm 500000"), (1, "admission_ppm 1000000"), (1e-9, "admission_ppm 1")],
)
def test_the_loop_is_told_when_to_refuse_connections(
    shim: ctypes.CDLL, table: dict[str, object], admission: float, line: str
) -> None:
    text = plain(checked(table | ALONE | {"admission": admission}))
    assert read(shim, text)[0] == ""
    assert line in text.split("\n")
    assert "admission_ppm" not in plain(checked(table | ALONE))


def test_connections_are_refused_by_a_program_alone(table: dict[str, object]) -> None:
    with pytest.raises(ConfigError) as raised:
        checked(table | ALONE | {"admission": 0.5, "classifier": "u32"}, "xco.toml")
    assert (
        'xco.toml: coordinator.admission: needs a BPF program, and coordinator.classifier is "u32"'
        ' (write coordinator.classifier = "bpf", or leave' in str(raised.value)
    )


@pytest.mark.parametrize("key", ["hosts", "peer_port", "port_bps"])
def test_a_host_without_a_controller_needs_to_know_the_others(
    shim: ctypes.CDLL, table: dict[str, object], key: str
) -> None:
    lines = plain(checked(table | ALONE)).splitlines()
    text = "\n".join(line for line in lines if not line.startswith(f"{key} "))
    assert read(shim, text)[0] == "hosts, peer_port or port_bps: missing"


def test_each_host_needs_an_address_with_hygenicc(tmp_path: Path, table: dict[str, object]) -> None:
    nowhere = TOPOLOGY.replace('addresses = ["10.0.0.2", "fd00::2"]', "")
    (tmp_path / "topology.toml").write_text(nowhere)
    assert checked(table)
    with pytest.raises(ConfigError, match="an address of each host, and b has none"):
        checked(table | ALONE)


def test_keys_for_all_hosts_are_needed_with_hygenicc(
    tmp_path: Path, table: dict[str, object]
) -> None:
    master, path = bytes(32), tmp_path / "key"
    path.write_bytes(host_file(derive(master, 0)))
    check_key(checked(table))
    with pytest.raises(ConfigError, match=r"0 hosts of 2 \(make it again on a controller: xco key"):
        check_key(checked(table | ALONE))
    path.write_bytes(host_file(derive(master, 0, 2)))
    check_key(checked(table | ALONE))


@pytest.mark.parametrize(
    ("key", "value", "problem"),
    [
        ("host", "z", "no host 'z' in the topology"),
        ("guard", "1", "'1'"),
        ("guard", "480us", "does not fit the other times (guard and spin at most 500us together)"),
        ("hysteresis", "20us", "does not fit the other times (at most the hysteresis)"),
        ("silence", "10ms", "does not fit the other times (three heartbeats or more)"),
        ("heartbeat", "1ms", "does not fit the other times (at least 1ms more than poll_closed)"),
        ("hang", "10ms", "does not fit the other times (longer than the silence)"),
        ("small_packets", "100", "write a power of two"),
        ("controllers", ["10.0.0.7"], "'10.0.0.7'"),
        ("controllers", [], "there is none (write a list of 1 to 4"),
        ("fallback", "hygenicc", 'coordinator.marks is "off" (write coordinator.marks = "hide")'),
        ("fallback", "none", 'write "safe", "open" or "hygenicc"'),
        ("law", "published", '"safe" (write coordinator.fallback = "hygenicc", or coordinator.law'),
        ("law", "just", 'write "fair" or "published"'),
        ("peer_port", 0, "from 1 to 65535"),
        ("admission", 0.5, '"safe" (write coordinator.fallback = "hygenicc", or leave coordinator'),
        ("admission", 0, "a share of marked packets above 0 and at most 1"),
        ("admission", 1.1, "a share of marked packets above 0 and at most 1"),
        ("admission", "much", "a share of marked packets above 0 and at most 1"),
        ("bypass_share", 0.9, "<= 0.5"),
        ("gaurd", "1us", "no such key (did you mean guard?)"),
    ],
)
def test_mistakes_in_the_table_are_named_with_a_fix(
    table: dict[str, object], key: str, value: object, problem: str
) -> None:
    with pytest.raises(ConfigError) as raised:
        checked(table | {key: value}, "xco.toml")
    assert "xco.toml" in str(raised.value)
    assert "coordinator" in str(raised.value)
    assert problem in str(raised.value)


@given(st.integers(1, 2000), st.integers(1, 100))
def test_silence_is_at_least_three_heartbeats(
    tmp_path_factory: pytest.TempPathFactory, heartbeat_us: int, beats: int
) -> None:
    folder = tmp_path_factory.getbasetemp()
    (folder / "topology.toml").write_text(TOPOLOGY)
    heartbeat = 1250 * US + heartbeat_us * US
    table = {
        "host": "a",
        "interface": "eth0",
        "topology": str(folder / "topology.toml"),
        "key_file": "/k",
        "controllers": ["10.0.0.7:7400"],
        "heartbeat": format_duration(heartbeat),
        "silence": format_duration(beats * heartbeat),
    }
    if beats >= 3:
        assert checked(table).timing.silence == beats * heartbeat
    else:
        with pytest.raises(ConfigError, match="three heartbeats"):
            checked(table)


@pytest.mark.parametrize("text", ["10.0.0.7:0", "fd00::7:7400", "[10.0.0.7]:7400", "host:7400"])
def test_endpoints_that_are_none_are_refused(text: str) -> None:
    with pytest.raises(ConfigError, match=r"coordinator\.controllers"):
        endpoint(text)
