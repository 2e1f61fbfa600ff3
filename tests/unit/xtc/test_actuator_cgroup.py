"""The cgroup actuator on a v2 tree of plain files, and its refusals.

The development host has the CPU controller on v1 only (see the integration test), so v2 is
tested on files with the kernel's names and formats; a plain file does not vanish under an open
descriptor as the kernel's does.
"""

import errno
from pathlib import Path

import pytest

from common.units import CapFraction, Seconds
from xtc.actuator import cgroup
from xtc.actuator.cgroup import CgroupActuator
from xtc.actuator.explain import explain_cgroup
from xtc.errors import Denied, Gone, Permanent, Transient, Unsupported
from xtc.kernel.quota import Quota, controller_mount, parse_cpu_max, parse_cpu_stat, parse_v1
from xtc.spec import CgroupOriginal, CgroupSpec, SimulatedOriginal

STAT = "usage_usec 2500000\nuser_usec 2000000\nsystem_usec 500000\nnr_periods 9\nnr_throttled 4\n"


@pytest.fixture
def v2(tmp_path: Path) -> Path:
    (tmp_path / "cpu.max").write_text("max 100000\n")
    (tmp_path / "cpu.stat").write_text(STAT)
    return tmp_path


def opened(path: Path, original: CgroupOriginal | None = None) -> CgroupActuator:
    return CgroupActuator(CgroupSpec(path=str(path)), original)


def test_on_plain_v2_files_a_cap_is_written_read_back_and_restored(v2: Path) -> None:
    actuator = opened(v2)
    original = actuator.capture()
    assert original == CgroupOriginal(None, 100_000, str(v2), v2.stat().st_ino)
    assert actuator.applied() is None

    assert actuator.apply(CapFraction(0.2)) == 0.2
    assert (v2 / "cpu.max").read_text().splitlines()[0] == "2000 10000"
    assert actuator.applied() == 0.2

    for _ in range(2):
        actuator.restore(original)
        assert actuator.applied() is None


def test_on_plain_v2_files_usage_is_read_in_seconds(v2: Path) -> None:
    usage = opened(v2).usage()
    assert usage.used == 2.5
    assert (usage.throttled, usage.periods) == (4, 9)


def test_without_throttle_counters_throttling_is_unknown(v2: Path) -> None:
    (v2 / "cpu.stat").write_text("usage_usec 7\n")
    assert opened(v2).usage().throttled is None


def test_caps_are_held_within_floor_and_ceiling(v2: Path) -> None:
    actuator = opened(v2)
    assert actuator.apply(CapFraction(1e-9)) == actuator.limits.floor
    assert actuator.apply(CapFraction(1e9)) == actuator.limits.ceiling


@pytest.mark.parametrize("cap", [float("nan"), float("inf"), 0.0, -0.1])
def test_what_is_no_cap_is_never_written(v2: Path, cap: float) -> None:
    with pytest.raises(Permanent, match="is not a cap"):
        opened(v2).apply(CapFraction(cap))
    assert (v2 / "cpu.max").read_text() == "max 100000\n"


def test_the_journal_knows_better_than_what_stands_there(v2: Path) -> None:
    ours = CgroupOriginal(quota_us=None, period_us=50_000)
    (v2 / "cpu.max").write_text("2000 10000\n")
    assert opened(v2, ours).capture() == ours


def test_a_group_that_does_not_exist_is_gone_and_not_made(tmp_path: Path) -> None:
    with pytest.raises(Gone):
        opened(tmp_path / "vr1")
    assert not (tmp_path / "vr1").exists()


def test_a_group_without_cpu_controller_says_how_to_enable_it(tmp_path: Path) -> None:
    with pytest.raises(Unsupported, match=r"cgroup\.subtree_control"):
        opened(tmp_path)


def test_another_kind_of_original_is_refused(v2: Path) -> None:
    with pytest.raises(Permanent, match="SimulatedOriginal"):
        opened(v2).restore(SimulatedOriginal(cap=None))


def test_files_of_another_format_are_refused(v2: Path) -> None:
    (v2 / "cpu.max").write_text("a lot\nof it\n")
    with pytest.raises(Permanent, match="control group"):
        opened(v2).applied()


class StubbornGroup:
    """A kernel that takes a write and keeps what it had."""

    def read(self) -> Quota:
        return Quota(None, 100_000)

    def write(self, old: Quota, new: Quota) -> None:
        pass

    def throttled(self) -> int | None:
        return None

    def used(self) -> Seconds:
        return Seconds(0.0)


def test_a_write_that_does_not_show_is_transient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cgroup, "open_group", lambda _path: StubbornGroup())
    actuator = opened(Path("/sys/fs/cgroup/vr1"))
    with pytest.raises(Transient, match="read back"):
        actuator.apply(CapFraction(0.2))


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (errno.ENOENT, Gone),
        (errno.ENODEV, Gone),
        (errno.EACCES, Denied),
        (errno.EROFS, Denied),
        (errno.EINVAL, Permanent),
        (errno.EINTR, Transient),
    ],
)
def test_each_refusal_of_the_kernel_has_its_kind(code: int, kind: type[Exception]) -> None:
    assert type(explain_cgroup("/vr1", OSError(code, "no"))) is kind


def test_the_formats_of_both_versions() -> None:
    assert parse_v1("-1\n", "100000\n") == Quota(None, 100_000)
    assert parse_v1("2000\n", "10000\n") == Quota(2_000, 10_000)
    assert parse_cpu_max("2000 10000\nrest of a longer line\n") == Quota(2_000, 10_000)
    assert parse_cpu_stat("nr_periods 3\nnr_throttled 2\n")["nr_throttled"] == 2


def test_the_mount_of_a_controller_is_found_by_its_option() -> None:
    mounts = [
        "tmpfs /sys/fs/cgroup tmpfs rw 0 0",
        "cgroup /sys/fs/cgroup/cpuset cgroup rw,cpuset 0 0",
        "cgroup /sys/fs/cgroup/cpu,cpuacct cgroup rw,relatime,cpu,cpuacct 0 0",
    ]
    assert controller_mount(mounts, "cpu") == "/sys/fs/cgroup/cpu,cpuacct"
    assert controller_mount(mounts, "memory") is None
