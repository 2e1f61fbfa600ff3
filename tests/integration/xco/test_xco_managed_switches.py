"""Managed switches read by SNMP: net-snmp's agent and lldpd of Debian on real bridges in a ring."""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from bridge_ring import Ring, inside, settled, sh
from support.waiting import eventually

from xco.errors import TopologyError, TreeError
from xco.topology.discovery import discover, read_switch
from xco.topology.file import SnmpSource

MIB = Path(__file__).with_name("snmp_bridge_mib.py")
NEEDED = ("snmpd", "snmpbulkwalk", "lldpd")
pytestmark = [
    pytest.mark.root,
    pytest.mark.timeout(240),
    pytest.mark.skipif(
        not all(map(shutil.which, NEEDED)), reason="apt install snmp snmpd lldpd installs them"
    ),
]
PATIENCE_S = 60.0
RING = Ring("xcom")


def address(switch: str) -> str:
    """Return where a switch is managed."""
    return f"198.18.7.{4 * RING.switches.index(switch) + 2}"


@pytest.fixture(scope="module")
def agents() -> Iterator[None]:
    """An SNMP agent on each switch, and LLDP on switches and hosts; this user's credentials."""
    with RING.built(), ExitStack() as stack, pytest.MonkeyPatch.context() as environment:
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="xcom-")))
        folder.chmod(
            0o755
        )  # lldpd's part that reads its settings gives up root's rights before it connects
        for switch in RING.switches:
            stack.enter_context(management(switch))
            stack.enter_context(agent(switch, folder))
            stack.enter_context(lldp(switch, folder, "-x", "-X", str(folder / f"{switch}.x")))
        for host in RING.hosts:
            stack.enter_context(lldp(host, folder))
        (folder / "snmp.conf").write_text("defVersion 2c\ndefCommunity reader\n")
        environment.setenv("SNMPCONFPATH", str(folder))
        yield


@contextmanager
def management(switch: str) -> Iterator[None]:
    """Join a switch's namespace to this one, beside its ports."""
    number = RING.switches.index(switch)
    here, there = f"198.18.7.{4 * number + 1}/30", f"{address(switch)}/30"
    sh("ip", "link", "add", f"xcomm{number}", "type", "veth", "peer", "mgmt", "netns", switch)
    try:
        sh("ip", "address", "add", here, "dev", f"xcomm{number}")
        sh("ip", "link", "set", f"xcomm{number}", "up")
        inside(switch, "ip", "address", "add", there, "dev", "mgmt")
        inside(switch, "ip", "link", "set", "mgmt", "up")
        yield
    finally:
        sh("ip", "link", "delete", f"xcomm{number}")


@contextmanager
def agent(switch: str, folder: Path) -> Iterator[None]:
    """Run net-snmp's agent, which tells of the bridge, and which lldpd joins."""
    conf = folder / f"{switch}.conf"
    conf.write_text(
        f"agentaddress udp:{address(switch)}:161\nrocommunity reader\nmaster agentx\n"
        f"agentXSocket {folder / f'{switch}.x'}\n"
        f"pass_persist .1.3.6.1.2.1.17 {sys.executable} {MIB}\n"
    )
    log = folder / f"{switch}.log"
    command = ["snmpd", "-f", "-Lf", str(log), "-C", "-c", str(conf), "-p", f"{conf}.pid"]
    with program(switch, *command):
        eventually((folder / f"{switch}.x").exists, PATIENCE_S)
        yield


@contextmanager
def lldp(name: str, folder: Path, *more: str) -> Iterator[None]:
    """Run lldpd, which calls itself by this name."""
    conf = folder / f"{name}.lldpd.conf"
    conf.write_text("configure lldp portidsubtype ifname\nconfigure lldp tx-interval 1\n")
    called = ("unshare", "--uts", "sh", "-c", 'hostname "$0"; exec "$@"', name)
    where = ("-u", str(folder / f"{name}.lldpd"), "-O", str(conf), "-I", "eth0,next,back,edge")
    with program(name, *called, "lldpd", "-d", *where, *more):
        yield


@contextmanager
def program(name: str, *command: str) -> Iterator[None]:
    """Run a program in a namespace until the end."""
    words = ["ip", "netns", "exec", name, *command]
    quiet = subprocess.DEVNULL
    with subprocess.Popen(words, stdout=quiet, stderr=quiet) as process:
        try:
            yield
        finally:
            process.terminate()


@pytest.fixture
def file(agents: None, tmp_path: Path) -> Path:
    """A topology that names no port: LLDP has to find them."""
    del agents
    tables = [f'[switch.{name}]\nsnmp = "{address(name)}"' for name in RING.switches]
    tables += [f"[host.{name}]" for name in RING.hosts]
    tables += [
        f'[[link]]\nbetween = ["{a}", "{b}"]\ncapacity = "1Gbps"'
        for a, b in (*RING.between, *RING.edges)
    ]
    path = tmp_path / "network.toml"
    path.write_text("\n".join(tables))
    return path


def test_the_tree_is_the_one_that_the_switches_agreed_on(file: Path) -> None:
    assert settled(file).tree == frozenset({0, 2, 3, 4})


def test_the_ports_and_their_neighbours_are_those_of_the_cables(file: Path) -> None:
    settled(file)
    view = read_switch(SnmpSource("xcom-s3", address("xcom-s3")))
    assert view.states == {"next": "forwarding", "back": "blocking", "edge": "forwarding"}
    assert view.neighbours == {
        "next": ("xcom-s1", "back"),
        "back": ("xcom-s2", "next"),
        "edge": ("xcom-h3", "eth0"),
    }
    assert set(view.speeds_bps.values()) == {10**10}


def test_a_cable_that_is_cut_moves_the_tree(file: Path) -> None:
    """LLDP forgets the neighbour with the carrier: only a link with named ports stays known."""
    settled(file)
    named = '"xcom-s1"]\ncapacity = "1Gbps"\nports = ["next", "back"]'
    file.write_text(file.read_text().replace('"xcom-s1"]\ncapacity = "1Gbps"', named, 1))
    inside("xcom-s3", "ip", "link", "set", "next", "down")
    try:

        def moved() -> bool:
            with suppress(TopologyError):
                return discover(file).tree == frozenset({0, 1, 3, 4})
            return False

        eventually(moved, PATIENCE_S, poll_s=0.5)
    finally:
        inside("xcom-s3", "ip", "link", "set", "next", "up")


def test_an_agent_that_does_not_answer_is_named(agents: None) -> None:
    del agents
    with pytest.raises(TreeError, match=r"agent 198\.18\.7\.1: ") as caught:
        read_switch(SnmpSource("s9", "198.18.7.1"))
    assert caught.value.key == "switch.s9"
