"""Gates that are times of departure, on Debian's kernel with fq, emulated: what passes them."""

import re
import shutil
import subprocess
import time
from pathlib import Path

import pytest
from system.kernels.guest import MARK, debian_kernel, debian_modules, run_machine
from system.xen.cache import Cache
from system.xen.kernel import pack

from xco.controller.config import load_controller_config
from xco.controller.loopfile import loop_text
from xco.coordinator.config import load_config, plain
from xco.core_files import CLASSIFIER, find, program
from xco.protocol.keys import derive, host_file
from xco.topology.file import load_topology

pytestmark = [pytest.mark.kernels, pytest.mark.timeout(600)]

CACHE = Path(__file__).parents[2] / "build/kernels"
INIT = Path(__file__).parent / "kernels/edt_init.sh"
MODULES = ("veth", "sch_fq", "sch_ingress", "cls_bpf")
PROGRAMS = ("ip", "tc", "iperf3")
MASTER = bytes(range(32))
LINE_BPS = 20_000_000
"""Slow: an emulated sender of 30 Mb/s is to have time left."""
PACE = 0.98
TOPOLOGY = """
[switch.s]
[host.a]
addresses = ["10.77.0.1"]
[host.b]
addresses = ["10.77.0.100"]
[host.c]
addresses = ["10.77.0.250"]
""" + "".join(
    f"""
[[link]]
between = ["{host}", "s"]
capacity = "{LINE_BPS}"
"""
    for host in "abc"
)
COORDINATOR = """
[coordinator]
host = "a"
interface = "e0"
topology = "{folder}/topology.toml"
key_file = "{folder}/a.key"
controllers = ["10.77.0.250:7400"]
gates = "{gates}"
metrics = "127.0.0.1:9169"
"""
CONTROLLER = """
[controller]
listen = "10.77.0.250:7400"
topology = "{folder}/topology.toml"
key = "{folder}/key"
strategy = "{strategy}"
"""


@pytest.fixture(scope="module")
def cache(request: pytest.FixtureRequest) -> Cache:
    terminal = request.config.pluginmanager.getplugin("terminalreporter")

    def write(words: str) -> None:
        terminal.write_line(f"{time.strftime('%H:%M:%S')} kernels: {words}")

    return Cache(CACHE, write)


def settings(folder: Path, gates: str) -> dict[str, str]:
    """Write a coordinator's and two controllers' settings; returns what their loops read."""
    (folder / "topology.toml").write_text(TOPOLOGY)
    (folder / "key").write_bytes(MASTER)
    (folder / "a.key").write_bytes(host_file(derive(MASTER, 0)))
    (folder / "xco.toml").write_text(COORDINATOR.format(folder=folder, gates=gates))
    coordinator = plain(load_config(folder / "xco.toml"))
    texts = {"coordinator.conf": coordinator}
    for epoch, strategy in enumerate(("rate", "timeslice"), start=time.time_ns() // 10**6):
        file = folder / f"{strategy}.toml"
        file.write_text(CONTROLLER.format(folder=folder, strategy=strategy))
        config = load_controller_config(file)
        texts[f"{strategy}.loop"] = loop_text(config, load_topology(config.topology), epoch)
    return texts


def libraries(binary: Path) -> list[Path]:
    """Return what a program is linked with (ldd(1))."""
    told = subprocess.run(["ldd", binary], capture_output=True, text=True, check=True).stdout
    return [Path(name) for name in re.findall(r"(/\S+) \(0x", told)]


def fill(root: Path, folder: Path, modules: Path, gates: str, queues: int) -> None:
    """Make the guest's file system."""
    for name in ("programs", "bin", "tmp", "etc", "var"):
        (root / name).mkdir(parents=True)
    found = [
        Path(str(shutil.which(name, path="/usr/sbin:/usr/bin:/sbin:/bin"))) for name in PROGRAMS
    ]
    for binary in (*found, program("xco-coordinator"), program("xco-controller")):
        shutil.copy(binary, root / "programs" / binary.name)
        for library in libraries(binary):
            target = root / library.relative_to("/")
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(library, target)
    shutil.copy(str(shutil.which("busybox")), root / "bin/busybox")
    (root / "lib").mkdir(exist_ok=True)
    shutil.copytree(modules, root / "lib/modules")
    version = next((root / "lib/modules").iterdir()).name
    subprocess.run(["/usr/sbin/depmod", "-b", root, version], check=True)
    classifier = find(CLASSIFIER)
    assert classifier is not None, "no clang"
    shutil.copy(classifier, root / CLASSIFIER)
    for name, text in settings(folder, gates).items():
        moved = text.replace(str(classifier), f"/{CLASSIFIER}").replace(str(folder), "/etc")
        (root / name).write_text(moved)
    for name in ("topology.toml", "key", "a.key"):
        shutil.copy(folder / name, root / "etc" / name)
    init = INIT.read_text().replace('"$QUEUES"', str(queues))
    (root / "init").write_text(init)
    (root / "init").chmod(0o755)


@pytest.mark.parametrize(("gates", "queues"), [("edt", 4), ("auto", 1)])
def test_rates_and_safe_shares_hold_with_times_of_departure(
    cache: Cache, tmp_path: Path, gates: str, queues: int
) -> None:
    with cache.locked():
        kernel, modules = debian_kernel(cache), debian_modules(cache, MODULES)
    root, archive = tmp_path / "root", tmp_path / "boot.cpio"
    fill(root, tmp_path, modules, gates, queues)
    pack(root, archive)
    console = run_machine(kernel, archive, tmp_path)
    said = dict(
        line.partition(MARK)[2].strip().partition(": ")[::2]
        for line in console.splitlines()
        if MARK in line
    )
    cache.say("; ".join(f"{key} {value}" for key, value in said.items()))
    assert "done" in said, console[-8000:]
    assert said["root"].startswith("qdisc mq 7c01:" if queues > 1 else "qdisc fq 7c01:")
    assert int(said["queues"]) == queues
    assert "7c01:" not in said["after"]
    assert console.count("grants timeslices") == 1
    assert console.count("fell back") <= 4, console[-8000:]
    safe = LINE_BPS / 2 * PACE
    assert float(said["without"]) > 1.2 * LINE_BPS
    for name, wire in (("safe", safe), ("rate", LINE_BPS * PACE), ("timeslice", safe)):
        assert float(said[f"{name}-udp"]) == pytest.approx(wire, rel=0.05), name
        assert 0.85 * wire < float(said[f"{name}-tcp"]) < wire, name
