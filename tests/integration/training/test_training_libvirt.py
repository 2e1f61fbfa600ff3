"""A sweep of a real container through a real libvirtd, as an operator's configuration names it."""

import json
import math
import os
import subprocess
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from statistics import fmean, median

import pytest
from conftest import Host, quota_of
from libvirt_host import FLOODS, LibvirtHost, group, libvirt_on, table
from support.inconclusive import inconclusive
from support.waiting import eventually
from support.weights import make_punctual

from lab.libvirt.routers import GuestRouter
from training.fit.fit import SURE
from training.fit.points import points_of
from training.recording.recording import Recording, read_csv
from xtc.state.journal import Journal

pytestmark = [pytest.mark.root, pytest.mark.timeout(600)]

PERIOD_S = 0.25
BUDGET_S = 20
PATIENCE_S = 180.0
FLOOR = 0.02
"""Smaller quotas are coarse within a period this short."""
FLOOD = 100e3
"""Packets/s; a third of a CPU forwards them."""
ORIGINAL = (90_000, 100_000)
"""Quota and period, in us, that the operator had given the router."""


@pytest.fixture
def libvirt(host: Host, tmp_path: Path) -> Iterator[LibvirtHost]:
    with libvirt_on(host, tmp_path) as libvirt_host:
        yield libvirt_host


def started(libvirt: LibvirtHost, router: GuestRouter, file: Path) -> "subprocess.Popen[str]":
    """Start a sweep of the traffic that comes anyway."""
    host = libvirt.host
    host.configure(PERIOD_S, **{router.name: f"{table(router)}\nfloor = {FLOOR}"})
    place = ["--config", str(host.folder / "xtc.toml"), "--router", router.name]
    options = ["--output", str(file), "--budget", f"{BUDGET_S}s", "--json"]
    return host.lab.run_in_dom0(
        [sys.executable, "-m", "training.cli.main", "sweep", *place, *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=dict(os.environ),
    )


def left_in(state: Path) -> list[str]:
    with Journal(state) as journal:
        return list(journal.ledger.entries)


def check_curve(recording: Recording) -> None:
    """Throughput rises with the cap, by and large as the cap does where it is held back."""
    points = points_of([s for s in recording.samples if s.phase == "steady"])
    rates = [point.throughput_pps.value for point in points]
    assert len(points) >= 6
    for before, after in pairwise(points):
        fall = before.throughput_pps.value - after.throughput_pps.value
        doubt = math.hypot(before.error_pps, after.error_pps)
        assert fall <= max(0.05 * max(rates), SURE * doubt)
    assert rates[0] < 0.25 * rates[-1]
    assert points[0].binding
    free = [s for s in recording.samples if s.phase == "uncapped"]
    needed = fmean(s.used or 0.0 for s in free)
    wanted = 0.85 * fmean(s.throughput_pps for s in free)
    got = fmean(s.used or 0.0 for s in recording.samples if s.cap == points[-1].cap) / needed
    if wanted * min(1.0, got) < rates[-1] <= wanted:
        inconclusive(f"at the largest cap it got {got:.0%} of the CPU that it used uncapped")
    assert wanted < rates[-1] < 1.1 * FLOOD
    held = [s.used / s.cap for s in recording.samples if s.binding and s.used and s.cap]
    assert len(held) > 20
    assert median(abs(share - 1) for share in held) < 0.15


def test_a_container_is_swept_through_libvirt_and_gets_its_quota_back(
    libvirt: LibvirtHost, tmp_path: Path
) -> None:
    silver, file = libvirt.guests.add_router("silver", "lxc"), tmp_path / "sweep.csv"
    silver.wait_until_forwarding()
    make_punctual(silver.flood(FLOOD).pid)
    silver.set_quota(ORIGINAL[0] / ORIGINAL[1], ORIGINAL[1])
    sweep = started(libvirt, silver, file)
    out, error = sweep.communicate(timeout=BUDGET_S + PATIENCE_S)
    assert sweep.returncode == 0, error
    recording = read_csv(file)
    assert json.loads(out)["samples"] == len(recording.samples) > 30
    assert recording.metadata.actuator == "libvirt (vcpu)"
    assert recording.metadata.hypervisor == silver.uri
    check_curve(recording)
    assert max(s.cap for s in recording.samples if s.cap is not None) <= 0.9
    assert {s.phase for s in recording.samples} >= {"uncapped", "steady", "step"}
    assert quota_of(group(silver)) == ORIGINAL
    assert left_in(libvirt.host.state) == []


def test_a_container_that_is_destroyed_ends_its_sweep(libvirt: LibvirtHost, tmp_path: Path) -> None:
    silver, file = libvirt.router("silver", "lxc"), tmp_path / "sweep.csv"
    sweep = started(libvirt, silver, file)
    eventually(
        lambda: file.exists() and any(s.cap is not None for s in read_csv(file).samples), PATIENCE_S
    )
    silver.destroy()
    _, error = sweep.communicate(timeout=PATIENCE_S)
    assert sweep.returncode == 1
    (line,) = [line for line in error.splitlines() if line.startswith("xtc-train: ")]
    said = ("the domain does not run", "libvirt does not answer", "the cap is still under way")
    assert line.startswith(tuple(f"xtc-train: silver: {words}" for words in said))
    assert "Traceback" not in error
    samples = read_csv(file).samples
    needed = max(s.used or 0.0 for s in samples)  # for the flood, on a machine of any speed
    small = [s for s in samples if s.cap is not None and s.cap < min(0.05, needed / 2)]
    assert [s for s in small if s.throughput_pps > 0.9 * FLOODS["lxc"]] == []
    assert left_in(libvirt.host.state) == []
    libvirt.libvirtd.revive()
    silver.start()
    assert quota_of(group(silver))[0] is None
