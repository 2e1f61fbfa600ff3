"""The Debian packages installed together in a copy of this system, used, removed, purged."""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from booted_rig import booted
from installed_rig import System
from one_thread import stopped, threads_named, wait_for_end
from package_rig import BUILT_S, Packages
from support.waiting import eventually
from zovn_veth_rig import require_lossless_veth

pytest_plugins = ["package_fixtures"]

TOOLS = ("dpkg", "dpkg-shlibdeps", "ip", "make", "nsenter", "setpriv", "strip", "tc", "unshare")
NEEDED = (
    *("adduser", "init-system-helpers", "libsodium-dev", "libsodium23", "python3"),
    *("libdpdk-dev", "librte-eal23", "librte-vhost23"),
)
"""What the packages depend on or are built with, as Debian's packages."""
MISSING = [tool for tool in TOOLS if shutil.which(tool) is None]
pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root"),
    pytest.mark.skipif(bool(MISSING), reason=f"no {', '.join(MISSING)}"),
    pytest.mark.timeout(BUILT_S),
]
BUILDS = {
    "xtc": "build.sh",
    "xtc-policer": "build-policer.sh",
    "xco": "build-xco.sh",
    "zovn": "build-zovn.sh",
}
UNITS = (
    *("xtc.service", "xtc-policer.service"),
    *("xco-controller.service", "xco-coordinator.service", "xco-port-agent.service"),
    *("zovn-switch.service", "zovn-exporter.service"),
)
PAGES = (
    *("xtc.8", "xtc.toml.5", "policer.8", "policer.toml.5", "xco.8", "xco.toml.5"),
    *("zovn.8", "zovn.toml.5"),
)
RECORD = "/run/zovn/vm2.sock.held"
"""What a killed switch may leave for the next, of a port that the settings do not name."""
BEGUN = "/root/begun"
"""A file that is as old as the copy."""
SETTINGS = b"""
[controller]
topology = "/etc/xtc/topology.toml"
listen = "10.9.0.1:7400"

[coordinator]
host = "h1"
interface = "e0"
topology = "/etc/xtc/topology.toml"
key_file = "/etc/xtc/xco-host.key"
controllers = ["10.9.0.1:7400"]
"""
TOPOLOGY = b"""
[switch.tor]
[host.h1]
addresses = ["10.9.0.2"]
[host.h2]
addresses = ["10.9.0.3"]
[[link]]
between = ["h1", "tor"]
capacity = "100Mbps"
[[link]]
between = ["h2", "tor"]
capacity = "100Mbps"
"""
NETWORK = """
ip netns add head
ip link add e0 type veth peer name e1 netns head
ip address add 10.9.0.2/24 dev e0
ip link set e0 up
ip -n head address add 10.9.0.1/24 dev e1
ip -n head link set lo up
ip -n head link set e1 up
"""


def dpkg_has(name: str) -> bool:
    words = ["dpkg-query", "--show", "--showformat=${db:Status-Status}", name]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    return done.stdout == "installed"


@pytest.fixture(scope="module")
def system(packages: Packages) -> Iterator[System]:
    """A copy of this system with all packages in it, the daemon's first."""
    if missing := [name for name in NEEDED if not dpkg_has(name)]:
        pytest.skip(f"no {', '.join(missing)}")
    if present := [name for name in BUILDS if dpkg_has(name)]:
        pytest.skip(f"{', '.join(present)} is installed here")
    built = [packages.built(script) for script in BUILDS.values()]
    try:
        copy = System()
    except OSError as error:
        pytest.skip(str(error))
    try:
        copy.said("touch", BEGUN)
        copy.install(*built)
        yield copy
    finally:
        copy.end()


def unit_of(system: System, name: str) -> dict[str, str]:
    """Return the settings of an installed unit, of which the last of a name counts."""
    text = system.said("cat", f"/lib/systemd/system/{name}")
    return dict(re.findall(r"(?m)^(\w+)=(.*)$", text))


def started(system: System, name: str, *inside: str) -> AbstractContextManager[None]:
    """Run what a unit runs, in its directories and with its capabilities, until it is left."""
    unit = unit_of(system, f"{name}.service")
    for kind, above in (("StateDirectory", "/var/lib"), ("RuntimeDirectory", "/run")):
        if kind in unit:
            place = f"{above}/{unit[kind]}"
            system.said("install", "-d", "-m", unit[f"{kind}Mode"], place)
    names = unit["CapabilityBoundingSet"].lower().split()
    kept = ",".join(["-all", *(f"+{each.removeprefix('cap_')}" for each in names)])
    bounds = ("setpriv", f"--bounding-set={kept}", "--no-new-privs")
    return system.running(name, *inside, *bounds, *unit["ExecStart"].split())


def roots(system: System) -> str:
    return system.said("tc", "qdisc", "show", "dev", "e0", "root")


@pytest.mark.parametrize("program", ["xtc", "policer", "xco", "zovn"])
def test_each_program_runs_and_completes_its_commands(system: System, program: str) -> None:
    assert system.said(program, "--help").startswith(f"Usage: {program}")
    assert system.said(program, "--version").startswith(f"{program} ")
    assert system.there(f"/usr/share/bash-completion/completions/{program}")


@pytest.mark.parametrize("page", PAGES)
def test_each_manual_is_found(system: System, page: str) -> None:
    name, _, section = page.rpartition(".")
    assert system.said("man", "--where", section, name).strip().endswith(f"/{page}.gz")


def test_nothing_is_enabled_before_it_is_configured(system: System) -> None:
    assert len(system.there(*(f"/lib/systemd/system/{unit}" for unit in UNITS))) == len(UNITS)
    for unit in UNITS:
        assert system.said("find", "/etc/systemd/system", "-name", unit) == ""
    found = system.run("xco", "coordinator", "check")
    assert (found.returncode, found.stdout) == (2, "")
    assert "write a table: [coordinator]" in found.stderr


def test_controller_and_coordinator_run_with_what_their_units_leave_them(system: System) -> None:
    system.said("sh", "-euc", NETWORK)
    system.write("/etc/xtc/xco.toml", SETTINGS)
    system.write("/etc/xtc/topology.toml", TOPOLOGY)
    system.said("xco", "key", "make", "/etc/xtc/xco.key")
    of_host = ("h1", "--topology", "/etc/xtc/topology.toml", "--out", "/etc/xtc/xco-host.key")
    system.said("xco", "key", "host", "/etc/xtc/xco.key", *of_host)
    in_head = ("ip", "netns", "exec", "head")
    assert "no mistake found" in system.said("xco", "controller", "check")
    assert "no mistake found" in system.said("xco", "coordinator", "check")

    with started(system, "xco-controller", *in_head):
        with started(system, "xco-coordinator"):
            eventually(lambda: "7c01:" in roots(system))
            eventually(lambda: hosts_joined(system) == 1)
        assert "7c01:" not in roots(system)


def test_the_switch_and_its_exporter_run_with_what_their_units_leave_them(system: System) -> None:
    settings = b'[switch]\n[[switch.port]]\nname = "vm1"\ngroup = "adm"\n'
    system.write("/etc/xtc/zovn.toml", settings)
    with started(system, "zovn-switch"):
        eventually(lambda: system.run("zovn", "switch", "status").returncode == 0)
        assert system.said("stat", "-c", "%G:%a", "/run/zovn/vm1.sock") == "adm:660\n"
        with started(system, "zovn-exporter"):
            eventually(lambda: 'zovn_port_attached{port="vm1"} 0.0' in metrics(system))
    assert system.there("/run/zovn/control.sock", "/run/zovn/vm1.sock") == []


@pytest.mark.external
@pytest.mark.skipif(not Path("/usr/lib/systemd/systemd").exists(), reason="needs systemd")
def test_systemd_starts_a_switch_again_if_its_forwarding_thread_alone_stands_still(
    system: System,
) -> None:
    system.write("/etc/xtc/zovn.toml", b'[switch]\n[[switch.port]]\nname = "vm1"\n')
    with booted(system, "zovn-switch.service") as manager:
        started = manager.run("systemctl", "start", "zovn-switch")
        assert started.returncode == 0, started.stderr
        assert manager.run("touch", RECORD).returncode == 0
        (thread,) = threads_named(manager.process("zovn-switch"), "zovn")
        with stopped(thread):
            wait_for_end(thread)
        eventually(lambda: manager.shown("zovn-switch", "NRestarts") == "1")
        eventually(lambda: manager.run("zovn", "switch", "status").returncode == 0)
        assert manager.run("test", "-e", RECORD).returncode == 0
        assert manager.run("systemctl", "stop", "zovn-switch").returncode == 0
        assert manager.shown("zovn-switch", "Result") == "success"


TO_CONTAINERS = b"".join(
    b'[[switch.port]]\nname = "c%d"\nkind = "veth"\ninterface = "h%d"\n' % (n, n) for n in (1, 2)
)
CONTAINERS = """
for n in 1 2; do
    ip netns add c$n
    ip link add h$n type veth peer name e0 netns c$n numtxqueues 1
    ip link set h$n up
    ip -n c$n address add 10.8.0.$n/24 dev e0
    ip -n c$n link set e0 up
    ip netns exec c$n ethtool -K e0 tx off
done
"""


@pytest.mark.external
@pytest.mark.skipif(not Path("/usr/lib/systemd/systemd").exists(), reason="needs systemd")
def test_the_units_sandbox_allows_ports_to_containers(system: System) -> None:
    """The kernel refused the XDP program to a process without CAP_PERFMON."""
    require_lossless_veth()
    system.write("/etc/xtc/zovn.toml", TO_CONTAINERS)
    system.said("sh", "-euc", CONTAINERS)
    with booted(system, "zovn-switch.service") as manager:
        started = manager.run("systemctl", "start", "zovn-switch")
        assert started.returncode == 0, started.stderr
        system.said("ip", "netns", "exec", "c1", "ping", "-c", "3", "-w", "30", "10.8.0.2")
        assert "7a7" in system.said("tc", "qdisc", "show", "dev", "h1")
        assert manager.run("systemctl", "stop", "zovn-switch").returncode == 0
        assert manager.shown("zovn-switch", "Result") == "success"
        assert "7a7" not in system.said("tc", "qdisc", "show", "dev", "h1")


def metrics(system: System) -> str:
    code = "import urllib.request as r; print(r.urlopen('http://127.0.0.1:9171/metrics').read())"
    return system.run("/usr/bin/python3", "-c", code).stdout.replace("\\n", "\n")


def hosts_joined(system: System) -> int:
    done = system.run("xco", "controller", "status", "--json")
    if done.returncode != 0:
        return 0
    return sum(row["joined"] for row in json.loads(done.stdout)["hosts"])


def test_an_upgrade_keeps_the_settings(system: System, packages: Packages) -> None:
    system.write("/etc/xtc/xco.toml", b"# changed\n" + SETTINGS)
    system.install(packages.built(BUILDS["xco"]))
    assert system.said("head", "-n", "1", "/etc/xtc/xco.toml") == "# changed\n"


def test_a_removal_releases_what_a_killed_coordinator_left(system: System) -> None:
    system.said("tc", "qdisc", "replace", "dev", "e0", "root", "handle", "7c01:", "htb")
    system.said("mkdir", "-p", "/var/lib/xco", "/run/xco")
    system.said("dpkg", "--no-triggers", "--remove", "xco")
    assert "7c01:" not in roots(system)
    gone = (
        "/usr/bin/xco",
        "/usr/lib/xco",
        "/run/xco",
        "/lib/systemd/system/xco-controller.service",
    )
    assert system.there("/etc/xtc/xco.toml", "/var/lib/xco", *gone) == [
        "/etc/xtc/xco.toml",
        "/var/lib/xco",
    ]
    assert system.said("xtc", "--version")  # it had no part in that


def test_a_purge_leaves_nothing_but_what_the_administrator_made(system: System) -> None:
    system.said("mkdir", "-p", "/var/lib/xtc", "/run/xtc")
    for name in reversed(BUILDS):
        system.said("dpkg", "--no-triggers", "--remove", name)
        system.said("dpkg", "--no-triggers", "--purge", name)
    places = ("/etc", "/usr", "/lib/systemd", "/var/lib/systemd", "/var/lib/dpkg/info", "/run")
    names = (
        "-name",
        "*xco*",
        "-o",
        "-name",
        "*xtc*",
        "-o",
        "-name",
        "*policer*",
        "-o",
        "-name",
        "*zovn*",
    )
    # What was written here alone: the real system's files are older.
    left = system.said(
        "find", *places, "(", *names, "-o", "-path", "*/xtc/*", ")", "-cnewer", BEGUN
    ).split()
    assert sorted(left) == [
        "/etc/xtc",
        "/etc/xtc/topology.toml",
        "/etc/xtc/xco-host.key",
        "/etc/xtc/xco.key",
    ]
    states = ("/var/lib/xtc", "/var/lib/xtc-policer", "/var/lib/xco")
    assert system.there(*states) == []
