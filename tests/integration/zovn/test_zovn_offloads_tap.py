"""A kernel that leaves checksums and segments to its device talks to one that takes neither."""

import os
import random
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from rigs.zovn_tap_rig import (
    CHECKSUMS,
    DATAGRAMS,
    SEGMENTS,
    Taps,
    checksum_errors,
    socket_in,
    taps,
)

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root"),
    pytest.mark.timeout(240),
]
BYTES = random.Random(1).randbytes(2_000_000)
UDP_SEGMENT = 103
FAMILIES = [(socket.AF_INET, "10.78.0.1"), (socket.AF_INET6, "fd78::1")]


@pytest.fixture(scope="module", params=[CHECKSUMS, CHECKSUMS | SEGMENTS | DATAGRAMS])
def net(request: pytest.FixtureRequest) -> Iterator[Taps]:
    """Ends of which the first one leaves checksums, or segments as well."""
    with taps(request.param) as made:
        yield made


def received(server: socket.socket) -> bytes:
    """Return all that comes by the first connection."""
    peer, _ = server.accept()
    with peer:
        peer.settimeout(server.gettimeout())
        return b"".join(iter(lambda: peer.recv(1 << 16), b""))


@pytest.mark.parametrize(("family", "host"), FAMILIES)
def test_a_stream_arrives_as_it_was_sent(net: Taps, family: int, host: str) -> None:
    server, client = (socket_in(number, family, socket.SOCK_STREAM) for number in (1, 0))
    with server, ThreadPoolExecutor(1) as pool:
        server.bind((host, 7000))
        server.listen()
        receiving = pool.submit(received, server)
        with client:
            client.connect((host, 7000))
            client.sendall(BYTES)
        assert receiving.result() == BYTES
    assert checksum_errors(1) == 0
    assert net.unfinished > 0
    assert (net.cut > 0) == (net.takes > CHECKSUMS)


@pytest.mark.usefixtures("net")
@pytest.mark.parametrize(("family", "host"), FAMILIES)
def test_datagrams_of_one_call_arrive_one_by_one(family: int, host: str) -> None:
    server, client = (socket_in(number, family, socket.SOCK_DGRAM) for number in (1, 0))
    with server, client:
        server.bind((host, 7001))
        client.setsockopt(socket.IPPROTO_UDP, UDP_SEGMENT, 1000)
        client.connect((host, 7001))
        client.send(BYTES[:8500])
        got = [server.recv(2000) for _ in range(9)]
    assert got == [BYTES[:8500][at : at + 1000] for at in range(0, 8500, 1000)]
    assert checksum_errors(1) == 0
