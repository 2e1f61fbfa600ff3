"""The compiled loop on loopback, for tests that say `pytest_plugins = ["xco_loop_rig"]`."""

import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from xco_controller_rig import CORE
from xco_loop_hosts import PATIENT, RunningLoop

from xco.topology.graph import Topology


@pytest.fixture(scope="session")
def built_controller() -> Iterator[Path]:
    """Build the program apart from what others build, once for all tests."""
    with tempfile.TemporaryDirectory(prefix="xco-core-") as folder:
        target = Path(folder, "xco-controller")
        options = [f"BUILD={folder}", "CFLAGS=-O0"]  # to compile takes longer than to run
        command = ["make", "-s", "-j2", "-C", str(CORE), *options, str(target)]
        subprocess.run(command, check=True, capture_output=True, timeout=150)
        yield target


@pytest.fixture
def controller_program(built_controller: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the program, and let the shell find it; other tests find what they build."""
    monkeypatch.setenv("XCO_CORE", str(built_controller.parent))
    return built_controller


@pytest.fixture
def start_loop(controller_program: Path, tmp_path: Path) -> Iterator[Callable[..., RunningLoop]]:
    """Start loops that end with the test."""
    loops: list[RunningLoop] = []

    def start(topology: Topology, *, patient: bool = True, **settings: object) -> RunningLoop:
        whole = {**PATIENT, **settings} if patient else settings
        loops.append(RunningLoop(controller_program, tmp_path, topology, **whole))
        return loops[-1]

    yield start
    for loop in loops:
        loop.close()
