"""Unpacking a kernel image, and a cache that is never half built."""

import shutil
import struct
import subprocess
from pathlib import Path

import pytest

from lab.libvirt import build, cache, requirements
from lab.libvirt.build import build_kernel, payload, vmlinux
from lab.libvirt.cache import GuestCache
from lab.libvirt.errors import LibvirtError

KERNEL = b"\x7fELF" + bytes(range(256)) * 64
SETUP_SECTORS = 3
OFFSET = 40


def bzimage(packed: bytes) -> bytes:
    """Return an image with the header that the kernel's boot protocol prescribes."""
    header = bytearray((SETUP_SECTORS + 1) * 512 + OFFSET)
    header[0x1F1] = SETUP_SECTORS
    header[0x202:0x206] = b"HdrS"
    struct.pack_into("<II", header, 0x248, OFFSET, len(packed) + 4)
    return bytes(header) + packed + struct.pack("<I", len(KERNEL)) + b"signature"


def packed_with(*command: str) -> bytes:
    if shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]} is not installed")
    return subprocess.run(command, input=KERNEL, capture_output=True, check=True).stdout


def test_the_payload_is_found_by_the_header() -> None:
    assert payload(bzimage(b"packed kernel")) == b"packed kernel"


@pytest.mark.parametrize("command", [("lz4", "-lc"), ("zstd", "-c")])
def test_a_kernel_is_unpacked(command: tuple[str, ...]) -> None:
    assert vmlinux(bzimage(packed_with(*command))) == KERNEL


def test_what_is_no_image_or_packed_in_an_unknown_way_is_refused() -> None:
    with pytest.raises(LibvirtError, match="not an x86 bzImage"):
        payload(bytes(4096))
    with pytest.raises(LibvirtError, match="unknown compression 42"):
        vmlinux(bzimage(b"\x42" * 64))


def test_a_missing_tool_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(LibvirtError, match="lz4: it is not installed"):
        vmlinux(bzimage(b"\x02\x21\x4c\x18 and more"))


def package(folder: Path, packed: bytes) -> Path:
    modules = folder / "lib" / "modules" / "6.1" / "kernel" / "drivers"
    modules.mkdir(parents=True)
    (folder / "boot").mkdir()
    (folder / "boot" / "vmlinuz-6.1").write_bytes(bzimage(packed))
    for name in ("virtio.ko", "virtio_gpu.ko"):
        (modules / name).write_bytes(b"module")
    return folder


def test_the_kernel_and_only_the_modules_a_router_needs_are_kept(tmp_path: Path) -> None:
    guests = GuestCache(tmp_path / "guest")
    build_kernel(guests, package(tmp_path / "package", packed_with("lz4", "-lc")))
    assert guests.has_kernel()
    assert guests.vmlinux.read_bytes() == KERNEL
    assert [path.name for path in guests.modules.iterdir()] == ["virtio.ko"]


def test_a_build_that_fails_leaves_the_old_parts_and_nothing_else(tmp_path: Path) -> None:
    guests = GuestCache(tmp_path / "guest")
    guests.kernel.mkdir(parents=True)
    guests.vmlinux.write_bytes(b"old")
    with pytest.raises(LibvirtError, match="unknown compression"):
        build_kernel(guests, package(tmp_path / "package", b"\x42" * 64))
    assert guests.vmlinux.read_bytes() == b"old"
    assert [path.name for path in guests.folder.iterdir()] == ["kernel"]


def test_parts_are_stale_when_a_source_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    guests = GuestCache(tmp_path / "guest")
    guests.parts.mkdir(parents=True)
    guests.vmlinux.parent.mkdir()
    guests.vmlinux.touch()
    guests.stamp.write_text(cache.fingerprint())
    assert guests.missing() == []
    sources = tmp_path / "sources"
    sources.mkdir()
    for name in cache.SOURCES:
        (sources / name).write_bytes((cache.HERE / name).read_bytes() + b"\n")
    monkeypatch.setattr(cache, "HERE", sources)
    assert "setup-libvirt.sh" in guests.missing()[0]


def test_every_source_of_the_parts_is_watched() -> None:
    used = {path.name for path in build.HERE.glob("*.sh")} | {"forward.c", "build.py"}
    assert used == set(cache.SOURCES)


def test_a_missing_program_is_named_with_its_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(requirements, "DRIVERS", tmp_path)
    lacking = requirements.missing(GuestCache(tmp_path))
    assert "virsh is missing: install libvirt-clients." in lacking
    assert any("install libvirt-daemon-driver-qemu" in sentence for sentence in lacking)
    assert "scripts/setup-libvirt.sh" in lacking[-1]
