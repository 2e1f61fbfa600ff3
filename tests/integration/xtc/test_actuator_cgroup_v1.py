"""The cgroup actuator on the kernel's own v1 groups, with a process that spins."""

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median

import pytest
from support.cpu import check_used, used
from support.stalls import Stalls

from common.units import CapFraction
from xtc.actuator.cgroup import CgroupActuator
from xtc.errors import Gone, Permanent
from xtc.kernel.quota import controller_mount
from xtc.spec import CgroupOriginal, CgroupSpec

NAME = "xtcact-group"
MOST_SHARES = 262_144
"""The kernel's largest: but for its quota, the group goes before the machine's other work."""


def mount(controller: str) -> Path | None:
    found = controller_mount(Path("/proc/self/mounts").read_text().splitlines(), controller)
    return None if found is None else Path(found)


CPU, CPUACCT = mount("cpu"), mount("cpuacct")
pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(CPU is None, reason="the cpu controller is not on cgroup v1 here"),
]


@pytest.fixture
def group() -> Iterator[Path]:
    assert CPU is not None
    path = CPU / NAME
    path.mkdir()
    (path / "cpu.shares").write_text(str(MOST_SHARES))
    yield path
    if path.exists():
        path.rmdir()


@pytest.fixture
def accounting() -> Iterator[Path]:
    assert CPUACCT is not None
    path = CPUACCT / NAME
    path.mkdir(exist_ok=True)
    yield path
    if path.exists():
        path.rmdir()


@pytest.fixture
def spinner(group: Path) -> Iterator[subprocess.Popen[bytes]]:
    spin = [sys.executable, "-uc", "print()\nwhile True: pass"]
    with subprocess.Popen(spin, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        (group / "cgroup.procs").write_text(str(process.pid))
        yield process
        process.kill()
        process.wait()


def opened(group: Path) -> CgroupActuator:
    return CgroupActuator(CgroupSpec(path=str(group)))


def check_spinning(group: Path, actuator: CgroupActuator, cap: float, stalls: Stalls) -> None:
    """Check that the spinning process gets its cap, and is throttled."""
    seen = used(group, lambda: actuator.usage().used or 0.0, 2, stalls)
    check_used(seen, cap, quota_period_s(group))


def quota_period_s(group: Path) -> float:
    return int((group / "cpu.cfs_period_us").read_text()) / 1e6


@pytest.mark.parametrize("cap", [0.1, 0.3])
def test_a_spinning_process_uses_its_cap_and_is_throttled(
    group: Path, accounting: Path, spinner: subprocess.Popen[bytes], cap: float, stalls: Stalls
) -> None:
    (accounting / "cgroup.procs").write_text(str(spinner.pid))
    actuator = opened(group)
    assert actuator.apply(CapFraction(cap)) == pytest.approx(cap, abs=1e-3)
    before = actuator.usage().throttled
    check_spinning(group, actuator, cap, stalls)
    after = actuator.usage().throttled
    assert before is not None
    assert after is not None
    assert after > before
    (CPUACCT / "cgroup.procs").write_text(str(spinner.pid))  # type: ignore[operator]


@pytest.mark.usefixtures("spinner")
def test_without_an_accounting_group_the_tasks_are_summed(group: Path, stalls: Stalls) -> None:
    assert CPUACCT is not None
    assert not (CPUACCT / NAME).exists()
    actuator = opened(group)
    actuator.apply(CapFraction(0.2))
    check_spinning(group, actuator, 0.2, stalls)


def test_caps_from_floor_to_ceiling_are_taken_in_any_order(group: Path) -> None:
    actuator = opened(group)
    floor, ceiling = actuator.limits.floor, actuator.limits.ceiling
    for cap in (0.5, floor, ceiling, 0.011, 0.009, 0.35, 0.0015, 1.0):
        got = actuator.apply(CapFraction(cap))
        assert got == pytest.approx(cap, rel=0.01)
        assert actuator.applied() == got


def test_restore_puts_quota_and_period_back_and_may_be_repeated(group: Path) -> None:
    (group / "cpu.cfs_period_us").write_text("50000")
    (group / "cpu.cfs_quota_us").write_text("7000")
    actuator = opened(group)
    original = actuator.capture()
    directory = group.resolve()
    assert original == CgroupOriginal(7000, 50_000, str(directory), directory.stat().st_ino)
    actuator.apply(CapFraction(0.02))
    for _ in range(2):
        actuator.restore(original)
        assert (group / "cpu.cfs_quota_us").read_text() == "7000\n"
        assert (group / "cpu.cfs_period_us").read_text() == "50000\n"


def test_restore_to_uncapped_writes_minus_one(group: Path) -> None:
    actuator = opened(group)
    original = actuator.capture()
    actuator.apply(CapFraction(0.02))
    actuator.restore(original)
    assert (group / "cpu.cfs_quota_us").read_text() == "-1\n"
    assert actuator.applied() is None


def test_a_removed_group_is_gone_even_when_its_name_is_taken_again(group: Path) -> None:
    actuator = opened(group)
    original = actuator.capture()
    actuator.apply(CapFraction(0.1))
    group.rmdir()
    for _ in ("removed", "made again"):
        with pytest.raises(Gone):
            actuator.apply(CapFraction(0.2))
        with pytest.raises(Gone):
            actuator.usage()
        actuator.restore(original)
        group.mkdir(exist_ok=True)
    assert (group / "cpu.cfs_quota_us").read_text() == "-1\n"


def test_a_cap_above_the_parents_is_refused_and_explained(group: Path) -> None:
    child = group / "child"
    child.mkdir()
    try:
        opened(group).apply(CapFraction(0.1))
        actuator = opened(child)
        with pytest.raises(Permanent, match="parent"):
            actuator.apply(CapFraction(0.2))
        assert actuator.apply(CapFraction(0.05)) == pytest.approx(0.05)
    finally:
        child.rmdir()


@pytest.mark.usefixtures("accounting")
def test_apply_and_usage_cost_little_more_than_the_kernels_part(group: Path) -> None:
    actuator = opened(group)
    quota, throttled = group / "cpu.cfs_quota_us", group / "cpu.stat"

    def ours(step: int) -> None:
        actuator.apply(CapFraction(0.2 + step * 1e-3))
        actuator.usage()

    def bare(step: int) -> None:
        quota.write_text(str(20_000 + step * 100))
        quota.read_text()
        throttled.read_text()

    took: dict[Callable[[int], None], list[float]] = {ours: [], bare: []}
    for step in range(300):  # in turn, so that what slows one down slows the other down, too
        for work, times in took.items():
            times.append(seconds(work, step))
    assert median(took[ours]) < 5 * median(took[bare])


def seconds(work: Callable[[int], None], step: int) -> float:
    start = time.perf_counter()
    work(step)
    return time.perf_counter() - start
