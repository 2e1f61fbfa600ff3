"""Floors on the kernel's own control groups, v1 or v2: what a weight gives, what is put back."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.weights import prefer

from common.units import CapFraction
from lab.system import cgroups
from xtc.actuator.factory import open_actuator, release
from xtc.actuator.weights import Weighted
from xtc.kernel.weights import rivals, scale_of
from xtc.spec import CgroupSpec

PREFIX = "xtcfloor"
ROOT = cgroups.find_root()
HEAVIER = 4
ENOUGH_S = 0.5
pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(ROOT is None, reason="there is no cpu controller here"),
]


@pytest.fixture
def groups() -> Iterator[dict[str, Path]]:
    assert ROOT is not None
    made = {name: cgroups.create(ROOT, PREFIX, name) for name in ("router", "hog")}
    prefer(ROOT / PREFIX)
    yield made
    for group in (*made.values(), ROOT / PREFIX):
        cgroups.remove(group)


@pytest.fixture
def spinners(groups: dict[str, Path]) -> Iterator[dict[str, int]]:
    cpu = max(os.sched_getaffinity(0))
    spin = f"import os; os.sched_setaffinity(0, [{cpu}]); print(flush=True)\nwhile True: pass"
    running = {}
    for name, group in groups.items():
        process = subprocess.Popen([sys.executable, "-c", spin], stdout=subprocess.PIPE)
        assert process.stdout is not None
        process.stdout.readline()
        (group / "cgroup.procs").write_text(str(process.pid))
        running[name] = process
    yield {name: process.pid for name, process in running.items()}
    for process in running.values():
        process.kill()
        process.communicate()


def used(pid: int) -> float:
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9


def spent_until(enough_s: float, spinners: dict[str, int]) -> dict[str, float]:
    """Return the CPU time of each, once they had so much together, however busy the machine."""
    start = {name: used(pid) for name, pid in spinners.items()}
    while True:
        spent = {name: used(pid) - start[name] for name, pid in spinners.items()}
        if sum(spent.values()) >= enough_s:
            return spent
        time.sleep(0.05)


def weight(group: Path) -> int:
    scale = scale_of(group)
    assert scale is not None
    return int((group / scale.parameter).read_text())


def test_a_weight_divides_the_cpu_and_is_put_back_by_another_process(
    groups: dict[str, Path], spinners: dict[str, int]
) -> None:
    """Both are in one group, so that what else runs on the machine takes of both alike."""
    spec, before = CgroupSpec(str(groups["router"])), weight(groups["router"])
    actuator = open_actuator(spec)
    assert isinstance(actuator, Weighted)
    original = actuator.weights.claim(actuator.capture())
    assert actuator.capture() == original
    assert actuator.weights.rivals(())["hog"] == before
    actuator.weights.write(HEAVIER * before)
    assert actuator.weights.read() == weight(groups["router"]) == HEAVIER * before
    spent = spent_until(ENOUGH_S, spinners)
    assert spent["router"] > 0.6 * HEAVIER * spent["hog"]
    release(spec, original)  # as after a crash: from the journal alone
    assert weight(groups["router"]) == before


def test_an_idle_group_keeps_its_cap_and_has_no_weight(groups: dict[str, Path]) -> None:
    group = groups["router"]
    if not (group / "cpu.idle").exists():
        pytest.skip("this kernel has no cpu.idle")
    actuator = open_actuator(CgroupSpec(str(group)))
    assert isinstance(actuator, Weighted)
    original = actuator.weights.claim(actuator.capture())
    actuator.weights.write(HEAVIER * weight(group))
    (group / "cpu.idle").write_text("1")
    with pytest.raises(Exception, match=r"cpu\.idle"):
        actuator.weights.read()
    assert actuator.apply(CapFraction(0.2)) == pytest.approx(0.2, abs=1e-3)
    actuator.restore(original)
    assert actuator.applied() is None
    (group / "cpu.idle").write_text("0")
    assert weight(group) == original.weight  # type: ignore[union-attr]


def test_only_siblings_with_processes_contend(
    groups: dict[str, Path], spinners: dict[str, int]
) -> None:
    assert set(rivals(groups["router"])) == {"hog"}
    os.kill(spinners["hog"], 9)
    os.waitpid(spinners["hog"], 0)
    assert set(rivals(groups["router"])) == set()
