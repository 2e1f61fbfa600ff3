"""Identity of this host, for the head of a recording."""

import datetime as dt
import os
import platform
import re
from pathlib import Path

from common import __version__
from training.errors import RecordingError
from training.recording.recording import Metadata
from xtc.spec import ActuatorSpec, CgroupSpec, DeadlineSpec, LibvirtSpec, SimulatedSpec

_MODEL = re.compile(r"^(?:model name|Model|cpu model|Processor)\s*:\s*(.+)$", re.MULTILINE)
HOSTS_OWN = (
    *("host", "cpu", "kernel", "hypervisor", "actuator", "router"),
    *("period_s", "offered_pps", "packet_bytes"),
)
"""Keys that must be equal for two runs to be one sweep."""


def metadata_of(
    router: str,
    spec: ActuatorSpec,
    period_s: float,
    offered_pps: float | None,
    packet_bytes: int | None = None,
) -> Metadata:
    """Return the metadata of this host and of one sweep on it."""
    return Metadata(
        host=platform.node() or "unknown",
        cpu=f"{os.cpu_count() or 1}x {cpu_model(Path('/proc/cpuinfo').read_text())}",
        kernel=f"{platform.system()} {platform.release()}",
        hypervisor=hypervisor(spec),
        actuator=actuator(spec),
        router=router,
        period_s=period_s,
        started=dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
        xtc_version=__version__,
        offered_pps=offered_pps,
        packet_bytes=packet_bytes,
    )


def cpu_model(cpuinfo: str) -> str:
    """Return the CPU model of /proc/cpuinfo, or the machine's type if it has none."""
    found = _MODEL.search(cpuinfo)
    return found[1].strip() if found else platform.machine()


def hypervisor(spec: ActuatorSpec) -> str:
    """Return the platform of the router."""
    match spec:
        case CgroupSpec() | DeadlineSpec():
            return "none"
        case SimulatedSpec():
            return "simulated"
        case LibvirtSpec(uri=None):
            return "libvirt's default"
        case LibvirtSpec(uri=uri):
            return str(uri)


def actuator(spec: ActuatorSpec) -> str:
    """Return the kind of its cap."""
    match spec:
        case CgroupSpec():
            return "cgroup (CFS quota)"
        case DeadlineSpec():
            return f"deadline (period {spec.period_us} us)"
        case LibvirtSpec():
            return f"libvirt ({spec.scope})"
        case SimulatedSpec():
            return "simulated"


def check_same(before: Metadata, now: Metadata, path: Path) -> None:
    """Refuse to resume a recording of another host, router or load.

    Raises:
        RecordingError: the recordings differ; it names the first key that does.
    """
    for key in HOSTS_OWN:
        old, new = getattr(before, key), getattr(now, key)
        if old != new:
            raise RecordingError(
                str(path),
                0,
                key,
                f"the file is of {old}, this sweep is of {new}",
                "give another --output, or remove the file",
            )
