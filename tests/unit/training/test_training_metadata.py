"""What a recording says of its host, and when two runs are one sweep."""

import os
import platform
from pathlib import Path

import msgspec
import pytest

from training.errors import RecordingError
from training.recording.metadata import (
    HOSTS_OWN,
    actuator,
    check_same,
    cpu_model,
    hypervisor,
    metadata_of,
)
from training.recording.recording import Metadata, csv_head, parse_csv
from xtc.spec import ActuatorSpec, CgroupSpec, DeadlineSpec, LibvirtSpec, SimulatedSpec

X86 = "processor\t: 0\nvendor_id\t: GenuineIntel\nmodel\t\t: 23\nmodel name\t: Xeon  E5440\n"
ARM_BOARD = "processor\t: 0\nBogoMIPS\t: 108.00\nModel\t\t: Raspberry Pi 4\n"
ARM_SERVER = "processor\t: 0\nBogoMIPS\t: 50.00\nCPU implementer\t: 0x41\n"


def test_the_cpus_model_is_found_where_it_is_told() -> None:
    assert cpu_model(X86) == "Xeon  E5440"
    assert cpu_model(ARM_BOARD) == "Raspberry Pi 4"
    assert cpu_model(ARM_SERVER) == platform.machine()


@pytest.mark.parametrize(
    ("spec", "kind", "host"),
    [
        (CgroupSpec("/sys/fs/cgroup/a"), "cgroup (CFS quota)", "none"),
        (DeadlineSpec("/run/netns/a", ("r0",), 2000), "deadline (period 2000 us)", "none"),
        (LibvirtSpec("a", "xen:///system"), "libvirt (vcpu)", "xen:///system"),
        (LibvirtSpec("a", scope="machine"), "libvirt (machine)", "libvirt's default"),
        (SimulatedSpec("a"), "simulated", "simulated"),
    ],
)
def test_every_platform_is_named(spec: ActuatorSpec, kind: str, host: str) -> None:
    assert actuator(spec) == kind
    assert hypervisor(spec) == host


def test_this_hosts_metadata_survive_a_file() -> None:
    found = metadata_of("gold", SimulatedSpec("gold"), 0.5, 60e3)
    assert found.cpu.startswith(f"{os.cpu_count()}x ")
    assert found.kernel == f"Linux {platform.release()}"
    assert (found.router, found.period_s, found.offered_pps) == ("gold", 0.5, 60e3)
    assert parse_csv(csv_head(found), "file").metadata == found


@pytest.mark.parametrize("key", HOSTS_OWN)
def test_a_file_of_another_sweep_is_refused_by_the_key_that_differs(key: str) -> None:
    before = Metadata(host="a", offered_pps=1.0)
    other = 2.0 if key in {"period_s", "offered_pps"} else "other"
    now = msgspec.structs.replace(before, **{key: other})
    with pytest.raises(RecordingError, match="give another --output") as caught:
        check_same(before, now, Path("sweep.csv"))
    assert caught.value.column == key
