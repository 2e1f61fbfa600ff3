"""docs/howto/zovn-overlay.md from end to end: two hosts, switches, wires, and xco with one map."""

import re
import subprocess
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest
from rigs.zovn_numbered_flows import Flows, announce, flows
from rigs.zovn_switch_rig import build_guest
from rigs.zovn_two_hosts import HOSTS, WIRE, Host, Site, block, commands_for, site
from rigs.zovn_veth_rig import MAC, address, container, neighbours, require_lossless_veth
from support.waiting import eventually

from xco.core_files import program
from xco.errors import CoreError
from zovn.switch.control import PortReport

pytestmark = [pytest.mark.root, pytest.mark.external, pytest.mark.timeout(180)]
FAR, NEAR, VM = 1, 2, 3
"""A container at h1, one at h2, and one that is at h2 first and then at h1."""
FULL = 1450 - 28
"""What ping sends in a packet of the overlay's MTU."""
SOME = 100
EXCHANGED = re.compile(r"(\d+) frames were lost while its queues were exchanged")


@pytest.fixture(scope="module", autouse=True)
def _built() -> None:
    build_guest()
    require_lossless_veth()
    try:
        program("xco-controller")
        program("xco-coordinator")
    except CoreError as error:
        pytest.skip(str(error))


@pytest.fixture
def running() -> Iterator[Site]:
    """Both hosts with all programs, and the containers at their first places."""
    with site(FAR, NEAR, VM) as made:
        made.start_controller()
        made.start_coordinators()
        made.start_switches()
        with ThreadPoolExecutor() as pool:
            list(pool.map(Host.place, (made.h1, made.h2, made.h2), (FAR, NEAR, VM)))
        for number in (FAR, NEAR, VM):
            announce(number)
        yield made


class Journey:
    """A site with flows, and what its switches counted since they began."""

    def __init__(self, site: Site, flows: Flows) -> None:
        self.site, self.flows = site, flows
        self.announced = 0
        self._drops, self._to_near, self._exchanged = Counter[str](), 0, 0
        self._drops, self._to_near = self.dropped(), self.strayed()
        self._exchanged = self.exchanged()

    def ports(self) -> list[PortReport]:
        """Return the ports that stay: those of the senders, and the wires."""
        ports = [port for host in self.site.hosts for port in host.report().ports]
        return [port for port in ports if port.name != container(VM)]

    def dropped(self) -> Counter[str]:
        """Return what was dropped, by reason."""
        found: Counter[str] = Counter()
        for port in self.ports():
            found.update(port.drops)
        found.subtract(self._drops)
        return +found

    def strayed(self) -> int:
        """Return frames to the VM that its old host gave to its other container."""
        return out(self.site.h2, container(NEAR)) - self._to_near - self.announced

    def exchanged(self) -> int:
        """Return how many frames coordinators said were lost while they exchanged queues."""
        logs = "".join(host.log.read_text() for host in self.site.hosts)
        return sum(map(int, EXCHANGED.findall(logs))) - self._exchanged

    def goes_on(self, more: int = SOME) -> None:
        """Wait until so many datagrams of each flow have arrived that are sent from now on."""
        marks = self.flows.marks()
        eventually(lambda: self.flows.have(more, marks), state=self.state)

    def is_accounted_for(self) -> bool:
        """Return whether each datagram arrived, or was counted where it was dropped.

        What an exchange of queues lost may have been a datagram, or something else.
        """
        ended = self.flows.arrived() + self.strayed() + self.dropped().total()
        return 0 <= self.flows.sent() - ended <= self.exchanged()

    @contextmanager
    def settled(self) -> Iterator[None]:
        """Send nothing meanwhile; first wait for what is on its way."""
        with self.flows.held():
            eventually(self.is_accounted_for, state=self.state)
            yield

    def state(self) -> object:
        holes = {number: self.flows.holes(number) for number in (FAR, NEAR)}
        unseen = [(port.name, port.lost, port.counters) for port in self.ports()]
        lines = [host.line() for host in self.site.hosts]
        seen = self.flows.ends(), holes, self.strayed(), self.dropped()
        return *seen, unseen, lines, self.site.logs()


def test_frames_follow_a_vm_by_the_map_which_outlives_xco(running: Site) -> None:
    reach_each_other(running)
    neighbours(FAR, NEAR, VM)
    with flows(FAR, NEAR, to=VM) as sending:
        journey = Journey(running, sending)
        journey.goes_on()
        assert (sending.holes(FAR), sending.holes(NEAR), journey.dropped()) == ([], [], {})
        leave_the_old_host(journey)
        come_to_the_new_host(journey)
        holes = {number: sending.holes(number) for number in (FAR, NEAR)}
        assert [len(found) for found in holes.values()] == [1, 1]
        frames_go_where_the_map_says(journey)
        xco_is_killed(journey)
        xco_starts_again(journey)
        with journey.settled():
            assert sending.holes(FAR) == holes[FAR]
            first, *others = sending.holes(NEAR)
            assert first == holes[NEAR][0]
            assert sum(map(len, others)) <= journey.exchanged()
            assert journey.dropped().keys() <= {"no_location", "removed", "no_destination"}
            for port in journey.ports():
                assert (port.lost, port.counters["beyond"], port.counters["unsound"]) == (0, 0, 0)


def reach_each_other(site: Site) -> None:
    """The maps have what is at the other host; then pings pass, with the longest packets, too."""
    maps = {site.h1: {station(NEAR, "h2"), station(VM, "h2")}, site.h2: {station(FAR, "h1")}}
    for host, stations in maps.items():
        eventually(lambda: stations <= host.located(), state=site.logs)  # noqa: B023  called here
        assert stations == {line for line in host.located() if line.startswith("station")}
    eventually(lambda: pings(FAR, VM, "-c1", "-W1") and pings(VM, FAR, "-c1", "-W1"))
    for pair in ((FAR, VM), (FAR, NEAR), (NEAR, VM)):
        assert pings(*pair, "-c3", "-i0.05", "-W20", "-Mdo", f"-s{FULL}")


def leave_the_old_host(journey: Journey) -> None:
    """Frames to the VM are dropped at its old host: none leaves that in search of it."""
    h2 = journey.site.h2
    remove, delete = block("zovn switch port remove").splitlines()
    crossed, before = out(h2, WIRE), h2.port(container(NEAR)).drops["no_location"]
    h2.execute(commands_for(VM, remove))
    few = before + SOME // 5
    eventually(lambda: h2.port(container(NEAR)).drops["no_location"] > few, poll_s=0.05)
    with journey.settled():
        assert out(h2, WIRE) == crossed
        h2.execute(commands_for(VM, delete))


def come_to_the_new_host(journey: Journey) -> None:
    """Both flows go on there."""
    site = journey.site
    site.h1.place(VM)
    announce(VM)
    journey.announced += 1
    journey.goes_on()
    assert station(VM, "h1") in site.h2.located()
    eventually(lambda: not any(MAC.format(VM) in line for line in site.h1.located()))


def frames_go_where_the_map_says(journey: Journey) -> None:
    """One flow crosses the line, and no port gets a copy of what is not for it."""
    h1, h2 = journey.site.hosts

    def counted() -> tuple[int, ...]:
        ports = (h1, WIRE), (h1, container(FAR)), (h2, container(NEAR)), (h2, WIRE)
        return tuple(out(*port) for port in ports)

    with journey.settled():
        sent, before, drops = journey.flows.marks()[NEAR], counted(), journey.dropped()
    journey.goes_on()
    with journey.settled():
        crossed = journey.flows.marks()[NEAR] - sent
        assert counted() == (*before[:3], before[3] + crossed)
        assert journey.dropped() == drops


def xco_is_killed(journey: Journey) -> None:
    """Nothing is lost: the switches go on with their maps."""
    before = journey.dropped()
    maps = [host.located() for host in journey.site.hosts]
    journey.site.kill_xco()
    journey.goes_on(4 * SOME)
    assert [host.located() for host in journey.site.hosts] == maps
    assert journey.dropped() == before


def xco_starts_again(journey: Journey) -> None:
    """The maps are written again, the first while the other host's coordinator is still away."""
    site = journey.site
    maps = [host.located() for host in site.hosts]
    site.start_controller()
    for host in site.hosts:
        written = host.locations.stat().st_mtime_ns
        with journey.settled():  # the kernel drops what is sent while it exchanges queues
            site.start_coordinators(host)
            eventually(lambda: host.gated(2), state=site.logs)  # noqa: B023  called here
        eventually(lambda: host.locations.stat().st_mtime_ns > written, state=site.logs)  # noqa: B023
        assert [one.located() for one in site.hosts] == maps
    journey.goes_on()


def station(number: int, host: str) -> str:
    """Return the line of a map for a container."""
    return f"station {MAC.format(number)} {HOSTS[host]}"


def pings(sender: int, receiver: int, *options: str) -> bool:
    """Return whether all answers came."""
    command = ["ip", "netns", "exec", container(sender), "ping", "-q", *options, address(receiver)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    return ", 0% packet loss" in done.stdout


def out(host: Host, name: str) -> int:
    """Return how many frames went to a port."""
    return host.port(name).counters["out"]
