"""Hosts without a controller on real packets: fair rates, forged messages, and silence."""

import itertools
import os
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from support.waiting import eventually

from benchmarks.xco.rig import LAB, Settings, XcoRig, rig
from lab.fabric.fabric import Fabric
from lab.fabric.plan import FabricHost
from lab.plan import namespace
from lab.system import namespaces
from lab.traffic import roles
from xco.coordinator.status import MODES, CoordinatorStatus, status
from xco.protocol.keys import PeerKeys, read_host_keys
from xco.protocol.messages import Header, Marks
from xco.protocol.wire import encode

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root"),
    pytest.mark.timeout(180),
]

LINK_BPS = 100_000_000
SENDERS = 4
SAFE = 1 / SENDERS
"""Of the receiver's link, to each host that may send to it."""
PEER_PORT = 7401


@pytest.fixture
def xco() -> Iterator[XcoRig]:
    """Four senders, a receiver, and a sender that is in no topology; nothing runs yet."""
    with incast(SENDERS) as made:
        yield made


@contextmanager
def incast(senders: int) -> Iterator[XcoRig]:
    """Senders, a receiver, and a sender that is in no topology; nothing runs yet."""
    coordinator = {"marks": "hide", "fallback": "hygenicc"}
    settings = Settings(LAB.controller, {**LAB.coordinator, "pace": 0.98, **coordinator})
    with Fabric(f"hy{os.getpid()}") as fabric:
        fabric.incast(senders + 1, LINK_BPS)
        foreign, sink = [fabric.senders[-1]], fabric.place(fabric.receivers[0])
        with rig(fabric, settings, foreign) as made, roles.sink_messages(sink):
            yield made


def seen(xco: XcoRig, host: FabricHost) -> CoordinatorStatus:
    return status(xco.coordinator_config(host))


def receiver(xco: XcoRig) -> FabricHost:
    return xco.fabric.receivers[0]


@contextmanager
def flooding(xco: XcoRig, *hosts: FabricHost, rate_bps: int | None = None) -> Iterator[None]:
    """Let hosts send datagrams to the receiver, as many as they may."""
    fabric, to = xco.fabric, receiver(xco)
    with ExitStack() as stack:
        for host in hosts:
            size = roles.DATAGRAM_BYTES
            place = fabric.place(host)
            stack.enter_context(
                roles.send_messages(place, to.address, size=size, rate_bps=rate_bps)
            )
        yield


def shares(xco: XcoRig, *hosts: FabricHost, seconds: float = 1.0) -> list[float]:
    """Return what arrives from each, as a share of the link; a tenth of it may be of a later count.

    Counts are published ten times a second.
    """
    before, began = arrived(xco), time.monotonic()
    time.sleep(seconds)
    after, took = arrived(xco), time.monotonic() - began
    return [
        (after.get(one.name, 0) - before.get(one.name, 0)) * 8 / took / LINK_BPS for one in hosts
    ]


def arrived(xco: XcoRig) -> dict[str, int]:
    return {one.host or "other": one.bytes for one in seen(xco, receiver(xco)).sources}


def opened(xco: XcoRig, host: FabricHost) -> float:
    """Return what a host may send to the receiver, as a share of the link."""
    flows = [one for one in seen(xco, host).flows if one.host == receiver(xco).name]
    return flows[0].open_bps / LINK_BPS if flows else 0.0


def end(xco: XcoRig, host: FabricHost) -> None:
    """End the coordinator of a host."""
    coordinator = xco.coordinator(host)
    coordinator.terminate()
    coordinator.wait(20)


def all_open(xco: XcoRig, *hosts: FabricHost, share: float) -> Callable[[], bool]:
    return lambda: all(abs(opened(xco, host) - share) < 0.04 for host in hosts)


def is_even(one: float, two: float) -> bool:
    """Return whether two shares of a link are alike, and above what is safe without a word."""
    return one == pytest.approx(two, rel=0.1) and one + two > 1.5 * 2 * SAFE


def test_hosts_share_a_receiver_without_a_controller(xco: XcoRig) -> None:
    xco.go("hygenicc")
    first, second, third = xco.fabric.senders[:3]
    with flooding(xco, first, second):
        eventually(all_open(xco, first, second, share=0.48))
        eventually(lambda: is_even(*shares(xco, first, second)))
        with flooding(xco, third):
            eventually(all_open(xco, first, second, third, share=0.32))
    found = seen(xco, receiver(xco))
    assert found.mode == "hygenicc"
    assert found.counters["peer_taken"] > 0
    assert {found.counters[f"peer_{why}"] for why in ("forged", "malformed", "differing")} == {0}
    assert found.counters["hellos"] == found.counters["reports"] == 0


def test_hosts_share_what_machines_without_a_coordinator_leave(xco: XcoRig) -> None:
    xco.go("hygenicc")
    pair, foreign = xco.fabric.senders[:2], xco.fabric.senders[-1]
    with flooding(xco, *pair):
        eventually(all_open(xco, *pair, share=0.48))
        with flooding(xco, foreign, rate_bps=LINK_BPS * 4 // 10):
            # less than the foreign rate has been seen where this machine held its sender up
            eventually(lambda: all(0.2 < opened(xco, host) < 0.4 for host in pair))
        eventually(all_open(xco, *pair, share=0.48))


def test_the_last_host_counts_what_others_take_once() -> None:
    """The receiver has the last number: of three hosts, the rows for the others end there."""
    with incast(2) as xco:
        xco.go("hygenicc")
        one, foreign = xco.fabric.senders[0], xco.fabric.senders[-1]
        with flooding(xco, one), flooding(xco, foreign, rate_bps=LINK_BPS * 3 // 10):
            eventually(all_open(xco, one, share=0.69))
        assert {source.host for source in seen(xco, receiver(xco)).sources} >= {one.name, None}
        others = [found for found in seen(xco, receiver(xco)).sources if found.host is None]
        assert [found.offer_bps for found in others] == [0]


def test_hosts_go_on_at_fair_rates_when_the_controller_is_killed(xco: XcoRig) -> None:
    xco.go("gcc")
    pair = xco.fabric.senders[:2]
    with flooding(xco, *pair):
        eventually(all_open(xco, *pair, share=0.48))
        xco.kill_controller()
        eventually(lambda: seen(xco, pair[0]).mode == "hygenicc")
        eventually(all_open(xco, *pair, share=0.48))
        eventually(lambda: sum(shares(xco, *pair)) > 1.5 * 2 * SAFE)
        assert xco.log.read_text().count("what other hosts offer (hygenicc)") >= SENDERS
        xco.start_controller("gcc")
        eventually(xco.joined)
    # a gap of 50 ms between directives has a host leave the controller for a moment
    eventually(lambda: all(seen(xco, host).mode != "hygenicc" for host in pair))


def test_a_host_that_alone_loses_the_controller_keeps_its_safe_share(xco: XcoRig) -> None:
    # the others are to stay with the controller, though it stands still for a while
    patient = {**xco.settings.controller, "silence": "2s", "drop": "5s"}
    xco.settings = Settings(patient, xco.settings.coordinator)
    xco.go("gcc")
    alone = xco.fabric.senders[0]
    end(xco, alone)
    nowhere = {"controllers": ["192.0.2.1:7400"]}
    xco.settings = Settings(xco.settings.controller, {**xco.settings.coordinator, **nowhere})
    xco.start_coordinator(alone)
    eventually(xco.coordinator_config(alone).statistics.exists)
    with flooding(xco, alone):
        eventually(lambda: opened(xco, alone) > 0)
        time.sleep(1.0)
        assert seen(xco, alone).mode == "hygenicc"
        assert opened(xco, alone) == pytest.approx(0.98 * SAFE, rel=0.01)
    assert seen(xco, alone).counters["peer_sent"] > 0
    assert seen(xco, receiver(xco)).counters["peer_taken"] > 0
    assert seen(xco, receiver(xco)).counters["peer_sent"] == 0


def udp_socket() -> socket.socket:
    return socket.socket(socket.AF_INET, socket.SOCK_DGRAM)


def keys_of(xco: XcoRig, host: FabricHost) -> PeerKeys:
    config = xco.coordinator_config(host)
    peers = read_host_keys(Path(config.table.key_file), config.host, host.name).peers
    assert peers
    return peers


def test_a_message_in_the_name_of_another_host_is_refused_and_counted(xco: XcoRig) -> None:
    xco.go("hygenicc")
    victim, named, liar = xco.fabric.senders[:3]
    configs = {host.name: xco.coordinator_config(host) for host in (victim, named, liar)}
    to, by = configs[victim.name].host, configs[named.name].host
    digest, sequences = configs[victim.name].topology.hosts_digest(), itertools.count(2**63)

    def write(host: int, key: bytes, digest: bytes = digest) -> None:
        """Write from the liar's machine."""
        header = Header(host, 0, next(sequences), 1)
        datagram = encode(Marks(header, to, 1, 0, 0, 0, digest, 10**9, 0), key)
        place = namespace(xco.fabric.prefix, liar.name)
        with namespaces.inside(place, udp_socket) as out:
            out.sendto(datagram, (victim.address, PEER_PORT))

    def counted(name: str) -> int:
        return seen(xco, victim).counters[f"peer_{name}"]

    keys = keys_of(xco, liar)
    write(by, keys.to[to])
    write(by, keys.to[by])
    eventually(lambda: counted("forged") == 2)
    assert counted("taken") == 0
    write(configs[liar.name].host, keys.to[to], bytes(32))
    eventually(lambda: counted("differing") == 1)
    write(configs[liar.name].host, keys.to[to])
    eventually(lambda: counted("taken") == 1)
    assert xco.log.read_text().count("with another topology") == 1


def test_a_port_that_is_taken_is_named_with_its_setting(xco: XcoRig) -> None:
    host = xco.fabric.senders[0]
    with namespaces.inside(namespace(xco.fabric.prefix, host.name), udp_socket) as taken:
        taken.bind(("", PEER_PORT))
        xco.start_coordinator(host)
        assert xco.coordinator(host).wait(20) == 1
    said = f"UDP port {PEER_PORT} cannot be used: Address already in use: coordinator.peer_port"
    assert said in xco.log.read_text()


def test_without_offers_hosts_keep_to_safe_shares(xco: XcoRig) -> None:
    xco.go("hygenicc")
    pair = xco.fabric.senders[:2]
    with flooding(xco, *pair):
        eventually(all_open(xco, *pair, share=0.48))
        end(xco, receiver(xco))
        eventually(all_open(xco, *pair, share=0.98 * SAFE))
        assert {seen(xco, host).counters["offers"] for host in pair} == {0}
    assert MODES[xco.host_counters(pair[0])["mode"]] == "hygenicc"
