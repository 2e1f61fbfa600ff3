"""A switch of zovn between the hosts of a fabric, in its lossless or its lossy mode.

It is what operators run, `zovn switch run`, with a port to each host and the aggregator's one
limited to the bottleneck's rate. In the lossy mode a class has a limit; nothing else differs.
"""

import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Self

from benchmarks.zovn.partition_network import (
    FRAME_BYTES,
    Network,
    Request,
    fabric_of,
    losses_of,
    members_of,
)
from lab.errors import ProgramError
from lab.fabric import lossless
from lab.fabric.fabric import Fabric
from lab.fabric.plan import FabricPlan, parse_bitrate
from lab.plan import namespace
from lab.programs.processes import Place, environment
from lab.system import namespaces
from zovn.check.veths import probe_veths
from zovn.core_files import program
from zovn.errors import CoreError, SwitchAway
from zovn.switch import control

NAME: Final = "zovn switch"
READY_S: Final = 60.0
END_S: Final = 10.0
POLL_S: Final = 0.05


def missing() -> list[str]:
    """Return what this machine lacks for the switch, each as a sentence with a fix."""
    try:
        program()
    except CoreError as error:
        return [str(error)]
    found = probe_veths()
    if found.result == "lossless":
        return []
    return [f"Ports to containers are {found.said}. They need Linux 6.16 or newer."]


class Switch:
    """A running switch with a folder for its settings, as a context manager.

    Raises:
        ProgramError: it ends, or does not answer within a minute.
    """

    def __init__(self, place: Place, folder: Path, settings: str) -> None:
        """Start it, and wait until it answers."""
        self._control, self._log = folder / "control.sock", folder / "log"
        file = folder / "zovn.toml"
        file.write_text(f'[switch]\ncontrol = "{self._control}"\n{settings}')
        command = [sys.executable, "-m", "zovn", "switch", "run", str(file)]
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                place.command(command),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=environment(),
                start_new_session=True,  # Ctrl-C is for the owner, which then ends it
            )
        try:
            self._wait_until_ready()
        except BaseException:
            self.stop()
            raise

    def dropped(self) -> int:
        """Return the frames that it dropped for any reason, or that never came to it."""
        ports = control.status(self._control).ports
        return sum(sum(port.drops.values()) + (port.lost or 0) for port in ports)

    @contextmanager
    def awake(self) -> Iterator[None]:
        """Let it run, and stop it afterwards."""
        self._process.send_signal(signal.SIGCONT)
        try:
            yield
        finally:
            self._process.send_signal(signal.SIGSTOP)

    def stop(self) -> None:
        """End it; it restores the ends of its links."""
        self._process.send_signal(signal.SIGCONT)
        self._process.terminate()
        try:
            self._process.wait(END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _wait_until_ready(self) -> None:
        deadline = time.monotonic() + READY_S
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise ProgramError(NAME, "it does not run", self._log.read_text())
            time.sleep(POLL_S)

    def _answers(self) -> bool:
        try:
            return all(port.attached for port in control.ports(self._control))
        except SwitchAway:
            return False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def settings_of(plan: FabricPlan, bottleneck: str, limit_bytes: int) -> str:
    """Return the settings of a switch for the hosts of a plan; a limit of 0 makes it lossless."""
    lines = ["[switch.classes.0]", f"limit_bytes = {limit_bytes}"]
    rate = parse_bitrate("bottleneck", bottleneck)
    for host in plan.hosts:
        lines += ["", "[[switch.port]]", f'name = "{host.name}"', 'kind = "veth"']
        lines += [f'interface = "{host.name}"', f'addresses = ["{host.mac}"]']
        if host.role == "receiver":
            lines.append(f'rate = "{rate}bit/s"')
    return "\n".join(lines) + "\n"


@contextmanager
def switched(request: Request, *, lossy: bool) -> Iterator[Network]:
    """Connect hosts by a switch of zovn."""
    with Fabric(request.name) as fabric, tempfile.TemporaryDirectory(prefix="zovn-") as folder:
        plan = fabric_of(request, fabric).plan
        lossless.prepare(request.name, plan)
        place = Place(namespaces.path(namespace(request.name, plan.switches[0])))
        limit_bytes = request.queue * FRAME_BYTES if lossy else 0
        settings = settings_of(plan, request.bottleneck, limit_bytes)
        with Switch(place, Path(folder), settings) as switch:
            yield Network(
                fabric.place(fabric.receivers[0]),
                members_of(fabric),
                lambda: losses_of(fabric, switch.dropped()),
                switch.awake,
            )
