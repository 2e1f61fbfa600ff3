"""One contract for a path: a policer that holds a router on each of several hosts to one class."""

import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from benchmarks.policer.rig import Policer, enter
from benchmarks.rig import Rig
from policer.contracts.contract import Contract
from policer.contracts.host import Host
from xtc.daemon.server import REQUESTS, TELEMETRY

CLASS: Final = "path"
PROMISED: Final = 0.9
"""The promised rate, relative to the capacity of a host: so much that the policer holds the router
on each host, also where no more than the promised rate arrives."""
HELD_WITHIN_S: Final = 30.0


@contextmanager
def contracted(folder: Path, rigs: Sequence[Rig], vr: str, pps: float) -> Iterator[None]:
    """Run a policer with contracts for a router on each host, and wait until it holds all of them.

    Args:
        folder: for the policer's own folder.
        rigs: the daemons of the hosts.
        vr: the router's name, on every host.
        pps: what the class promises, and its ceiling, in packets/s.

    Raises:
        RuntimeError: a router is not held within half a minute.
    """
    folder.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as own:
        url = f"sqlite:///{own}/policer.db"
        terms = {CLASS: Contract(guarantee_pps=pps, ceiling_pps=pps)}
        hosts = [host_of(f"host-{number}", rig, pps) for number, rig in enumerate(rigs, start=1)]
        contracts = {host.name: {vr: Contract(class_name=CLASS)} for host in hosts}
        with Policer(Path(own), url, enter(url, hosts, contracts, terms)) as policer:
            _wait_until_held(policer, rigs, vr)
            yield


def host_of(name: str, rig: Rig, pps: float) -> Host:
    """Return the policer's entry for the host of a daemon on this machine."""
    requests, telemetry = (f"ipc://{rig.folder / 'run' / one}" for one in (REQUESTS, TELEMETRY))
    return Host(name, requests, telemetry, pps / PROMISED)


def _wait_until_held(policer: Policer, rigs: Sequence[Rig], vr: str) -> None:
    deadline = time.monotonic() + HELD_WITHIN_S
    while not all(_is_held(rig, vr) for rig in rigs):
        if time.monotonic() > deadline:
            raise RuntimeError(f"the policer did not hold all hosts:\n{policer.log[-2000:]}")
        time.sleep(0.1)


def _is_held(rig: Rig, vr: str) -> bool:
    reports = rig.recording.of(vr)
    return bool(reports) and reports[-1][1].active
