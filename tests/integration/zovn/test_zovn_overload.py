"""Four guests overload a fifth: the lossless switch loses nothing where the lossy one does."""

import json
import subprocess
import sys
from typing import Any

import pytest
from zovn_rig import build
from zovn_switch_rig import build_guest

pytestmark = pytest.mark.timeout(180)


@pytest.fixture(scope="module", autouse=True)
def _built() -> None:
    build_guest()
    build("bench")


def figures(benchmark: str, *words: str) -> dict[str, Any]:
    """Return what a benchmark says of each way in its quick mode."""
    command = [sys.executable, "-m", f"benchmarks.zovn.{benchmark}", "--quick", "--json", *words]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, timeout=170)
    return {row["way"]: row for row in json.loads(done.stdout)["rows"]}


def test_four_senders_to_one_lose_nothing_unless_the_class_is_lossy() -> None:
    found = figures("overload", "--ways", "zovn", "lossy")
    ours, lossy = found["zovn"], found["lossy"]
    assert ours["senders"] == lossy["senders"] == 4
    assert ours["sent"] > 1000
    assert (ours["lost"], ours["repeated"], ours["overtaken"]) == (0, 0, 0)
    assert lossy["lost"] > 0
    assert (lossy["repeated"], lossy["overtaken"]) == (0, 0)


def test_more_stations_than_a_process_of_dpdk_has_devices() -> None:
    found = figures("ports", "--ports", "34", "--loads", "all", "--ways", "zovn")
    assert found["zovn"]["ports"] == 34
    assert found["zovn"]["frames_per_s"]["median"] > 0
    assert found["zovn"]["lost"] == 0


def test_a_slow_receiver_stops_others_in_one_queue_for_each_source() -> None:
    found = figures("receivers", "--rate", "500", "--seconds", "1")
    assert all(row["lost"] == 0 for row in found.values())
    fast = {way: row["fast_frames_per_s"]["median"] for way, row in found.items()}
    assert fast["a queue for each destination"] > fast["one queue for each source"]
