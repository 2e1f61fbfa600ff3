"""zovn check says whether this kernel carries ports to containers without loss."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from rigs.zovn_rig import CORE, build

from zovn.check.veths import Veths

pytestmark = [pytest.mark.root]


@pytest.fixture(scope="module", autouse=True)
def _built() -> None:
    build("all")
    build("veth")


def zovn_check(*options: str, core: Path | None = None) -> str:
    """Run it, and return what it prints; the exit code is that of its findings."""
    env = os.environ | ({"ZOVN_CORE": str(core)} if core else {})
    command = [sys.executable, "-m", "zovn", "check", *options]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=60, env=env
    ).stdout


def test_it_says_what_the_probe_says() -> None:
    probe = subprocess.run(
        [CORE / "build" / "zovn-veth-probe"], capture_output=True, text=True, check=False
    )
    last = zovn_check().splitlines()[-1]
    found = json.loads(zovn_check("--json"))["veth"]
    assert last == f"ports to containers (veth): {probe.stdout.strip()}"
    assert Veths(**found).said == probe.stdout.strip()


def test_without_the_compiled_core_it_is_not_tried(tmp_path: Path) -> None:
    found = json.loads(zovn_check("--json", core=tmp_path))["veth"]
    assert found["result"] == "unknown"
    assert "there is no libzovn.so" in found["reason"]
    said = zovn_check(core=tmp_path).splitlines()[-1]
    assert said.startswith("ports to containers (veth): not tried: ZOVN_CORE=")
