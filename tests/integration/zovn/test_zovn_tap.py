"""Ports to TAP interfaces: they connect the kernel, and what they lose is counted."""

import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from rigs.zovn_switch_rig import RunningSwitch, build_guest, running_switch
from rigs.zovn_veth_rig import (
    HOST,
    PORT,
    address,
    container,
    host,
    port,
    require_lossless_veth,
    run,
)
from support.waiting import eventually

from lab.system import namespaces
from zovn.switch.control import PortReport

pytestmark = [pytest.mark.root, pytest.mark.timeout(120)]
TAP, HERE = "zv0", "10.77.0.254"
TOO_MANY = 3000
"""More than the queue of a TAP interface and its port hold."""


@pytest.fixture(scope="module", autouse=True)
def _built() -> None:
    build_guest()
    require_lossless_veth()


@contextmanager
def switch() -> Iterator[RunningSwitch]:
    """A switch between a container and the kernel of its host."""
    each = [{"kind": "veth", "interface": port(1)}, {"kind": "tap", "interface": TAP}]
    with host(1), running_switch(names="ch", each=each, netns=HOST) as running:
        run("ip", "-n", HOST, "address", "add", f"{HERE}/24", "dev", TAP)
        run("ip", "-n", HOST, "link", "set", TAP, "up")
        yield running


def tap(running: RunningSwitch) -> PortReport:
    return running.port("h")


def ping() -> None:
    run("ip", "netns", "exec", container(1), "ping", "-c", "3", "-i", "0.1", HERE)


def test_a_container_and_its_host_by_a_tap_that_goes_with_the_switch() -> None:
    with switch() as running:
        ping()
        assert (tap(running).state, tap(running).lost) == ("lossy", 0)
        assert running.end() == 0
        assert TAP not in run("ip", "-n", HOST, "-br", "link")


def test_a_switch_that_stands_still_makes_a_tap_lose_and_says_so() -> None:
    with switch() as running:
        ping()
        running.process.send_signal(signal.SIGSTOP)
        sender = namespaces.inside(HOST, lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        with sender:
            for _ in range(TOO_MANY):
                sender.sendto(bytes(18), (address(1), PORT))
        running.process.send_signal(signal.SIGCONT)
        eventually(lambda: (tap(running).lost or 0) > 0)
        ping()


def test_a_frame_that_is_too_long_for_the_port_is_dropped_and_not_cut() -> None:
    with switch() as running:
        ping()
        run("ip", "-n", HOST, "link", "set", TAP, "mtu", "20000")
        with namespaces.inside(
            HOST, lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        ) as sender:
            sender.sendto(bytes(15_000), (address(1), PORT))
        eventually(lambda: tap(running).drops["too_long"] == 1)
        ping()


def test_a_tap_that_is_down_refuses_frames_and_one_that_is_removed_is_made_again() -> None:
    with switch() as running:
        ping()
        run("ip", "-n", HOST, "link", "set", TAP, "down")
        with namespaces.inside(
            container(1), lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        ) as sender:
            sender.sendto(b"x", (HERE, PORT))
            eventually(lambda: running.port("c").drops["refused"] > 0)
        run("ip", "-n", HOST, "link", "delete", TAP)
        eventually(lambda: tap(running).attachments == 2)
        assert (tap(running).state, tap(running).fault) == ("lossy", "none")
