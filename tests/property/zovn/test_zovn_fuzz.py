"""Hostile guests on a sanitized build of the switch; `zovn-fuzz-rings SECONDS` runs longer."""

import subprocess

import pytest
from zovn_rig import BUILD_S, CORE, build

pytestmark = pytest.mark.timeout(2 * BUILD_S)


def test_a_sanitized_build_survives_hostile_guests() -> None:
    build("sanitize")
    fuzz = CORE / "build" / "zovn-fuzz-rings"
    done = subprocess.run([fuzz, "4", "7"], check=False, capture_output=True, text=True, timeout=50)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    words = done.stdout.replace(",", "").split()
    counts = [int(word) for word in words if word.isdigit()]
    assert len(counts) == 6
    assert min(counts) > 10, done.stdout
