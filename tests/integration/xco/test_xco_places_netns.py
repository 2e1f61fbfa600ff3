"""VMs that come, move and go, found by bridges: a real controller, coordinators, namespaces."""

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from itertools import pairwise
from pathlib import Path
from threading import Event, Thread

import pytest
from places_rig import CONTROLLER as AT_CONTROLLER
from places_rig import HOSTS, Site, site
from support.waiting import eventually
from xco_loop_hosts import UdpHost

from benchmarks.xco.gates.rig import SENDER, arrived_ns
from lab.system import namespaces
from xco.protocol.messages import Map, Message, Places
from xco.protocol.wire import CONTROLLER
from xco.topology.file import load_topology

pytestmark = [pytest.mark.root, pytest.mark.timeout(180)]

VM, OTHER = "10.78.0.101", "10.78.0.102"
VM_MAC, OTHER_MAC = "02:aa:00:00:00:01", "02:aa:00:00:00:02"
GONE_MAC, LATE_MAC = "02:aa:00:00:00:04", "02:aa:00:00:00:05"
OTHERS_OF_H3 = ("10.78.0.1", "10.78.0.2", AT_CONTROLLER)
PACKETS_PER_S = 500
SO_TIMESTAMPNS = 35
GAP_S, LEARNT_S = 0.2, 0.1
"""Of a VM that moves: the longest silence, and until all hosts know where it is."""
READ_S = 3.0
"""Within it a bridge's whole table is read again, and all hosts know what that withdraws."""
UNSHAPED = 5
"""The mode of a coordinator without queues."""


@pytest.fixture
def hosts(tmp_path: Path) -> Iterator[Site]:
    with site(tmp_path) as made:
        made.vm("vm", VM_MAC, VM, "h1", "h2")
        made.vm("other", OTHER_MAC, OTHER, "h3")
        yield made


class Subscriber(UdpHost):
    """The controller's own host, which has no address behind it and hears where the others' are."""

    def __init__(self, number: int, digest: bytes, port: int) -> None:
        super().__init__(number, digest, port)
        self.told: dict[tuple[bytes, int], float] = {}
        """When it was told (time.monotonic) that a MAC is at a host."""
        self._stopped = Event()
        self._thread = Thread(target=self._listen)

    def start(self) -> None:
        """Join, and ask for the map from now on."""
        self.join()
        self._thread.start()

    def close(self) -> None:
        """Stop, and close the socket."""
        self._stopped.set()
        self._thread.join()
        super().close()

    def hear(self, message: Message) -> None:
        """Keep directives; a map is kept by `_listen`."""
        if not isinstance(message, Map):
            super().hear(message)

    def _listen(self) -> None:
        have = 0
        while not self._stopped.is_set():
            self.send(self.report(time.monotonic_ns()))
            self.send(Places(self.header(time.monotonic_ns()), CONTROLLER, 0, 0, 0, have))
            with suppress(TimeoutError):
                have = self._take(self.receive(0.01), have)

    def _take(self, message: Message, have: int) -> int:
        if not isinstance(message, Map):
            return have
        for one in message.entries:
            self.told[one.address[:6], one.host] = time.monotonic()
        return message.until


def subscribed(hosts: Site) -> Subscriber:
    """Join the controller from its own namespace, and ask for the map."""
    topology = load_topology(hosts.folder / "topology.toml")
    port, number = hosts.counter("ctl", "port"), len(HOSTS)
    made = namespaces.inside(
        hosts.named("ctl"), lambda: Subscriber(number, topology.hosts_digest(), port)
    )
    made.start()
    return made


def receiver(hosts: Site) -> socket.socket:
    def make() -> socket.socket:
        made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        made.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        made.bind(("0.0.0.0", 9))
        made.settimeout(20)
        return made

    return namespaces.inside(hosts.named("vm"), make)


def arrivals(taking: socket.socket, until: int) -> list[int]:
    """Return when datagrams arrived, in ns, until so many have."""
    times = []
    while len(times) < until:
        _, ancillary, _, _ = taking.recvmsg(2048, 64)
        times.append(arrived_ns(ancillary))
    return times


def longest_gap_s(times: list[int]) -> float:
    return max(b - a for a, b in pairwise(times)) / 1e9


def load(hosts: Site) -> None:
    """Send from the VM at h3 to the one that moves, enough to have a gate."""
    rate = str(PACKETS_PER_S)
    hosts.run("other", sys.executable, "-c", SENDER, OTHER, VM, rate, "1400", "0", "4000000")


def test_a_vm_that_moves_under_load_is_found_and_hardly_missed(hosts: Site) -> None:
    """The longest silence is printed, and when another host was told (-rP shows both)."""
    with receiver(hosts) as taking, closing(subscribed(hosts)) as subscriber:
        load(hosts)
        eventually(lambda: hosts.sent_to("h3", "h1") > 100_000)
        arrivals(taking, PACKETS_PER_S // 2)
        assert hosts.sent_to("h3", "h2") == 0
        began = time.monotonic()
        hosts.move("vm", VM, "h1", "h2")
        moved = time.monotonic()
        mac = bytes.fromhex(VM_MAC.replace(":", ""))
        eventually(lambda: (mac, HOSTS.index("h2")) in subscriber.told)
        told_s = subscriber.told[mac, HOSTS.index("h2")] - began
        gap_s = longest_gap_s(arrivals(taking, 2 * PACKETS_PER_S))
    eventually(lambda: hosts.sent_to("h3", "h2") > 100_000)
    print(f"moved in {moved - began:.3f} s, told after {told_s:.3f} s, silence {gap_s:.3f} s")  # noqa: T201
    assert told_s < moved - began + LEARNT_S
    assert gap_s < moved - began + GAP_S
    assert hosts.counter("h3", "remakes") == 0
    assert hosts.counter("h3", "fallbacks") == 0


def test_a_vm_that_is_made_is_known_and_one_that_is_gone_is_forgotten(hosts: Site) -> None:
    mac = "02:aa:00:00:00:03"

    def known() -> bool:
        return any(mac in line for line in hosts.locations("h3"))

    before = hosts.counter("h1", "places_here")
    hosts.vm("new", mac, "10.78.0.103", "h1")
    hosts.announce("new", "h1")
    eventually(known)
    eventually(lambda: hosts.counter("h1", "places_here") > before)
    made = hosts.counter("h1", "places_here")
    hosts.inside("h1", "link delete new")
    eventually(lambda: not known())
    eventually(lambda: hosts.counter("h1", "places_here") < made)


def test_other_hosts_write_where_a_vm_is_for_wires(hosts: Site) -> None:
    hosts.announce("vm", "h1")
    at_h1, at_h2 = (f"station {VM_MAC} 10.78.0.{number}" for number in (1, 2))
    eventually(lambda: at_h1 in hosts.locations("h3"))
    assert hosts.locations("h3")[:3] == [f"host {one}" for one in OTHERS_OF_H3]
    assert not any(VM_MAC in line for line in hosts.locations("h1"))
    hosts.move("vm", VM, "h1", "h2")
    eventually(lambda: at_h2 in hosts.locations("h3"))
    eventually(lambda: at_h2 in hosts.locations("h1"))
    assert at_h1 not in hosts.locations("h3")
    hosts.inside("h2", "link delete vm")
    eventually(lambda: at_h2 not in hosts.locations("h3"))


def gone_from(hosts: Site, host: str) -> None:
    """Make a VM at h2 while all run, of which `host` hears; see `forgets`."""
    hosts.vm("gone", GONE_MAC, "10.78.0.104", "h2")
    hosts.announce("gone", "h2")
    eventually(lambda: any(GONE_MAC in line for line in hosts.locations(host)))


def forgets(hosts: Site, host: str) -> None:
    """Wait until it is no longer known there: what the controller does not name was swept."""
    eventually(lambda: not any(GONE_MAC in line for line in hosts.locations(host)))


def test_what_is_at_a_host_that_is_away_outlives_the_controller(hosts: Site) -> None:
    at_h1 = f"station {VM_MAC} 10.78.0.1"
    hosts.announce("vm", "h1")
    eventually(lambda: at_h1 in hosts.locations("h3"))
    gone_from(hosts, "h3")
    hosts.stop("h1", "ctl")
    hosts.inside("h2", "link delete gone")
    hosts.start("ctl")
    forgets(hosts, "h3")
    assert at_h1 in hosts.locations("h3")
    hosts.inside("h1", "link delete vm")
    hosts.start("h1")
    eventually(lambda: at_h1 not in hosts.locations("h3"))


def test_what_is_at_a_host_that_is_away_outlives_all_others_and_its_move_counts(
    hosts: Site,
) -> None:
    at_h1, at_h2 = (f"station {VM_MAC} 10.78.0.{number}" for number in (1, 2))
    hosts.announce("vm", "h1")
    eventually(lambda: at_h1 in hosts.locations("h3"))
    gone_from(hosts, "h3")
    hosts.stop("h1", "h3", "ctl")
    hosts.inside("h2", "link delete gone")
    hosts.start("ctl", "h3")
    forgets(hosts, "h3")
    assert at_h1 in hosts.locations("h3")
    hosts.move("vm", VM, "h1", "h2")
    eventually(lambda: at_h2 in hosts.locations("h3"))
    hosts.start("h1")
    eventually(lambda: hosts.counter("ctl", "hosts_joined") == len(HOSTS))
    eventually(lambda: at_h2 in hosts.locations("h1"))
    assert at_h2 in hosts.locations("h3")


def test_an_address_of_two_hosts_stays_with_the_first_and_is_reported(hosts: Site) -> None:
    hosts.announce("vm", "h1")
    hosts.inside("h2", "link add port type veth peer name none", "link set port master br0")
    eventually(lambda: hosts.counter("ctl", "places_known") > 0)
    refused = hosts.counter("ctl", "places_refused")
    hosts.run("h2", "bridge", "fdb", "replace", VM_MAC, "dev", "port", "master", "static").wait()
    eventually(lambda: hosts.counter("ctl", "places_refused") > refused)
    assert hosts.counter("ctl", "refused_place") == int(VM_MAC.replace(":", ""), 16)
    assert hosts.counter("ctl", "refused_claimant") == HOSTS.index("h2")
    assert hosts.counter("ctl", "refused_owner") == HOSTS.index("h1")
    hosts.inside("other", f"neighbour replace {VM} lladdr {VM_MAC} dev at-h3 nud permanent")
    hosts.inside("vm", "link set at-h1 down")
    hosts.inside("h1", "link delete vm")
    load(hosts)
    eventually(lambda: hosts.sent_to("h3", "h2") > 0)


def test_a_vm_that_makes_addresses_up_takes_no_core_and_no_place_of_others(hosts: Site) -> None:
    hosts.announce("vm", "h1")
    eventually(lambda: hosts.counter("h3", "places_there") > 0)
    before, began = hosts.cpu_seconds("h1"), time.monotonic()
    flood(hosts, seconds=1.5, pause_s=0.00005)  # the flood itself is not what is measured
    used = hosts.cpu_seconds("h1") - before
    assert used < 0.5 * (time.monotonic() - began)
    eventually(lambda: hosts.counter("h1", "places_beyond") > 0)
    eventually(lambda: hosts.counter("h1", "places_here") == 1024)
    assert hosts.counter("h1", "fallbacks") == 0
    assert hosts.counter("ctl", "hosts_joined") == len(HOSTS)


def test_a_vm_that_makes_addresses_up_evicts_no_neighbour(hosts: Site) -> None:
    """One whose port is after its own: the table is read by port, and its addresses come first."""
    hosts.vm("late", LATE_MAC, "10.78.0.105", "h1")
    hosts.announce("late", "h1")
    eventually(lambda: known_at(hosts, LATE_MAC, "h1"))
    flood(hosts, seconds=0, pause_s=0)  # the kernel has no room to tell all of it
    eventually(lambda: hosts.counter("h1", "places_beyond") > 0)
    assert stays(hosts, LATE_MAC, "h1")


def test_a_host_without_queues_still_says_what_is_behind_it(hosts: Site) -> None:
    """It withdrew all of it at the next change of its bridge's table."""
    hosts.announce("vm", "h1")
    eventually(lambda: known_at(hosts, VM_MAC, "h1"))
    exchange = "qdisc del dev e0 root\nqdisc add dev e0 root bfifo"
    command = ["tc", "-n", hosts.named("h1"), "-batch", "-"]
    subprocess.run(command, input=exchange, text=True, check=True)
    eventually(lambda: hosts.counter("h1", "mode") == UNSHAPED)
    hosts.vm("late", LATE_MAC, "10.78.0.105", "h1")
    hosts.announce("late", "h1")
    eventually(lambda: known_at(hosts, LATE_MAC, "h1"))
    assert stays(hosts, VM_MAC, "h1")


def known_at(hosts: Site, mac: str, host: str) -> bool:
    """Whether h3 has been told that an address is at a host."""
    return f"station {mac} 10.78.0.{HOSTS.index(host) + 1}" in hosts.locations("h3")


def stays(hosts: Site, mac: str, host: str) -> bool:
    """Whether h3 has it there for as long as a mistake would take to show."""
    end = time.monotonic() + READ_S
    while time.monotonic() < end and known_at(hosts, mac, host):
        time.sleep(0.05)
    return known_at(hosts, mac, host)


def flood(hosts: Site, seconds: float, pause_s: float) -> None:
    """Send frames from the VM at h1, each with another source; 5,000 at least."""

    def send() -> int:
        number, end = 0, time.monotonic() + seconds
        with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as out:
            out.bind(("at-h1", 0))
            while time.monotonic() < end or number < 5000:
                number += 1
                source = bytes([2, 0xFF]) + number.to_bytes(4, "big")
                out.send(b"\xff" * 6 + source + bytes.fromhex("88b5") + bytes(46))
                if pause_s > 0:
                    time.sleep(pause_s)
        return number

    assert namespaces.inside(hosts.named("vm"), send) >= 5000
