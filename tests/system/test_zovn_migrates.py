"""QEMU migrates a guest between ports of the switch: its boot loader, which asks by DHCP."""

import json
import socket
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self

import pytest
from support.waiting import eventually
from zovn_switch_rig import RunningSwitch, build_guest, running_switch

pytestmark = [pytest.mark.zovn, pytest.mark.timeout(600)]
PATIENCE_S = 120.0
MEMORY = "128M"


@pytest.fixture(params=[1, 2])
def switch(request: pytest.FixtureRequest) -> Iterator[RunningSwitch]:
    build_guest()
    with running_switch(names="ab", each=[{"queues": request.param}] * 2) as made:
        yield made


class Machine:
    """A machine on a port that boots from the network, with its monitor."""

    def __init__(self, switch: RunningSwitch, name: str, *more: str) -> None:
        self.path = switch.folder / f"{name}.qmp"
        queues = switch.port(name).queues
        self.process = subprocess.Popen(
            [
                *("qemu-system-x86_64", "-accel", "tcg", "-M", "q35", "-m", MEMORY),
                *("-object", f"memory-backend-memfd,id=mem,size={MEMORY},share=on"),
                *("-numa", "node,memdev=mem", "-display", "none"),
                *("-chardev", f"socket,id=net0,path={switch.socket(name)}"),
                *("-netdev", f"vhost-user,id=net0,chardev=net0,queues={queues}"),
                "-device",
                "virtio-net-pci,netdev=net0,mac=52:54:00:00:00:01,vectors=0,bootindex=1"
                + ",mq=on" * (queues > 1),
                *("-qmp", f"unix:{self.path},server=on,wait=off"),
                *more,
            ]
        )

    def __enter__(self) -> Self:
        self.socket = socket.socket(socket.AF_UNIX)
        eventually(self._connected, PATIENCE_S)
        self.monitor = self.socket.makefile("rw")
        self.monitor.readline()
        self.ask("qmp_capabilities")
        return self

    def _connected(self) -> bool:
        try:
            self.socket.connect(str(self.path))
        except OSError:
            return False
        return True

    def __exit__(self, *_: object) -> None:
        self.monitor.close()
        self.socket.close()
        self.process.kill()
        self.process.wait()

    def ask(self, command: str, **arguments: str) -> dict[str, Any]:
        """Have the monitor do something; return its answer."""
        self.monitor.write(json.dumps({"execute": command, "arguments": arguments}) + "\n")
        self.monitor.flush()
        while True:
            answer: dict[str, Any] = json.loads(self.monitor.readline())
            assert "error" not in answer, answer
            if "return" in answer:
                return dict(answer["return"])


def migrated(machine: Machine, to: Path) -> bool:
    """Migrate a machine into a file, while it runs; return whether that succeeded."""
    machine.ask("migrate", uri=f"exec:cat > {to}")

    def ended() -> str:
        status = str(machine.ask("query-migrate").get("status"))
        return status if status in {"completed", "failed"} else ""

    return eventually(ended, PATIENCE_S) == "completed"


def test_a_guest_goes_on_behind_another_port(switch: RunningSwitch) -> None:
    file = switch.folder / "machine"
    with ExitStack() as stack:
        source = stack.enter_context(Machine(switch, "a"))
        eventually(lambda: switch.port("a").counters["in"] > 0, PATIENCE_S)
        assert migrated(source, file)
        assert switch.port("a").attachments == 1, "to begin the log costs no frame"
        stack.enter_context(Machine(switch, "b", "-incoming", f"exec:cat {file}"))
        eventually(lambda: switch.port("b").counters["in"] > 0, PATIENCE_S)
        assert switch.port("b").fault == switch.port("a").fault == "none"
