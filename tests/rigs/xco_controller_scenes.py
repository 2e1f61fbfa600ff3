"""Scenes for tests of the controller: settings, hosts that speak the protocol, simulated time."""

from collections.abc import Mapping, Sequence
from itertools import count
from pathlib import Path

import msgspec
from xco_controller_rig import MASTER, Node

from xco.controller.config import ControllerConfig, ControllerTable, checked
from xco.controller.loopfile import loop_text
from xco.protocol.messages import (
    Directive,
    Flag,
    Header,
    Hello,
    Leave,
    Message,
    Report,
    Waiting,
    Welcome,
)
from xco.topology.graph import Topology

MS = 1_000_000
US = 1_000
EPOCH = 1_800_000_000


def settings_text(run_dir: Path, lease: Path) -> str:
    """Return a file of settings for a controller of this machine alone."""
    return f"""
[controller]
topology = "topology.toml"
key = "key"
listen = "127.0.0.1:0"
run_dir = "{run_dir}"
lease = "{lease}"
realtime = 0
"""


def star(hosts: int) -> str:
    """Return a topology file: hosts h1, h2 and so on at one switch."""
    names = [f"h{number + 1}" for number in range(hosts)]
    link = '[host.{0}]\n[[link]]\nbetween = ["{0}", "middle"]\ncapacity = "1Gbps"\n'
    return "[switch.middle]\n" + "".join(link.format(name) for name in names)


def controller_config(
    folder: Path, weights: Mapping[str, int] | None = None, **settings: object
) -> ControllerConfig:
    """Return settings whose files are all in a folder; the key is there."""
    (folder / "key").write_bytes(MASTER)
    places = {"topology": "topology.toml", "key": "key", "lease": str(folder)}
    quiet = {"listen": "127.0.0.1:0", "run_dir": str(folder), "realtime": 0}
    times = {"lead": "200us", "guard": "30us", "pace": 0.98}
    table = msgspec.convert({**places, **quiet, **times, **settings}, ControllerTable)
    return checked(table, weights or {}, folder / "xco.toml")


def loop_file(
    folder: Path,
    topology: Topology,
    epoch: int = EPOCH,
    weights: Mapping[str, int] | None = None,
    **settings: object,
) -> Path:
    """Write a loop file and its key into a folder."""
    path = folder / "controller.loop"
    config = controller_config(folder, weights, **settings)
    path.write_text(loop_text(config, topology, epoch, now_ns=EPOCH))
    return path


class Speaker:
    """A host that speaks the protocol: builds its messages, remembers what it heard."""

    def __init__(self, host: int, digest: bytes, first_sequence: int = 1) -> None:
        self.host, self.digest = host, digest
        self.epoch = EPOCH
        self.heard: list[Directive] = []
        self.welcomes: list[Welcome] = []
        self._sequences = count(first_sequence)

    def header(self, now_ns: int) -> Header:
        return Header(self.host, self.epoch, next(self._sequences), now_ns)

    def hello(self, now_ns: int) -> Hello:
        return Hello(self.header(now_ns), self.digest)

    def report(
        self,
        now_ns: int,
        *destinations: int,
        gave_up: int = 0,
        rate_kbps: int = 0,
        free_ns: int = 0,
        flags: Flag = Flag.NONE,
        promised: Mapping[int, tuple[int, int]] | None = None,
        quiet: Mapping[int, int] | None = None,
    ) -> Report:
        """Build a report.

        By destination, `promised` has weight and guarantee, and `quiet` the rate in kbit/s where
        nothing waits.
        """
        heard = self.heard[-1].header.sequence if self.heard else 0
        quiet = quiet or {}
        waiting = tuple(
            Waiting(
                destination,
                0 if destination in quiet else 100_000,
                quiet.get(destination, rate_kbps),
                0,
                *(promised or {}).get(destination, (0, 0)),
            )
            for destination in destinations
        )
        return Report(self.header(now_ns), flags, heard, gave_up, waiting, free_ns)

    def leave(self, now_ns: int) -> Leave:
        return Leave(self.header(now_ns))

    def hear(self, message: Message) -> None:
        assert isinstance(message, Welcome | Directive)
        assert message.to == self.host
        self.epoch = max(self.epoch, message.header.epoch)
        if isinstance(message, Directive):
            self.heard.append(message)
        else:
            self.welcomes.append(message)

    @property
    def directive(self) -> Directive:
        return self.heard[-1]


class Scene:
    """A controller and its hosts in simulated time; messages arrive at once."""

    def __init__(
        self,
        folder: Path,
        topology: Topology,
        weights: Mapping[str, int] | None = None,
        **settings: object,
    ) -> None:
        self.folder, self.topology = folder, topology
        self.node = Node(loop_file(folder, topology, weights=weights, **settings))
        digest = topology.hosts_digest()
        self.hosts = [Speaker(index, digest) for index in range(len(topology.hosts))]
        self.now_ns = 1000 * MS

    def say(self, message: Message | bytes) -> int:
        """Let a message arrive, and deliver all that follows at this instant."""
        verdict = self.node.receive(self.now_ns, message)
        self.settle()
        return verdict

    def join(self, hosts: Sequence[int] | None = None) -> None:
        for index in range(len(self.hosts)) if hosts is None else hosts:
            self.say(self.hosts[index].hello(self.now_ns))

    def report(
        self,
        host: int,
        *destinations: int,
        flags: Flag = Flag.NONE,
        promised: Mapping[int, tuple[int, int]] | None = None,
        quiet: Mapping[int, int] | None = None,
        **more: int,
    ) -> None:
        speaker, by_destination = self.hosts[host], {"promised": promised, "quiet": quiet}
        self.say(speaker.report(self.now_ns, *destinations, flags=flags, **by_destination, **more))

    def settle(self) -> list[Message]:
        self.node.advance(self.now_ns)
        messages = self.node.take(self.now_ns)
        for message in messages:
            assert isinstance(message, Welcome | Directive)
            self.hosts[message.to].hear(message)
        return messages

    def run_until(self, end_ns: int) -> None:
        """Let time pass, stopping at each deadline."""
        while self.node.deadline_ns <= end_ns:
            self.now_ns = max(self.now_ns, self.node.deadline_ns)
            self.settle()
        self.now_ns = end_ns
        self.settle()
