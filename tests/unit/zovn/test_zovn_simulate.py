"""The simulator against what can be computed by hand, and what the paper is about."""

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from zovn.simulate.engine import run
from zovn.simulate.results import Result
from zovn.simulate.scenario import (
    ALGORITHMS,
    MODES,
    Algorithm,
    Background,
    Buffers,
    Fabric,
    Flow,
    Mode,
    Queries,
    Scenario,
    Tcp,
    headroom,
)

FOLDER = Path(__file__).parents[3] / "zovn" / "core" / "simulate"
CHASSIS = Fabric(pods=1, chassis=1, servers=16, aggregations=1, cores=1)
RTO_S = Tcp().rto_min_s
SMALL = Fabric(pods=2, chassis=4, servers=4, aggregations=2, cores=2)


@pytest.fixture(autouse=True, scope="module")
def _built() -> None:
    subprocess.run(["make", "-s", "-C", FOLDER], check=True, timeout=60)


def of_flows(*flows: Flow, mode: Mode = "LL", fabric: Fabric = CHASSIS) -> Scenario:
    return Scenario(mode=mode, fabric=fabric, queries=Queries(count=0), flows=flows)


def incast(mode: Mode, senders: int = 32, size: int = 20_000) -> Result:
    flows = [
        Flow(source=(1 + at % 15, at // 15), destination=(0, 0), size=size) for at in range(senders)
    ]
    return run(of_flows(*flows, mode=mode))


def last(result: Result) -> float:
    times = [time for time in result.flow_s if time is not None]
    assert len(times) == len(result.flow_s)
    return max(times)


def small_queries(seed: int, mode: Mode = "LL") -> Scenario:
    queries = Queries(count=10, interval_s=1e-4)
    return Scenario(mode=mode, fabric=SMALL, queries=queries, seed=seed)


def test_a_segment_takes_its_links_its_hops_and_the_stack() -> None:
    scenario = of_flows(Flow(source=(0, 0), destination=(1, 0), size=1000))
    virtual, wire = (1052 + 18) * 8 / 40e9, (1052 + 54 + 20) * 8 / 10e9
    assert last(run(scenario)) == pytest.approx(2 * virtual + 2 * wire + 2e-6 + 10e-6, abs=1e-12)


def test_a_segment_within_a_server_crosses_no_wire_and_has_no_overlay() -> None:
    result = run(of_flows(Flow(source=(0, 0), destination=(0, 2), size=1000)))
    assert last(result) == pytest.approx(2 * (1052 + 18) * 8 / 40e9 + 10e-6, abs=1e-12)
    assert result.places["host_to_chassis"].bytes == 0


def test_a_message_on_an_idle_network_is_pipelined() -> None:
    full, rest = 1520 * 8 / 10e9, (20_000 - 14 * 1394 + 52 + 74) * 8 / 10e9
    first, end = 1464 * 8 / 40e9, (20_000 - 14 * 1394 + 52 + 18) * 8 / 40e9
    # The last segment waits at the chassis' switch for the full one before it.
    expected = first + 14 * full + 1e-6 + full + rest + 1e-6 + end + 10e-6
    result = run(of_flows(Flow(source=(0, 0), destination=(1, 0), size=20_000)))
    assert last(result) == pytest.approx(expected, abs=1e-12)


def test_a_message_crosses_the_core_in_six_hops() -> None:
    scenario = of_flows(Flow(source=(0, 0), destination=(15, 0), size=1000), fabric=SMALL)
    virtual, wire = (1052 + 18) * 8 / 40e9, (1052 + 54 + 20) * 8 / 10e9
    assert last(run(scenario)) == pytest.approx(2 * virtual + 6 * (wire + 1e-6) + 10e-6, abs=1e-12)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_one_flow_fills_its_link(mode: Mode, algorithm: Algorithm) -> None:
    scenario = of_flows(Flow(source=(0, 0), destination=(1, 0), size=10_000_000), mode=mode)
    seconds = last(run(replace(scenario, tcp=Tcp(algorithm=algorithm))))
    assert 10_000_000 * 8 / seconds / (10e9 * 1394 / 1520) > 0.98


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_flows_share_a_lossless_link_fairly(algorithm: Algorithm) -> None:
    flows = [Flow(source=(1 + at, 0), destination=(0, 0), size=5_000_000) for at in range(4)]
    result = run(replace(of_flows(*flows, mode="ZZ"), tcp=Tcp(algorithm=algorithm)))
    ends = [time for time in result.flow_s if time is not None]
    assert len(ends) == 4
    assert min(ends) > 0.97 * max(ends)
    assert 20_000_000 * 8 / max(ends) / (10e9 * 1394 / 1520) > 0.95


def test_what_a_full_port_drops_of_long_flows_is_sent_once_more() -> None:
    flows = [Flow(source=(1 + at, 0), destination=(0, 0), size=20_000_000) for at in range(4)]
    result = run(of_flows(*flows))
    assert (result.timeouts, result.retransmitted) == (0, result.drops)
    assert result.recoveries > 0
    assert 80_000_000 * 8 / last(result) / (10e9 * 1394 / 1520) > 0.98


@pytest.mark.parametrize("mode", ["LL", "ZL"])
def test_incast_on_a_shallow_port_times_out(mode: Mode) -> None:
    result = incast(mode)
    assert result.timeouts > 0
    assert result.dropped.keys() == {"chassis_to_host"}
    assert last(result) > RTO_S


@pytest.mark.parametrize("mode", ["LZ", "ZZ"])
def test_incast_on_a_lossless_port_takes_the_time_of_its_bytes(mode: Mode) -> None:
    result = incast(mode)
    assert (result.drops, result.timeouts, result.retransmitted) == (0, 0, 0)
    bytes_on_wire = 32 * (20_000 + 15 * (52 + 74))
    assert bytes_on_wire * 8 / 10e9 < last(result) < 1.1 * bytes_on_wire * 8 / 10e9


def test_a_lossless_port_never_holds_more_than_its_buffer() -> None:
    result = incast("ZZ", senders=45, size=200_000)
    assert result.overruns == 0
    assert result.places["host_to_chassis"].pauses > 0
    assert Buffers().port - 20_000 < result.places["host_to_chassis"].most_held <= Buffers().port


def test_the_smallest_buffer_that_is_accepted_drops_nothing() -> None:
    least = round(headroom(CHASSIS)) + 10
    flows = [Flow(source=(1 + at, 0), destination=(0, 0), size=100_000) for at in range(15)]
    scenario = replace(of_flows(*flows, mode="ZZ"), buffers=Buffers(port=least))
    result = run(scenario)
    assert (result.drops, result.left) == (0, 0)


def two_senders_to_the_wire(mode: Mode) -> Result:
    """Two VMs of a server, each as fast as its virtual link, share the wire."""
    flows = [
        Flow(source=(0, vm), destination=(1 + vm, 0), size=1_000_000, datagrams=True)
        for vm in (0, 1)
    ]
    return run(of_flows(*flows, mode=mode))


@pytest.mark.parametrize("mode", ["LL", "LZ"])
def test_a_lossy_virtual_switch_drops_what_the_wire_does_not_take(mode: Mode) -> None:
    result = two_senders_to_the_wire(mode)
    assert result.dropped.keys() == {"host_to_chassis"}
    assert result.datagrams_received + result.drops == result.datagrams_sent


@pytest.mark.parametrize("mode", ["ZL", "ZZ"])
def test_a_lossless_virtual_switch_stops_its_vms(mode: Mode) -> None:
    result = two_senders_to_the_wire(mode)
    assert (result.drops, result.datagrams_received) == (0, result.datagrams_sent)
    assert result.places["vm_to_host"].pauses > 0


def two_senders_to_a_vm(mode: Mode) -> Result:
    """A VM is slower than the wire, and the local VM, that send to it."""
    flows = [
        Flow(source=source, destination=(0, 0), size=1_000_000, datagrams=True)
        for source in ((0, 1), (1, 0))
    ]
    return run(of_flows(*flows, mode=mode, fabric=replace(CHASSIS, vm_bps=8e9)))


@pytest.mark.parametrize(
    ("mode", "places"),
    [("LL", {"host_to_vm"}), ("LZ", {"host_to_vm"}), ("ZL", {"network_card"}), ("ZZ", set())],
)
def test_a_slow_vm_shifts_the_drops_to_the_lossy_side(mode: Mode, places: set[str]) -> None:
    result = two_senders_to_a_vm(mode)
    assert result.dropped.keys() == places
    assert result.overruns == 0


@pytest.mark.parametrize("blocking", [False, True])
def test_head_of_line_blocking_is_an_option(blocking: bool) -> None:
    flood = [
        Flow(source=(at, 0), destination=(15, 0), size=2_000_000, datagrams=True) for at in range(4)
    ]
    local = Flow(source=(0, 0), destination=(0, 1), size=20_000, start_s=5e-4)
    scenario = of_flows(*flood, local, mode="ZZ")
    result = run(replace(scenario, buffers=Buffers(blocking=blocking, virtual_queue=16)))
    assert result.drops == 0
    assert (last_of(result) > 2e-3) is blocking


def last_of(result: Result) -> float:
    time = result.flow_s[-1]
    assert time is not None
    return time


@pytest.mark.parametrize(("own", "slow"), [(0, True), (1, False)])
def test_a_class_of_its_own_keeps_a_flood_away(own: int, slow: bool) -> None:
    flood = [
        Flow(source=(at, 1), destination=(15, 1), size=2_000_000, datagrams=True, traffic_class=own)
        for at in range(4)
    ]
    wanted = Flow(source=(4, 0), destination=(15, 0), size=20_000, start_s=5e-4)
    result = run(of_flows(*flood, wanted, mode="ZZ"))
    assert result.drops == 0
    assert (last_of(result) > 5e-4 + 200e-6) is slow


@pytest.mark.parametrize("mode", MODES)
def test_every_query_is_answered(mode: Mode) -> None:
    result = run(small_queries(3, mode))
    assert (result.unfinished, len(result.query_ms), result.left) == (0, 10, 0)
    assert result.segments_sent == result.segments_received + result.drops


def test_a_query_on_an_idle_network_takes_two_bursts_and_the_replies() -> None:
    message_ms = (20_000 + 15 * (52 + 74)) * 8 / 10e9 * 1e3
    way_ms = 10e-3 + 6 * 1e-3 + 5 * 1520 * 8 / 10e9 * 1e3
    scenario = replace(small_queries(1, "ZZ"), queries=Queries(count=1))
    (time_ms,) = run(scenario).query_ms
    # Of four messages in a burst, one may stay within the server.
    assert 2 * 3 * message_ms < time_ms < 2 * 4 * message_ms + 2 * message_ms + 4 * way_ms


def test_a_query_sends_a_request_and_a_reply_to_each_tier() -> None:
    scenario = replace(small_queries(1, "ZZ"), queries=Queries(count=1, request=1, reply=1))
    result = run(scenario)
    messages = 2 * (4 + 16)
    acknowledgements = 4 + 16  # of replies; replies acknowledge requests
    assert result.segments_sent == messages + acknowledgements


def test_a_seed_repeats_a_run() -> None:
    assert run(small_queries(7)) == run(small_queries(7))
    assert run(small_queries(7)).query_ms != run(small_queries(8)).query_ms


def test_the_background_ends_with_the_queries() -> None:
    scenario = small_queries(1, "ZZ")
    result = run(replace(scenario, background=Background(load=0.2)))
    assert result.background_flows > 0
    assert result.datagrams_received == result.datagrams_sent
    assert (result.unfinished, result.left, result.drops) == (0, 0, 0)


def test_the_limit_ends_a_run() -> None:
    result = run(replace(small_queries(1), limit_s=1e-4))
    assert result.unfinished > 0
    assert result.simulated_s == pytest.approx(1e-4, rel=0.1)


def test_percent_by_percent_the_progress_is_told() -> None:
    seen: list[int] = []
    run(small_queries(1), seen.append)
    assert seen == list(range(10, 101, 10))
