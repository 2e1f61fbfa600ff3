"""OVS-DPDK of Debian's package: database and switch of our own, in a folder and a namespace."""

import os
import re
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from benchmarks.zovn.traffic import PATIENCE_S, Counted, Device, first_cpu, guest

OVS: Final = Path("/usr/lib/openvswitch-switch-dpdk/ovs-vswitchd-dpdk")
SCHEMA: Final = "/usr/share/openvswitch/vswitch.ovsschema"
EAL: Final = "--no-huge --legacy-mem -m 2048 --no-pci --no-telemetry --no-shconf"
_CYCLES: Final = re.compile(r"avg processing cycles per packet: ([0-9.]+)")


class Ovs:
    """Its bridge has one flow for each port, by the destination's address."""

    inside: Sequence[str] = ()

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._database = f"unix:{folder}/db.sock"
        names = ("OVS_RUNDIR", "OVS_LOGDIR", "OVS_DBDIR")
        path = f"{os.environ['PATH']}:/usr/sbin"
        self._environment = os.environ | dict.fromkeys(names, str(folder)) | {"PATH": path}
        self._processes: list[subprocess.Popen[bytes]] = []
        self.devices: list[Device] = []

    def start(self, ports: int) -> None:
        """Start both programs, and add the ports."""
        self._run("ovsdb-tool", "create", f"{self._folder}/conf.db", SCHEMA)
        self._launch("ovsdb-server", f"{self._folder}/conf.db", f"--remote=p{self._database}")
        self._await_file("db.sock")
        self._configure()
        control = f"--unixctl={self._folder}/ctl"
        self._launch("unshare", "--net", str(OVS), self._database, "--no-chdir", control)
        self._vsctl("add-br", "b", "--", "set", "bridge", "b", "datapath_type=netdev")
        self._add_ports([f"g{number}" for number in range(ports)])

    def _add_ports(self, names: Sequence[str]) -> None:
        words: list[str] = []
        for number, name in enumerate(names, start=1):
            words += ["--", "add-port", "b", name, "--", "set", "Interface", name]
            words += ["type=dpdkvhostuser", f"ofport_request={number}"]
        self._vsctl(*words)
        self.devices = [guest(str(self._folder / name)) for name in names]
        for number in range(len(names)):
            self._flow(number)

    def _configure(self) -> None:
        self._vsctl("--no-wait", "init")
        settings = {
            "dpdk-init": "true",
            # It adds --in-memory, which needs huge pages, if there is no --legacy-mem.
            "dpdk-extra": f'"{EAL}"',
            "pmd-cpu-mask": hex(1 << first_cpu()),
        }
        words = [f"other_config:{key}={value}" for key, value in settings.items()]
        self._vsctl("--no-wait", "set", "Open_vSwitch", ".", *words)

    def _flow(self, number: int) -> None:
        station = f"02:00:00:00:00:{number + 1:02x}"
        bridge = f"unix:{self._folder}/b.mgmt"
        self._run("ovs-ofctl", "add-flow", bridge, f"dl_dst={station},actions=output:{number + 1}")

    @property
    def pid(self) -> int:
        """Process of the switch."""
        return self._processes[-1].pid

    def begin(self) -> None:
        """Begin to count its cycles."""
        self._appctl("dpif-netdev/pmd-stats-clear")

    def cycles(self, counted: Counted) -> float | None:
        """Return its own figure, without polls that found nothing."""
        del counted
        found = _CYCLES.search(self._appctl("dpif-netdev/pmd-stats-show"))
        return float(found[1]) if found else None

    def end(self) -> None:
        """End both programs."""
        for process in reversed(self._processes):
            process.terminate()
            try:
                process.wait(PATIENCE_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def _launch(self, *command: str) -> None:
        with (self._folder / "log").open("ab") as log:
            process = subprocess.Popen(command, env=self._environment, stdout=log, stderr=log)
        self._processes.append(process)

    def _await_file(self, name: str) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not (self._folder / name).exists():
            if time.monotonic() > deadline:
                raise RuntimeError(f"OVS did not start: {self._log()}")
            time.sleep(0.02)

    def _vsctl(self, *words: str) -> None:
        limit = f"--timeout={PATIENCE_S:.0f}"
        self._run("ovs-vsctl", f"--db={self._database}", limit, *words)

    def _appctl(self, *words: str) -> str:
        return self._run("ovs-appctl", "-t", f"{self._folder}/ctl", *words)

    def _run(self, *command: str) -> str:
        done = subprocess.run(
            command, env=self._environment, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise RuntimeError(f"{_shown(command)}: {done.stderr.strip()}\n{self._log()}")
        return done.stdout

    def _log(self) -> str:
        log = self._folder / "log"
        return log.read_text()[-500:] if log.exists() else ""


def _shown(command: Sequence[str]) -> str:
    return " ".join(command[:4])
