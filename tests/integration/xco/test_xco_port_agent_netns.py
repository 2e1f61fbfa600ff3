"""The port agent on real switches: qdiscs of the kernel, and Open vSwitch in userspace."""

import contextlib
import os
import shutil
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from port_agent_rig import agent, ask, until, write_files

from lab.system import namespaces
from xco.errors import PortGone, SwitchAway
from xco.ports.linux import LinuxReader
from xco.ports.openflow import OpenFlowReader, PortNumber
from xco.ports.reader import Counters, PortReader, Reading

pytestmark = [pytest.mark.root, pytest.mark.timeout(120)]
SWITCH, FAR = "xcoport-switch", "xcoport-far"
MACS = {SWITCH: "02:00:00:00:00:01", FAR: "02:00:00:00:00:02"}
SCHEMA = Path("/usr/share/openvswitch/vswitch.ovsschema")
MISSING = [name for name in ("ovsdb-server", "ovs-vswitchd", "ovs-vsctl")
           if shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin") is None]  # fmt: skip
needs_ovs = pytest.mark.skipif(
    bool(MISSING), reason=f"no {', '.join(MISSING)} (openvswitch-switch)"
)
PAYLOAD = 1000
FRAME = PAYLOAD + 42
"""With UDP, IPv4 and Ethernet."""


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True)


def tc(*words: str) -> None:
    ip("netns", "exec", SWITCH, "tc", *words)


@pytest.fixture
def wire() -> Iterator[None]:
    """A port `e0` of a switch, at its other end a far machine."""
    for name in (SWITCH, FAR):
        namespaces.remove(name)
        namespaces.create(name)
    try:
        end = ("peer", "name", "e0", "netns", FAR)
        ip("-n", SWITCH, "link", "add", "e0", "type", "veth", *end)
        for number, name in enumerate((SWITCH, FAR), start=1):
            namespaces.write_sysctls(name, {"ipv6/conf/e0/disable_ipv6": 1})
            ip("-n", name, "address", "add", f"10.78.0.{number}/24", "dev", "e0")
            ip("-n", name, "link", "set", "e0", "address", MACS[name], "up")
            ip("-n", name, "link", "set", "lo", "up")
        # No neighbour is looked up: the frames are those of the test alone.
        ip("-n", SWITCH, "neigh", "add", "10.78.0.2", "lladdr", MACS[FAR], "dev", "e0")
        ip("-n", FAR, "neigh", "add", "10.78.0.1", "lladdr", MACS[SWITCH], "dev", "e0")
        yield
    finally:
        for name in (SWITCH, FAR):
            namespaces.remove(name)


def send(packets: int) -> None:
    """Send packets out of the switch's port at once."""
    code = (
        "import socket\n"
        "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
        "s.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 22)\n"
        f"for _ in range({packets}): s.sendto(bytes({PAYLOAD}), ('10.78.0.2', 9))\n"
    )
    ip("netns", "exec", SWITCH, "python3", "-c", code)


class Inside:
    """A reader whose reads take place in the switch's namespace."""

    def __init__(self, reader: PortReader) -> None:
        self._reader = reader

    def read(self) -> Sequence[Reading]:
        return namespaces.inside(SWITCH, self._reader.read)

    def first(self) -> Counters:
        """Return the counters of the first port."""
        reading = self.read()[0]
        assert isinstance(reading, Counters), reading
        return reading


@contextlib.contextmanager
def inside(reader: PortReader) -> Iterator[Inside]:
    """Give a reader in the switch's namespace."""
    try:
        yield Inside(reader)
    finally:
        reader.close()


@pytest.mark.usefixtures("wire")
def test_a_queue_without_congestion_counts_every_packet() -> None:
    tc("qdisc", "add", "dev", "e0", "root", "handle", "1:", "pfifo_fast")
    with inside(LinuxReader(["e0"])) as reader:
        before = reader.first()
        send(50)
        after = reader.first()
    assert after.packets - before.packets == 50
    assert after.bytes - before.bytes == 50 * FRAME
    assert after.drops == before.drops
    assert not after.counts_marks


@pytest.mark.usefixtures("wire")
@pytest.mark.parametrize("classes", [False, True], ids=["tbf", "htb"])
def test_a_slow_port_shows_backlog_and_drops(classes: bool) -> None:
    # it takes two seconds to empty: it is read before that
    limits = ("rate", "40kbit", "burst", "4000", "limit", str(10 * FRAME))
    if classes:
        tc("qdisc", "add", "dev", "e0", "root", "handle", "1:", "htb", "default", "1")
        tc("class", "add", "dev", "e0", "parent", "1:", "classid", "1:1", "htb", "rate", "1gbit")
        tc("qdisc", "add", "dev", "e0", "parent", "1:1", "handle", "2:", "tbf", *limits)
    else:
        tc("qdisc", "add", "dev", "e0", "root", "handle", "1:", "tbf", *limits)
    with inside(LinuxReader(["e0"])) as reader:
        send(100)
        first = reader.first()
        assert 0 < first.backlog_bytes <= 10 * FRAME
        assert 80 <= first.drops < 100
        end = time.monotonic() + 30
        while reader.first().backlog_bytes and time.monotonic() < end:
            time.sleep(0.05)
        last = reader.first()
    assert last.packets + last.drops == 100
    assert last.bytes == last.packets * FRAME


@pytest.mark.usefixtures("wire")
def test_a_port_that_is_deleted_and_made_again_begins_again() -> None:
    tc("qdisc", "add", "dev", "e0", "root", "handle", "1:", "pfifo_fast")
    with inside(LinuxReader(["e0"])) as reader:
        send(20)
        assert reader.first().packets >= 20
        ip("-n", SWITCH, "link", "del", "e0")
        (gone,) = reader.read()
        assert isinstance(gone, PortGone)
        ip("-n", SWITCH, "link", "add", "e0", "type", "veth", "peer", "name", "e1")
        tc("qdisc", "add", "dev", "e0", "root", "handle", "1:", "pfifo_fast")
        assert reader.first().packets == 0


@pytest.mark.usefixtures("wire")
def test_an_interface_without_a_queue_is_reported_by_check(tmp_path: Path) -> None:
    port = '[[port-agent.port]]\nlink = ["tor", "store"]\nreader = "linux"\ninterface = "e0"\n'
    write_files(tmp_path, "127.0.0.1:9", port)
    answer = ask(tmp_path / "xco.toml", "check", namespace=SWITCH)
    assert answer.returncode == 1
    assert "tc qdisc add dev e0 root fq_codel" in answer.stderr
    tc("qdisc", "add", "dev", "e0", "root", "handle", "1:", "pfifo_fast")
    assert ask(tmp_path / "xco.toml", "check", namespace=SWITCH).returncode == 0


class OpenVSwitch:
    """Open vSwitch in userspace (datapath_type=netdev), with a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.management = folder / "br0.mgmt"
        self._processes: list[subprocess.Popen[bytes]] = []
        self.database = f"unix:{folder}/db.sock"

    def start_database(self) -> None:
        """Start an empty database."""
        database = self.folder / "conf.db"
        subprocess.run(["ovsdb-tool", "create", database, SCHEMA], check=True)
        self._start("ovsdb-server", str(database), f"--remote=p{self.database}")
        until((self.folder / "db.sock").exists, "the database")
        self.vsctl("--no-wait", "init")

    def _start(self, program: str, *words: str) -> "subprocess.Popen[bytes]":
        files = (
            f"--log-file={self.folder}/{program}.log",
            f"--unixctl={self.folder}/{program}.ctl",
        )
        path = shutil.which(program, path=f"{os.environ['PATH']}:/usr/sbin") or program
        command = ["ip", "netns", "exec", SWITCH, path, *words, *files, "-vconsole:off"]
        started = subprocess.Popen(command, env={**os.environ, "OVS_RUNDIR": str(self.folder)})
        self._processes.append(started)
        return started

    def start(self) -> None:
        """Start the switch itself."""
        self._start("ovs-vswitchd", self.database, "--disable-system")
        until(lambda: self.vsctl("show") is not None, "the switch")

    def stop(self) -> None:
        """Stop the switch, and leave the database."""
        self._end(self._processes.pop())

    def vsctl(self, *words: str) -> str:
        """Change or show the configuration."""
        command = ["ovs-vsctl", f"--db={self.database}", "--timeout=20", *words]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    def close(self) -> None:
        """End both programs."""
        while self._processes:
            self._end(self._processes.pop())

    @staticmethod
    def _end(process: "subprocess.Popen[bytes]") -> None:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@pytest.fixture
def ovs(wire: None, tmp_path: Path) -> Iterator[OpenVSwitch]:
    """A bridge with two ports: 1 leads to the far machine, 2 to this side."""
    del wire
    made = OpenVSwitch(tmp_path)
    try:
        made.start_database()
        made.start()
        ip("-n", SWITCH, "address", "flush", "dev", "e0")
        ip("-n", SWITCH, "link", "add", "g0", "type", "veth", "peer", "name", "g1")
        for name in ("g0", "g1"):
            namespaces.write_sysctls(SWITCH, {f"ipv6/conf/{name}/disable_ipv6": 1})
            ip("-n", SWITCH, "link", "set", name, "up")
        ip("-n", SWITCH, "address", "add", "10.78.0.1/24", "dev", "g1")
        ip("-n", SWITCH, "neigh", "replace", "10.78.0.2", "lladdr", MACS[FAR], "dev", "g1")
        made.vsctl(
            *("add-br", "br0", "--", "set", "bridge", "br0", "datapath_type=netdev"),
            *("protocols=OpenFlow10,OpenFlow13", "--", "set-controller", "br0"),
            *("ptcp:16653:127.0.0.1", "--", "add-port", "br0", "e0", "--", "set", "Interface"),
            *("e0", "ofport_request=1", "--", "add-port", "br0", "g0", "--", "set", "Interface"),
            *("g0", "ofport_request=2"),
        )
        yield made
    finally:
        made.close()


@needs_ovs
@pytest.mark.parametrize("switch", ["unix:{}", "tcp:127.0.0.1:16653"])
def test_open_vswitch_counts_what_leaves_a_port(ovs: OpenVSwitch, switch: str) -> None:
    ports = PortNumber(1), PortNumber(9)
    with inside(OpenFlowReader(switch.format(ovs.management), ports)) as reader:
        before, gone = reader.read()
        assert isinstance(before, Counters)
        assert isinstance(gone, PortGone)
        send(50)
        after = until(lambda: settled(reader, before.packets + 50), "50 packets")
    assert after.bytes - before.bytes >= 50 * FRAME
    assert not after.counts_marks


def settled(reader: Inside, packets: int) -> Counters | None:
    reading = reader.first()
    return reading if reading.packets >= packets else None


@needs_ovs
def test_open_vswitch_counts_a_queue(ovs: OpenVSwitch) -> None:
    ovs.vsctl(
        *("set", "port", "e0", "qos=@q", "--", "--id=@q", "create", "qos", "type=linux-htb"),
        *("other-config:max-rate=100000000", "queues:0=@z", "--", "--id=@z", "create", "queue"),
        "other-config:max-rate=50000000",
    )
    ports = PortNumber(1, 0), PortNumber(1, 5)
    with inside(OpenFlowReader(f"unix:{ovs.management}", ports)) as reader:
        queue, gone = reader.read()
    assert isinstance(queue, Counters), queue
    assert isinstance(gone, PortGone)


@needs_ovs
def test_a_switch_that_restarts_and_a_port_that_goes_are_followed(ovs: OpenVSwitch) -> None:
    ports = PortNumber(1), PortNumber(2)
    with inside(OpenFlowReader(f"unix:{ovs.management}", ports)) as reader:
        assert {type(one) for one in reader.read()} == {Counters}
        ovs.vsctl("del-port", "br0", "g0")
        kept, gone = reader.read()
        assert isinstance(kept, Counters)
        assert isinstance(gone, PortGone)
        ovs.stop()
        with pytest.raises(SwitchAway):
            reader.read()
        ovs.start()
        assert isinstance(until(lambda: again(reader), "the switch"), Counters)


def again(reader: Inside) -> object:
    try:
        reading = reader.read()[0]
    except SwitchAway:
        return None
    return reading if isinstance(reading, Counters) else None


@needs_ovs
def test_a_switch_without_openflow_1_3_says_how_to_allow_it(
    ovs: OpenVSwitch, tmp_path: Path
) -> None:
    ovs.vsctl("set", "bridge", "br0", "protocols=OpenFlow10")
    port = (
        '[[port-agent.port]]\nlink = ["tor", "store"]\nreader = "openflow"\n'
        'switch = "tcp:127.0.0.1:16653"\nnumber = 1\n'
    )
    write_files(tmp_path, "127.0.0.1:9", port)
    answer = ask(tmp_path / "xco.toml", "check", namespace=SWITCH)
    assert answer.returncode == 1
    assert "protocols=OpenFlow13" in answer.stderr


@needs_ovs
def test_the_agent_follows_a_restart_of_open_vswitch(ovs: OpenVSwitch, tmp_path: Path) -> None:
    port = (
        '[[port-agent.port]]\nlink = ["tor", "store"]\nreader = "openflow"\n'
        f'switch = "unix:{ovs.management}"\nnumber = 1\n'
    )
    with agent(tmp_path, "127.0.0.1:9", port, SWITCH) as ours:
        until(lambda: '"problem": ""' in ours.ask("status", "--json").stdout, "the first reading")
        ovs.stop()
        until(lambda: ours.events("port_unreadable"), "the loss")
        ovs.start()
        until(lambda: ours.events("port_readable"), "the return")
        assert len(ours.events("port_unreadable")) == 1
        assert not ours.events("unexpected_error")
