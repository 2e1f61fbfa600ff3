"""What an idle coordinator asks the kernel: its looks at gates take no RTNL (defect 5)."""

import socket
import struct
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.xco.gates.rig import SO_RCVBUFFORCE, Rig, StandIn, rig
from lab.system import namespaces
from xco.coordinator.config import plain
from xco.core_files import program
from xco.protocol.wire import Mode

pytestmark = [pytest.mark.root, pytest.mark.timeout(180)]
RTNLGRP_TC = 4
SOL_NETLINK, NETLINK_ADD_MEMBERSHIP = 270, 1
TRAFFIC_CONTROL = range(36, 48)
"""Types of messages of queues, classes and filters (linux/rtnetlink.h, RTM_NEWQDISC on)."""
PUBLISH_S = 0.1
"""So often a coordinator sees that its queues and its filter stand (docs/howto/xco.md)."""
VERIFYING = 2 + 1
"""Questions then: the root, the filter, and the one closed gate."""
LOG_REQUESTS = """
#include <dlfcn.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>
static void note(int fd, const void *bytes, size_t length) {
    int domain = 0;
    socklen_t room = sizeof domain;
    getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &room);
    int file = domain == AF_NETLINK ? open(FLAG, O_WRONLY | O_APPEND) : -1;
    size_t left = length;
    const struct nlmsghdr *header = bytes;
    for (; file >= 0 && NLMSG_OK(header, left); header = NLMSG_NEXT(header, left)) {
        unsigned char type = (unsigned char)header->nlmsg_type;
        (void)!write(file, &type, 1);
    }
    if (file >= 0) {
        close(file);
    }
}
ssize_t send(int fd, const void *bytes, size_t length, int flags) {
    note(fd, bytes, length);
    return syscall(SYS_sendto, fd, bytes, length, flags, 0, 0);
}
"""
"""Appends the type of each netlink request to a file."""


@pytest.fixture(params=["bpf", "u32"])
def bench(request: pytest.FixtureRequest) -> Iterator[Rig]:
    with rig("xcolk") as made:
        made.classifier = request.param
        yield made


def overheard(bench: Rig) -> tuple[StandIn, Path]:
    """Return a coordinator with one closed gate, and the file of its requests."""
    requests, library = bench.folder / "requests", bench.folder / "log.so"
    requests.touch()
    (bench.folder / "log.c").write_text(LOG_REQUESTS)
    make = ["cc", "-D_GNU_SOURCE", f'-DFLAG="{requests}"', "-shared", "-fPIC", "-o", str(library)]
    subprocess.run([*make, str(bench.folder / "log.c")], check=True)
    stand_in, config = bench.stand_in(), bench.config()
    config.plain_file.write_text(plain(config))
    command = ["env", f"LD_PRELOAD={library}", str(program("xco-coordinator"))]
    bench.run(*command, str(config.plain_file))
    stand_in.wait_for(lambda: stand_in.reports)
    sender = bench.send(rate=5_000)
    stand_in.keep_until(lambda: stand_in.reports[-1].waiting, Mode.CLOSED)
    sender.kill()
    stand_in.keep_until(lambda: not stand_in.reports[-1].waiting, Mode.OPEN)
    stand_in.keep(0.3, Mode.CLOSED)
    return stand_in, requests


def notices(bench: Rig) -> socket.socket:
    """Open what hears RTNLGRP_TC of the host's namespace."""

    def make() -> socket.socket:
        made = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)
        made.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 1 << 24)
        made.bind((0, 0))
        made.setsockopt(SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, RTNLGRP_TC)
        made.setblocking(False)
        return made

    return namespaces.inside(bench.near, make)


def taken(listener: socket.socket) -> list[int]:
    """Return the types of the notifications that came."""
    types = []
    while True:
        try:
            types.append(struct.unpack_from("=IH", listener.recv(65536))[1])
        except BlockingIOError:
            return types


def test_looks_of_an_idle_coordinator_ask_the_kernel_nothing_and_notify_nobody(
    bench: Rig,
) -> None:
    """They multicast 1,709 messages a second, each under RTNL. What is left verifies."""
    stand_in, requests = overheard(bench)
    with notices(bench) as listener:
        before, begun = len(requests.read_bytes()), time.monotonic()
        stand_in.keep(2.0, Mode.CLOSED)
        verified = VERIFYING * ((time.monotonic() - begun) / PUBLISH_S + 2)
        asked = Counter(requests.read_bytes()[before:])
        told = len(taken(listener))
    of_control = sum(asked[kind] for kind in TRAFFIC_CONTROL)
    if bench.classifier == "u32":  # it looks through netlink: this test sees that
        assert min(of_control, told) > 10 * verified
    else:
        assert max(of_control, told) <= verified
