"""VMs with weights and guarantees behind one gate: what each gets of it, as they come and go.

The queues are filled while the gate is closed, and the first frames that leave are counted: how
fast the machine is makes no difference.
"""

import os
import re
import signal
from collections.abc import Iterator

import pytest
from prometheus_client import CollectorRegistry
from support.inconclusive import inconclusive
from support.stalls import Stalls
from support.waiting import PATIENCE_S, eventually
from xco_vms_rig import FAR_MAC, FAST, WEIGHTS, Queues, Vms, vms_rig

from benchmarks.xco.gates.rig import HOST, OTHER, PAYLOAD, RECEIVER, Running
from lab.system import namespaces
from xco.coordinator.status import Metrics, VmStatus, status
from xco.protocol.wire import Mode, Permit, Strategy

pytestmark = [pytest.mark.root, pytest.mark.timeout(180)]
GOLD_AT, TIN_AT, OTHER_AT = "10.77.0.11", "10.77.0.12", "10.77.0.13"
GOLD_MAC = "02:bb:00:00:00:01"
RATE_BPS, SLOW_BPS = 20_000_000, 100_000
FRAMES = 2000
SLOT = "7e00:18"
"""The class of the first listed VM behind the first gate."""
LAST_UNLISTED = "7e40:2f"
"""That of the last one behind the gate of destinations outside the topology."""
CLASSES = "class show dev e0"
GUARANTEED = 10
GUARANTEE = """
[vm.gold]
interface = "gold0"
guarantee = "10Mbps"
[vm.tin]
interface = "tin0"
weight = 100
"""


@pytest.fixture
def vms() -> Iterator[Vms]:
    with vms_rig("xcovm") as made:
        yield made


def started(vms: Vms, tables: str) -> tuple[Queues, Running]:
    """Start a coordinator, and the controller that directs it."""
    vms.bench.tables = tables
    stand_in = vms.bench.stand_in()
    stand_in.strategy = Strategy.RATE
    running = vms.bench.start(vms.bench.config())
    stand_in.wait_for(lambda: stand_in.reports)
    return Queues(vms, stand_in, running), running


def here(running: Running) -> int:
    return running.statistics().values["vms"]


def has_class(vms: Vms, class_id: str) -> bool:
    return class_id in vms.tc(f"class show dev e0 classid {class_id}")


@pytest.mark.parametrize(("gold", "tin"), [(1400, 1400), (1400, 350), (350, 1400)])
def test_two_vms_get_bytes_by_their_weights(vms: Vms, gold: int, tin: int) -> None:
    vms.add("gold", GOLD_AT)
    vms.add("tin", TIN_AT)
    queues, running = started(vms, WEIGHTS)
    queues.fill(gold=(GOLD_AT, gold), tin=(TIN_AT, tin))
    counts = queues.open(FRAMES, RATE_BPS)
    ratio = counts[GOLD_AT] * (gold + 42) / (counts[TIN_AT] * (tin + 42))
    assert ratio == pytest.approx(3, rel=0.05)
    check_status(running)


def test_gso_packets_that_pass_uncut_get_no_more(vms: Vms) -> None:
    """HTB sends one packet in a turn, however large: with too small a turn this was 1.5 to 1."""
    vms.add("gold", GOLD_AT)
    vms.add("tin", TIN_AT)
    queues, _ = started(vms, WEIGHTS)
    queues.filling = Mode.RATE, Permit(1, SLOW_BPS)
    queues.fill(gold=(GOLD_AT, PAYLOAD), tin=(TIN_AT, 2 * PAYLOAD))
    counts = queues.open(FRAMES, RATE_BPS)
    assert counts[GOLD_AT] / counts[TIN_AT] == pytest.approx(3, rel=0.05)


def check_status(running: Running) -> None:
    found = {vm.interface: vm for vm in status(running.config).vms}
    sent = found["gold0"].sent_bytes
    assert found["gold0"] == VmStatus("gold0", 3, 0, sent, found["gold0"].destinations)
    assert found["tin0"].weight == 1
    assert sent > 1_000_000
    registry = CollectorRegistry()
    registry.register(Metrics(running.config))
    labels = {"interface": "e0", "vm": "gold0"}
    assert registry.get_sample_value("xco_coordinator_vm_weight", labels) == 3
    assert registry.get_sample_value("xco_coordinator_vm_sent_bytes_total", labels) == sent


def test_those_that_are_not_listed_and_the_host_count_as_one_each(vms: Vms) -> None:
    vms.add("gold", GOLD_AT)
    vms.add("other", OTHER_AT)
    queues, _ = started(vms, WEIGHTS)
    queues.fill(gold=(GOLD_AT, PAYLOAD), other=(OTHER_AT, PAYLOAD), host=(HOST, PAYLOAD))
    counts = queues.open(FRAMES, RATE_BPS)
    total = counts.total()
    assert counts[GOLD_AT] / total == pytest.approx(3 / 5, rel=0.05)
    assert counts[OTHER_AT] / total == pytest.approx(1 / 5, rel=0.05)
    assert counts[HOST] / total == pytest.approx(1 / 5, rel=0.05)


def test_a_guarantee_holds_against_a_flood_of_weight_100(vms: Vms) -> None:
    """A machine that stalls helps the guarantee alone: its class keeps what it missed for 50 ms."""
    vms.add("gold", GOLD_AT)
    vms.add("tin", TIN_AT)
    queues, _ = started(vms, GUARANTEE)
    queues.fill(gold=(GOLD_AT, PAYLOAD), tin=(TIN_AT, PAYLOAD))
    counts = queues.open(FRAMES, RATE_BPS)
    assert counts[GOLD_AT] > 0.47 * FRAMES
    assert counts[TIN_AT] > 0.2 * FRAMES


def test_a_vm_that_sends_to_two_hosts_has_one_guarantee(vms: Vms) -> None:
    """Behind each gate the whole guarantee came first: gold had twice what it was promised."""
    vms.add("gold", GOLD_AT)
    _, running = started(vms, GUARANTEE)
    eventually(lambda: here(running) == 1)
    vms.ip(f"neighbour add {OTHER} lladdr {FAR_MAC} dev v0", inside=vms.named("gold"))
    vms.send("gold", GOLD_AT, FAST)
    eventually(lambda: rates(vms) == [GUARANTEED])  # one gate has all of it
    vms.send("gold", GOLD_AT, FAST, to=OTHER)
    eventually(lambda: rates(vms) == [GUARANTEED / 2] * 2)


def rates(vms: Vms) -> list[float]:
    """Return what gold is guaranteed behind each gate to a host, in Mbit/s."""
    found = re.findall(r"class htb 7e(0[01]):18 .*rate (\d+)([KM])bit ceil", vms.tc(CLASSES))
    return [int(rate) / (1 if unit == "M" else 1000) for _, rate, unit in found]


def test_what_the_guaranteed_do_not_use_the_others_get(vms: Vms) -> None:
    vms.add("gold", GOLD_AT)
    vms.add("tin", TIN_AT)
    queues, _ = started(vms, GUARANTEE)
    queues.fill(tin=(TIN_AT, PAYLOAD))
    assert queues.open(FRAMES, RATE_BPS)[TIN_AT] >= FRAMES


def test_a_vm_that_comes_goes_and_comes_again_has_its_share_while_it_is_here(vms: Vms) -> None:
    vms.add("tin", TIN_AT)
    queues, running = started(vms, WEIGHTS)
    queues.fill(tin=(TIN_AT, PAYLOAD))  # makes the gate
    eventually(lambda: here(running) == 1)
    assert has_class(vms, SLOT)
    assert not has_class(vms, "7e00:19")
    vms.add("gold", GOLD_AT)
    eventually(lambda: here(running) == 2 and has_class(vms, "7e00:19"))
    queues.fill(gold=(GOLD_AT, PAYLOAD))
    counts = queues.open(FRAMES // 2, RATE_BPS)
    assert counts[GOLD_AT] / counts[TIN_AT] == pytest.approx(3, rel=0.05)
    vms.ip("link delete gold0")
    eventually(lambda: here(running) == 1 and not has_class(vms, "7e00:19"))
    assert running.statistics().values["gate_errors"] == 0


def test_a_vm_counts_at_its_destination_until_it_stops(vms: Vms) -> None:
    vms.add("gold", GOLD_AT)
    queues, running = started(vms, WEIGHTS)

    def destinations() -> list[int]:
        return [vm.destinations for vm in status(running.config).vms]

    queues.fill(gold=(GOLD_AT, PAYLOAD))  # makes the gate
    queues.open(FRAMES // 2, RATE_BPS)
    eventually(lambda: destinations() == [0])
    sender = vms.send("gold", GOLD_AT, 200)
    eventually(lambda: destinations() == [1])
    sender.kill()
    eventually(lambda: destinations() == [0])


def test_an_interface_that_is_renamed_is_followed(vms: Vms) -> None:
    vms.add("gold", GOLD_AT)
    _, running = started(vms, WEIGHTS)
    eventually(lambda: here(running) == 1)
    vms.ip("link set gold0 down", "link set gold0 name lead0")
    eventually(lambda: here(running) == 0)
    vms.ip("link set lead0 name tin0")
    eventually(lambda: [vm.interface for vm in status(running.config).vms] == ["tin0"])
    vms.ip("link set tin0 nomaster")  # it leaves the bridge, and is still here
    vms.ip("link add gold0 type bridge")
    eventually(lambda: here(running) == 2)


def test_a_vm_with_the_mac_of_another_gets_no_share_of_it(vms: Vms, stalls: Stalls) -> None:
    vms.add("gold", GOLD_AT, GOLD_MAC)
    vms.add("thief", OTHER_AT, GOLD_MAC)
    queues, _ = started(vms, WEIGHTS)
    queues.fill(gold=(GOLD_AT, PAYLOAD), thief=(OTHER_AT, PAYLOAD))
    counts = queues.open(FRAMES, RATE_BPS)
    ratio = counts[GOLD_AT] / counts[OTHER_AT]
    if ratio != pytest.approx(3, rel=0.05) and stalls.longest() > 0.5:
        inconclusive(f"{ratio:.3g}; a CPU stood still for {stalls.longest():.3g} s")
    assert ratio == pytest.approx(3, rel=0.05)


def test_more_vms_than_there_are_queues_are_counted_and_wait_for_one(vms: Vms) -> None:
    names = [f"d{number}" for number in range(26)]
    tables = "".join(f'[vm.{name}]\ninterface = "{name}"\nweight = 2\n' for name in names)
    vms.ip(*(f"link add {name} type bridge" for name in names[:25]))
    _, running = started(vms, tables)

    def counted() -> tuple[int, int]:
        values = running.statistics().values
        return values["vms"], values["vms_beyond"]

    eventually(lambda: counted() == (24, 1))
    vms.ip("link add d25 type bridge")
    eventually(lambda: counted() == (24, 2))
    vms.ip("link delete d0", "link delete d1")
    eventually(lambda: counted() == (24, 0))
    log = vms.bench.log.read_text()
    assert log.count("more than 24 listed VMs are here: the others count as unlisted") == 1
    assert has_class(vms, LAST_UNLISTED)
    vms.tc("qdisc delete dev e0 root")
    eventually(lambda: running.statistics().values["remakes"] == 1)
    assert has_class(vms, LAST_UNLISTED)  # all of them fit into one request


def test_a_killed_coordinator_leaves_nothing_behind(vms: Vms) -> None:
    vms.add("gold", GOLD_AT)
    before = vms.tc("qdisc show")
    queues, running = started(vms, WEIGHTS)
    queues.fill(gold=(GOLD_AT, PAYLOAD))
    os.kill(running.loop(), signal.SIGKILL)
    running.process.wait(PATIENCE_S)
    assert vms.tc("qdisc show") == before


def test_vms_that_the_host_routes_from_a_bridge_count_as_the_bridge(vms: Vms) -> None:
    vms.add("gold", GOLD_AT)
    _, running = started(vms, WEIGHTS.replace("tin0", "nat0"))
    vms.ip("link add nat0 type bridge", "link set nat0 up", "link set gold0 master nat0")
    vms.ip("address add 10.88.0.1/24 dev nat0", f"route add {GOLD_AT}/32 dev nat0")
    vms.ip(
        "route add 10.88.0.1/32 dev v0",
        f"route replace {RECEIVER}/32 via 10.88.0.1 dev v0",
        inside=vms.named("gold"),
    )
    namespaces.write_sysctls(vms.bench.near, {"ipv4/ip_forward": 1})
    eventually(lambda: here(running) == 2)
    vms.send("gold", GOLD_AT, FAST)
    eventually(
        lambda: (
            {vm.interface: vm.sent_bytes > 0 for vm in status(running.config).vms}
            == {"gold0": False, "nat0": True}
        )
    )


def test_without_a_program_it_says_that_shares_have_no_effect(vms: Vms) -> None:
    vms.bench.classifier = "u32"
    vms.add("gold", GOLD_AT)
    _, running = started(vms, WEIGHTS)
    assert "weights and guarantees of VMs have no effect" in vms.bench.log.read_text()
    assert status(running.config).vms == ()
