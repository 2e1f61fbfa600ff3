"""A port agent as a process, a controller that answers it, and files for both."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from xco.errors import Stale, WireError
from xco.protocol.checks import AGENT, CONTROLLER
from xco.protocol.keys import derive, host_file
from xco.protocol.messages import Header, Port, PortCounts, Status, Strategy, Welcome
from xco.protocol.wire import Origin, decode, encode
from xco.topology.file import load_file

ROOT = Path(__file__).parents[2]
MASTER = bytes(range(32))
ASKED_S = 100.0
"""A command that has not ended by then hangs, also on a busy machine."""
TOPOLOGY = """
[switch.tor]
[host.h1]
[host.store]
[[link]]
between = ["h1", "tor"]
capacity = "1Gbps"
[[link]]
between = ["store", "tor"]
capacity = "1Gbps"
"""
TO_STORE, TO_H1 = (2, 1), (2, 0)
"""The ports of `tor`, as messages number them."""


class FakeController:
    """Answers PORT as the controller does, in an epoch of its own; keeps what it heard."""

    def __init__(self, digest: bytes, epoch: int = 5, port: int = 0) -> None:
        self.digest, self.epoch = digest, epoch
        self.heard: list[Port] = []
        self.refused: list[WireError] = []
        self._keys = derive(MASTER, AGENT)
        self._origin = Origin()
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("127.0.0.1", port))
        self.address = "{}:{}".format(*self._socket.getsockname())
        self._sequence = 0
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def ports(self, pair: tuple[int, int]) -> list[PortCounts]:
        """Return what was accepted of a port."""
        return [one for message in self.heard for one in message.ports
                if (one.source, one.target) == pair]  # fmt: skip

    def close(self) -> None:
        """Stop to answer."""
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as last:
            last.sendto(b"", self._socket.getsockname())
        self._thread.join()
        self._socket.close()

    def _serve(self) -> None:
        while True:
            datagram, sender = self._socket.recvfrom(65536)
            if not datagram:
                return
            try:
                message = decode(datagram, self._keys.up)
                assert isinstance(message, Port)
                self._socket.sendto(encode(self._answer(message), self._keys.down), sender)
            except WireError as error:
                self.refused.append(error)

    def _answer(self, message: Port) -> Welcome:
        self._sequence += 1
        state = Status.JOINED
        if message.header.epoch != self.epoch:
            state = Status.HELLO_FIRST
        elif message.digest != self.digest:
            state = Status.TOPOLOGY_DIFFERS
        else:
            with contextlib.suppress(Stale):
                self._origin.accept(message.header)
                self.heard.append(message)
        header = Header(CONTROLLER, self.epoch, self._sequence, time.monotonic_ns())
        return Welcome(header, AGENT, state, Strategy.RATE, 0, 0, message.header.sent_ns, 0)


class RunningAgent:
    """An agent with the files that it needs, perhaps in a network namespace."""

    def __init__(self, folder: Path, controllers: str, ports: str, namespace: str = "") -> None:
        self.file = folder / "xco.toml"
        self._log = folder / "agent.log"
        write_files(folder, controllers, ports)
        self._namespace = namespace
        with self._log.open("wb") as log:
            self.process = subprocess.Popen(
                command(self.file, "run", namespace=namespace), stderr=log, env=environment()
            )

    def events(self, name: str) -> list[dict[str, Any]]:
        """Return the events of a name in the log so far."""
        lines = map(json.loads, self._log.read_text().splitlines())
        return [line for line in lines if line["event"] == name]

    def ask(self, *words: str) -> "subprocess.CompletedProcess[str]":
        """Run another command with the same settings."""
        return ask(self.file, *words, namespace=self._namespace)

    def stop(self) -> int:
        """Stop the agent and return its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(10)


def command(file: Path, *words: str, namespace: str = "") -> list[str]:
    """Return a command of `xco port-agent` with settings."""
    prefix = ["ip", "netns", "exec", namespace] if namespace else []
    return [*prefix, sys.executable, "-m", "xco", "port-agent", *words, "--config", str(file)]


def ask(file: Path, *words: str, namespace: str = "") -> "subprocess.CompletedProcess[str]":
    """Run a command until it ends; where it does not, its error has what each thread did."""
    asked = command(file, *words, namespace=namespace)
    with subprocess.Popen(
        asked, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment()
    ) as process:
        try:
            out, error = process.communicate(timeout=ASKED_S)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGABRT)
            out, error = process.communicate()
    return subprocess.CompletedProcess(asked, process.returncode, out, error)


def environment() -> dict[str, str]:
    """Return the environment of a program of this project."""
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")]))
    return {**os.environ, "PYTHONPATH": path, "PYTHONFAULTHANDLER": "1"}


def write_files(folder: Path, controllers: str, ports: str) -> None:
    """Write topology, key and settings."""
    (folder / "topology.toml").write_text(TOPOLOGY)
    (folder / "agent.key").write_bytes(host_file(derive(MASTER, AGENT)))
    (folder / "xco.toml").write_text(
        f'[port-agent]\ntopology = "topology.toml"\ncontrollers = ["{controllers}"]\n'
        f'key_file = "agent.key"\nruntime_dir = "{folder}/run"\ninterval = "20ms"\n{ports}'
    )


def digest(folder: Path) -> bytes:
    """Return that of the nodes of the topology."""
    (folder / "topology.toml").write_text(TOPOLOGY)
    return load_file(folder / "topology.toml").topology.nodes_digest()


@contextlib.contextmanager
def controller(folder: Path, epoch: int = 5) -> Iterator[FakeController]:
    """Run a controller with the topology of the rig."""
    made = FakeController(digest(folder), epoch)
    try:
        yield made
    finally:
        made.close()


@contextlib.contextmanager
def agent(
    folder: Path, controllers: str, ports: str, namespace: str = ""
) -> Iterator[RunningAgent]:
    """Run an agent; it must end when asked to."""
    made = RunningAgent(folder, controllers, ports, namespace)
    try:
        yield made
        assert made.stop() == 0, made.events("unexpected_error")
    finally:
        made.process.kill()
        made.process.wait()


def gnmi(port: int, name: str, to: str, keys: str) -> str:
    """Return the settings of a port of a gNMI server on this machine."""
    return (
        f'[[port-agent.port]]\nlink = ["tor", "{to}"]\nreader = "gnmi"\ninterface = "{name}"\n'
        f'target = "localhost:{port}"\nsample_interval = "50ms"\n{keys}\n'
    )


def rising(there: FakeController, pair: tuple[int, int]) -> Callable[[], bool]:
    """Return what is true when more of a port was heard than now."""
    before = len(there.ports(pair))
    return lambda: len(there.ports(pair)) > before + 2


def until(condition: Callable[[], Any], what: str, seconds: float = 20.0) -> Any:
    """Wait until a condition holds, and return its value."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if value := condition():
            return value
        time.sleep(0.02)
    raise AssertionError(f"{what}: not within {seconds} s")
