"""The simpler tools, set on a router of the lab, and what disturbs them.

Tools: a quota, a weight, a TBF and an XDP program. Disturbances: dear packets, a busy neighbour.
"""

import platform
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from benchmarks.evaluation.xtc.stage import Stage
from common.units import CapFraction
from lab.programs.processes import Hog, Place
from lab.routers.router import Router
from lab.system import cgroups

FRAME_BYTES: Final = 64
"""Of the flood that a limit in bits is made for."""
XDP_WINDOW_S: Final = 0.01
SOURCE: Final = Path(__file__).with_name("packet_limit.bpf.c")
DEFAULT_SHARES: Final = 1024
DEFAULT_WEIGHT: Final = 100
BURST_S: Final = 0.01
FILTERS: Final = 3_000
"""Comparisons of each packet on its way back to Dom0, in the router's CPU time."""


def bits_of(pps: float) -> int:
    """Return the rate in bits/s of the flood's packets."""
    return round(pps * FRAME_BYTES * 8)


def tbf_words(pps: float) -> list[str]:
    """Return the parameters of a TBF that passes this rate of the flood's packets."""
    burst = max(round(bits_of(pps) * BURST_S / 8), 2000)
    return ["tbf", "rate", f"{bits_of(pps)}bit", "burst", str(burst), "latency", "20ms"]


def weight_of(percent: float, default: int) -> int:
    """Return the weight that gives this share of a CPU next to one group of default weight."""
    return max(2, round(default * percent / (100 - percent)))


@contextmanager
def quota(on: Stage, percent: float) -> Iterator[None]:
    """Set a fixed quota."""
    with on.quota() as actuator:
        actuator.apply(CapFraction(percent / 100))
        yield


@contextmanager
def weight(router: Router, percent: float) -> Iterator[None]:
    """Set a weight; it limits only while others want the same CPU."""
    assert router.cgroup is not None
    unified = router.cgroup / "cpu.weight"
    file = unified if unified.exists() else router.cgroup / "cpu.shares"
    before = file.read_text()
    default = DEFAULT_WEIGHT if file == unified else DEFAULT_SHARES
    file.write_text(str(weight_of(percent, default)))
    try:
        yield
    finally:
        file.write_text(before)


@contextmanager
def tbf(netns: str, router: Router, pps: float) -> Iterator[None]:
    """Set a TBF on each of Dom0's interfaces towards the router."""
    for name in router.host_interfaces:
        _in(netns, ["tc", "qdisc", "add", "dev", name, "root", *tbf_words(pps)])
    try:
        yield
    finally:
        for name in router.host_interfaces:
            _in(netns, ["tc", "qdisc", "del", "dev", name, "root"])


@contextmanager
def xdp(router: Router, pps: float) -> Iterator[None]:
    """Attach an XDP packet limit to the router's interface towards the source."""
    near = router.inner_interfaces[0]
    with tempfile.TemporaryDirectory(prefix="xtc-evaluation-") as folder:
        program = Path(folder) / "limit.o"
        _call(compile_words(pps, program))
        _in(
            router.netns,
            ["ip", "link", "set", "dev", near, "xdp", "obj", str(program), "sec", "xdp"],
        )
        try:
            yield
        finally:
            _in(router.netns, ["ip", "link", "set", "dev", near, "xdp", "off"])


@contextmanager
def dear_packets(router: Router) -> Iterator[None]:
    """Make each packet cost the router as much as a long chain of filters does."""
    router.set_packet_cost(0, FILTERS)
    try:
        yield
    finally:
        router.set_packet_cost(0, 0)


@contextmanager
def neighbour(router: Router, cpu: int | None) -> Iterator[None]:
    """Keep the router's CPU busy from a control group next to the router's."""
    assert router.cgroup is not None
    group = router.cgroup.with_name("neighbour")
    group.mkdir()
    try:
        with Hog("programs.hog", ["1.0"], Place(router.netns, str(group), cpu)):
            yield
    finally:
        cgroups.remove(group)


def compile_words(pps: float, program: Path) -> list[str]:
    """Return the command that compiles the limit for a rate."""
    limit = max(1, round(pps * XDP_WINDOW_S))
    headers = f"/usr/include/{platform.machine()}-linux-gnu"
    flags = ["-O2", "-g", "-Wall", "-Werror", "-target", "bpf", f"-DLIMIT={limit}", f"-I{headers}"]
    return ["clang", *flags, "-c", str(SOURCE), "-o", str(program)]


def _in(netns: str, argv: Sequence[str]) -> None:
    _call(Place(netns).command(argv))


def _call(argv: Sequence[str]) -> None:
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(argv)}: {done.stderr.strip()}")
