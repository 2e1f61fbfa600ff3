"""Hostile frames and maps on a sanitized build; `zovn-fuzz-wire SECONDS` runs longer."""

import subprocess

import pytest
from zovn_rig import BUILD_S, CORE, build

pytestmark = pytest.mark.timeout(2 * BUILD_S)


def test_a_sanitized_build_survives_hostile_frames_and_maps() -> None:
    build("sanitize")
    fuzz = CORE / "build" / "zovn-fuzz-wire"
    done = subprocess.run([fuzz, "2", "7"], check=False, capture_output=True, text=True, timeout=50)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    words = done.stdout.replace(",", "").split()
    inputs, *found = (int(word) for word in words if word.isdigit())
    assert inputs > 100 * min(found) > 0, done.stdout
