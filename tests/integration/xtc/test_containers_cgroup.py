"""A container found by its name, and capped: control groups as an engine makes them."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from common.units import CapFraction, Seconds
from xtc.actuator.containers import Finder, finder
from xtc.actuator.factory import open_actuator
from xtc.config.discover import look_around
from xtc.errors import Gone
from xtc.spec import CgroupSpec

pytestmark = pytest.mark.root

CPU = Path("/sys/fs/cgroup/cpu")
NAME = f"xtc-test-{os.getpid()}"


@contextmanager
def container() -> Iterator[Path]:
    """A process in a control group where LXC would put it."""
    if not (CPU / "cpu.cfs_quota_us").exists():
        pytest.skip("needs cgroup v1")
    group = CPU / f"lxc.payload.{NAME}"
    group.mkdir()
    with subprocess.Popen(["sleep", "600"]) as process:
        try:
            (group / "cgroup.procs").write_text(str(process.pid))
            yield group
        finally:
            (CPU / "cgroup.procs").write_text(str(process.pid))
            process.kill()
            process.wait()
            group.rmdir()


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look at the processes each time: the tests do not wait until a look is old.

    One of a test before may not be old yet.
    """
    monkeypatch.setattr("xtc.actuator.containers.LONGEST_S", Seconds(0.0))
    monkeypatch.setattr(finder, "_next", Seconds(float("-inf")))


def test_a_container_is_capped_by_its_name() -> None:
    spec = CgroupSpec(f"container:{NAME}")
    with container() as group:
        actuator = open_actuator(spec)
        original = actuator.capture()
        actuator.apply(CapFraction(0.2))
        quota, period = ((group / f"cpu.cfs_{one}_us").read_text() for one in ("quota", "period"))
        assert int(quota) / int(period) == pytest.approx(0.2)
        actuator.restore(original)
        assert (group / "cpu.cfs_quota_us").read_text() == "-1\n"


def test_a_container_that_is_made_again_is_opened_again() -> None:
    spec = CgroupSpec(f"container:{NAME}")
    with container():
        first = open_actuator(spec)
    with pytest.raises(Gone):
        first.applied()
    with pytest.raises(Gone, match="no container of this name runs"):
        open_actuator(spec)
    with container():
        assert open_actuator(spec).applied() is None


def test_a_container_without_a_namespace_of_its_own_is_discovered_as_such() -> None:
    with container():
        (found,) = (router for router in look_around().routers if router.name == NAME)
    assert (found.kind, found.actuator, found.configuration) == ("lxc", "", "")
    assert "shares the host's network namespace" in found.reasons[0]


def test_every_process_of_this_host_can_be_looked_at() -> None:
    assert finder.resolve(CgroupSpec("/a")) == CgroupSpec("/a")
    with pytest.raises(Gone):
        Finder().resolve(CgroupSpec("container:no-such-container"))
