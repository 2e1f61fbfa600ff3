"""The check in real namespaces: it finds what loses, and its commands, run as given, end it."""

import os
import shlex
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from lab.system import namespaces
from zovn.check.demand import demand
from zovn.check.facts import Facts, Socket
from zovn.check.sockets import read_settings

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root"),
    pytest.mark.timeout(120),
]
NAME = f"zc{os.getpid()}"
ROOT = Path(__file__).resolve().parents[3]
SHAPED = "tc qdisc replace dev e0 root tbf rate 100kbit burst 5k limit 9000"
ROOM_BYTES, BYTES_PER_S = 5 * 1024 + 9000, 100_000 / 8
"""What a shaped interface takes at once, and with time."""
FRAME_BYTES = 64 + 42
"""Of a datagram, with the headers of UDP, IP and Ethernet."""
DATAGRAMS = 400
"""More than the send buffer of a socket holds: with a long queue, the sender must wait."""


def inside(command: str) -> None:
    subprocess.run(["ip", "netns", "exec", NAME, *command.split()], check=True)


def run(finding: dict[str, str]) -> None:
    """Run the command of a finding as it is given."""
    subprocess.run(shlex.split(finding["fix"]), check=True)


@pytest.fixture
def ends() -> Iterator[None]:
    """Two ends of a veth in two namespaces; the check looks at e0."""
    namespaces.create(NAME)
    namespaces.create(f"{NAME}p")
    inside(f"ip link add e0 type veth peer name e1 netns {NAME}p")
    inside("ip link set e0 up")
    subprocess.run(["ip", "-n", f"{NAME}p", "link", "set", "e1", "up"], check=True)
    inside("ip addr add 10.9.0.1/24 dev e0")
    inside("ip neigh add 10.9.0.2 lladdr 02:00:00:00:00:02 dev e0")
    yield
    namespaces.remove(NAME)
    namespaces.remove(f"{NAME}p")


def check(*options: str) -> tuple[int, dict[str, Any]]:
    command = [sys.executable, "-m", "zovn", "check", "--netns", NAME, "--json", *options]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode in {0, 1}, done.stderr
    return done.returncode, msgspec.json.decode(done.stdout)


def findings(document: dict[str, Any], kind: str) -> list[dict[str, str]]:
    return [each for each in document["findings"] if each["check"] == kind]


def flood() -> float:
    """Send datagrams as a program does that waits while its socket is full; return how long."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.connect(("10.9.0.2", 9))
        begun = time.monotonic()
        for _ in range(DATAGRAMS):
            sender.send(bytes(64))
        return time.monotonic() - begun


@pytest.mark.usefixtures("ends")
@pytest.mark.skipif(shutil.which("ethtool") is None, reason="needs ethtool")
def test_the_commands_of_all_findings_end_them() -> None:
    code, before = check()
    assert code == 1
    (interface,) = before["interfaces"]
    assert (interface["name"], interface["kind"]) == ("e0", "veth")
    assert interface["offloads"]["tx_vlan"]
    assert len(findings(before, "queue")) == 1, "a veth has no queue"
    assert len(findings(before, "offload")) == 2
    for each in before["findings"]:
        run(each)
    code, after = check()
    assert (code, after["findings"]) == (0, [])


@pytest.mark.usefixtures("ends")
@pytest.mark.parametrize(
    ("count", "setup"),
    [
        (1, ["tc qdisc replace dev e0 root pfifo limit 100"]),
        (1, ["tc qdisc replace dev e0 root bfifo limit 10000"]),
        (1, ["tc qdisc replace dev e0 root pfifo_fast"]),
        (1, [SHAPED]),
        (
            2,
            [
                "tc qdisc replace dev e0 root handle 1: htb default 10",
                "tc class add dev e0 parent 1: classid 1:1 htb rate 9mbit",
                "tc class add dev e0 parent 1:1 classid 1:10 htb rate 1mbit",
                "tc class add dev e0 parent 1:1 classid 1:20 htb rate 1mbit",
                "tc qdisc add dev e0 parent 1:20 pfifo limit 5",
            ],
        ),
    ],
    ids=["pfifo", "bfifo", "pfifo_fast", "tbf", "htb"],
)
def test_each_kind_of_queue_is_found_and_fixed(count: int, setup: list[str]) -> None:
    for command in setup:
        inside(command)
    found = findings(check()[1], "queue")
    assert len(found) == count
    for each in found:
        run(each)
    assert findings(check()[1], "queue") == []


@pytest.mark.usefixtures("ends")
def test_what_is_found_loses_and_what_is_fixed_does_not() -> None:
    inside(SHAPED)
    took = namespaces.inside(NAME, flood)
    (found,) = findings(first := check()[1], "queue")
    lost = first["counters"]["udp_send_buffer_errors"]
    assert lost >= DATAGRAMS - (ROOM_BYTES + BYTES_PER_S * took) / FRAME_BYTES
    assert sum(queue["drops"] for queue in first["interfaces"][0]["qdiscs"]) >= lost
    run(found)
    namespaces.inside(NAME, flood)
    second = check()[1]
    assert findings(second, "queue") == []
    assert second["counters"]["udp_send_buffer_errors"] == lost


def stops() -> bool:
    """Send the smallest datagrams without waiting; return whether the socket stops the sender."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.connect(("10.9.0.2", 9))
        for _ in range(4 * DATAGRAMS):
            try:
                sender.send(b"", socket.MSG_DONTWAIT)
            except BlockingIOError:
                return True
    return False


@pytest.mark.usefixtures("ends")
@pytest.mark.parametrize(("share", "loses"), [(1.0, False), (0.8, True)])
def test_a_socket_holds_nearly_what_the_check_says(share: float, *, loses: bool) -> None:
    inside("tc qdisc replace dev e0 root handle 1: tbf rate 100kbit burst 2k limit 9000")
    buffer = namespaces.inside(NAME, read_settings).send_default
    one = Socket(protocol="udp", send_buffer=buffer, receive_buffer=0)
    needed = demand(Facts(kernel=(6, 18), sockets=(one,)), 1).packets
    inside(f"tc qdisc replace dev e0 parent 1:1 pfifo limit {int(needed * share)}")
    assert namespaces.inside(NAME, stops) is not loses
    (interface,) = check()[1]["interfaces"]
    assert (sum(queue["drops"] for queue in interface["qdiscs"]) > 0) == loses


@pytest.mark.usefixtures("ends")
def test_open_sockets_count_with_their_buffers() -> None:
    def opened() -> list[socket.socket]:
        made = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(3)]
        for each in made:
            each.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 50_000)
            each.bind(("10.9.0.1", 0))
        return made

    three = namespaces.inside(NAME, opened)
    document = check("--sockets", "1")[1]
    assert [each["send_buffer"] for each in document["sockets"]] == [100_000] * 3
    assert document["needed"]["packets"] == 3 * (100_000 // 768 + 2)
    assert len(findings(document, "receive-buffer")) == 1
    for each in three:
        each.close()
    assert findings(check()[1], "receive-buffer") == []


@pytest.mark.usefixtures("ends")
def test_the_report_for_people_names_losses_and_commands() -> None:
    inside(SHAPED)
    command = [sys.executable, "-m", "zovn", "check", "--netns", NAME]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "tbf has room for 9,000 bytes" in done.stdout
    assert f"    ip netns exec {NAME} tc qdisc replace dev e0 parent" in done.stdout
    assert "udp receive buffer errors: 0" in done.stdout


def test_a_namespace_that_does_not_exist_is_wrong_usage() -> None:
    command = [sys.executable, "-m", "zovn", "check", "--netns", f"{NAME}none"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"zovn: {NAME}none: ")
    assert not Path(namespaces.path(f"{NAME}none")).exists()
