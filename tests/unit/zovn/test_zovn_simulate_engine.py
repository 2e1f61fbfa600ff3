"""The compiled engine by itself: it refuses what its front end would not send, and has no leaks."""

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from zovn.simulate.engine import _lines
from zovn.simulate.scenario import Background, Fabric, Flow, Queries, Scenario

FOLDER = Path(__file__).parents[3] / "zovn" / "core" / "simulate"
SCENARIO = Scenario(
    mode="LL",
    fabric=Fabric(pods=1, chassis=2, servers=2, aggregations=1, cores=1),
    queries=Queries(count=3, interval_s=1e-5),
    background=Background(load=0.5),
    flows=(Flow(source=(0, 0), destination=(3, 0), size=50_000),),
)
LINES = list(_lines(SCENARIO))


@pytest.fixture(autouse=True, scope="module")
def _built() -> None:
    subprocess.run(["make", "-s", "-C", FOLDER], check=True, timeout=60)


def outcome(lines: list[str], program: str = "zovn-simulate") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [FOLDER / "build" / program],
        input="".join(lines),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        (["speed 3\n"], "unknown key: speed 3"),
        (["chassis\n"], "not a key and a value"),
        (["chassis 0\n"], "out of range: chassis 0"),
        (["chassis 3\n", "pods 2\n"], "the chassis do not fill the pods"),
        (["vms 2\n"], "queries need three VMs"),
        (["background_class 1\n"], "no such class"),
        (["flow 0 0 1\n"], "not a flow"),
        (["flow 0 0 0 0 1 0 0 0\n"], "VMs or of a class that do not exist"),
        (["flow 0 0 9 0 1 0 0 0\n"], "VMs or of a class that do not exist"),
        (["physical_lossless 1\n", "buffer 5000\n"], "too small to be lossless"),
    ],
)
def test_the_engine_refuses(changed: list[str], said: str) -> None:
    found = outcome(LINES + changed)
    assert found.returncode == 2
    assert said in found.stderr


@pytest.mark.parametrize("at", range(0, len(LINES) - 1, 5))
def test_the_engine_needs_every_key(at: int) -> None:
    found = outcome(LINES[:at] + LINES[at + 1 :])
    assert found.returncode == 2
    assert "missing key" in found.stderr


@pytest.mark.parametrize("mode", ["LL", "ZL", "ZZ"])
def test_sanitizers_find_nothing(mode: str) -> None:
    subprocess.run(["make", "-s", "-C", FOLDER, "sanitize"], check=True, timeout=120)
    lines = list(_lines(replace(SCENARIO, mode=mode)))  # type: ignore[arg-type]
    checked = outcome(lines, "zovn-simulate-sanitized")
    assert checked.stderr.replace("progress", "").split() == ["33", "66", "100"]
    assert checked.stdout == outcome(lines).stdout
