"""A machine that boots Xen: qemu in pure emulation, so that it runs where there is no KVM."""

import subprocess
import tarfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from xen.image import Image
from xen.share import Share

CPU: Final = "kvm64,+lahf_lm,+ssse3,+sse4.1,+sse4.2,+popcnt"
XEN: Final = (
    "dom0_mem=1024M,max:1024M dom0_max_vcpus=1 dom0_vcpus_pin spec-ctrl=no xpti=no "
    "console=com1 com1=115200,8n1"
)
LINUX: Final = "console=hvc0 mitigations=off nokaslr quiet panic=5"
RESULT_BYTES: Final = 64 << 20
SILENCE_S: Final = 600
"""A dom0 that hangs is not waited for longer."""
MARK: Final = "[xtc] "
"""Lines of dom0's console that begin so are progress, for whoever waits."""


@dataclass
class Machine:
    """One boot: a job in, its results and the console out."""

    image: Image
    folder: Path
    say: Callable[[str], None]
    _seen: int = field(default=0, init=False)

    @property
    def console(self) -> str:
        """All that Xen, dom0 and the job have printed."""
        path = self.folder / "console.log"
        return path.read_text(errors="replace") if path.exists() else ""

    def run(self, job: Path, scheduler: str) -> None:
        """Boot, wait until dom0 has powered off or fallen silent, and unpack what it found."""
        results = self.folder / "results.tar"
        with results.open("wb") as disk:
            disk.truncate(RESULT_BYTES)
        with subprocess.Popen(self._command(job, results, scheduler)) as qemu:
            try:
                self._listen(qemu)
            finally:
                qemu.kill()  # it may have ended by itself
        with tarfile.open(results) as archive:
            archive.extractall(self.folder, filter="data")

    def _listen(self, qemu: "subprocess.Popen[bytes]") -> None:
        heard = time.monotonic()
        share = Share(qemu.pid, self.folder / "host.jsonl")
        while qemu.poll() is None:
            share.note()
            if self._tell():
                heard = time.monotonic()
            if time.monotonic() - heard > SILENCE_S:
                self.say(f"giving up: dom0 has said nothing for {SILENCE_S} s")
                return
            time.sleep(0.5)
        self._tell()

    def _command(self, job: Path, results: Path, scheduler: str) -> list[str]:
        image = self.image
        command = ["setpriv", "--pdeathsig", "KILL", "qemu-system-x86_64", "-M", "q35"]
        command += ["-name", "xen,debug-threads=on", "-cpu", CPU, "-smp", "2", "-m", "2500M"]
        command += ["-accel", "tcg,thread=multi", "-display", "none", "-nodefaults", "-no-reboot"]
        command += ["-serial", f"file:{self.folder / 'console.log'}"]
        for path, options in (
            (image.disk, "snapshot=on"),
            (job, "readonly=on"),
            (results, "cache=unsafe"),
        ):
            command += ["-drive", f"file={path},if=virtio,format=raw,{options}"]
        command += ["-kernel", str(image.xen), "-append", f"sched={scheduler} {XEN}"]
        return [*command, "-initrd", f"{image.kernel} {LINUX},{image.initramfs}"]

    def _tell(self) -> int:
        """Pass on what is new and return how many lines that is."""
        lines = [line for line in self.console.split("\n")[:-1] if MARK in line]
        new = lines[self._seen :]
        for line in new:
            self.say(line[line.index(MARK) + len(MARK) :].strip())
        self._seen = len(lines)
        return len(new)
