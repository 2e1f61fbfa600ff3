"""A lab leaves nothing behind: not after SIGKILL, not when another takes over."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Thread

import pytest
from support.waiting import PATIENCE_S, eventually

from lab.fabric.fabric import Fabric
from lab.fabric.plan import CONTROLLER
from lab.plan import DOM0, namespace
from lab.routers.topology import Lab
from lab.system import namespaces
from lab.system.teardown import alone, find, tear_down

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root"),
    pytest.mark.timeout(600),
]

ROOT = Path(__file__).resolve().parents[3]
UP = ["up", "--router", "vr1=user-space", "--router", "vr2=kernel", "--offered", "1kpps", "--json"]


@pytest.fixture
def prefix() -> Iterator[str]:
    name = f"t{os.getpid()}"
    yield name
    tear_down(name)


def command(prefix: str, *arguments: str) -> list[str]:
    return [sys.executable, "-m", "lab.cli", *arguments, "--prefix", prefix]


@pytest.fixture
def owner(prefix: str) -> Iterator["subprocess.Popen[str]"]:
    """A process that holds a lab with traffic."""
    process = subprocess.Popen(
        command(prefix, *UP), cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline(), process.communicate()[1]
    yield process
    process.kill()
    process.communicate()


def run(prefix: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        command(prefix, *arguments), cwd=ROOT, capture_output=True, text=True, check=False
    )


def test_leaving_a_lab_removes_all_of_it(prefix: str) -> None:
    with Lab(prefix) as lab:
        router = lab.add_router("vr1", "user-space")
        router.flood(1_000)
        stray = lab.run_in_dom0(["sleep", "60"])
        eventually(lambda: stray.pid in find(prefix).processes)
        found = find(prefix)
        assert len(found.namespaces) == 2
        assert str(router.cgroup) in found.cgroups
        assert len(found.processes) == 3
    assert not find(prefix)
    assert stray.wait() == -signal.SIGKILL


def test_after_sigkill_the_programs_die_and_down_removes_the_rest(
    prefix: str, owner: "subprocess.Popen[str]"
) -> None:
    assert len(find(prefix).processes) == 3
    owner.kill()
    eventually(lambda: find(prefix).processes == [])
    assert find(prefix).namespaces
    removed = json.loads(run(prefix, "down", "--json").stdout)
    assert len(removed["namespaces"]) == 3
    assert not find(prefix)


def test_sigterm_ends_a_lab_cleanly(prefix: str, owner: "subprocess.Popen[str]") -> None:
    owner.terminate()
    assert owner.wait(PATIENCE_S) == 0
    assert not find(prefix)


def test_a_new_lab_replaces_the_old_and_outlives_its_owner(
    prefix: str, owner: "subprocess.Popen[str]"
) -> None:
    with Lab(prefix) as lab:
        lab.add_router("vr9", "kernel")
        assert owner.wait(PATIENCE_S) == 1
        assert [Path(name).name for name in find(prefix).namespaces] == [
            f"{prefix}-dom0",
            f"{prefix}-vr9",
        ]


@pytest.mark.parametrize(("begin", "first"), [(Lab, DOM0), (Fabric, CONTROLLER)])
def test_one_that_ends_while_another_begins_leaves_it_alone(
    prefix: str, begin: Callable[[str], Lab | Fabric], first: str
) -> None:
    names = [namespace(prefix, first)]
    ending = Thread(target=begin(prefix).close)
    with alone(prefix):
        ending.start()
        ending.join(0.5)
        assert namespaces.named(prefix) == names, "it did not wait for the one that begins"
        tear_down(prefix)
        namespaces.create(*names)
    ending.join()
    assert namespaces.named(prefix) == names


def test_down_under_a_running_lab_ends_its_owner_with_a_reason(
    prefix: str, owner: "subprocess.Popen[str]"
) -> None:
    assert run(prefix, "down").returncode == 0
    assert owner.wait(PATIENCE_S) == 1
    assert "ended while the lab was up" in owner.communicate()[1]


def test_status_tells_a_running_lab_from_none(prefix: str, owner: "subprocess.Popen[str]") -> None:
    running = run(prefix, "status", "--json")
    assert running.returncode == 0
    assert len(json.loads(running.stdout)["namespaces"]) == 3
    owner.terminate()
    owner.wait(PATIENCE_S)
    assert run(prefix, "status").returncode == 1
