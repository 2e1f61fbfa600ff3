"""Talks to a running switch by its control socket (zovn/core/program/commands.c)."""

import socket
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from zovn.errors import SwitchAway, SwitchError

PATIENCE_S: Final = 30.0
"""A switch whose ports drain answers in less than a second."""
START: Final = "start it: systemctl start zovn-switch, or zovn switch run"
_DROP: Final = "drop_"


class PortReport(msgspec.Struct, frozen=True, kw_only=True):
    """What a switch says of a port."""

    name: str
    kind: str
    path: str = ""
    """Of its socket; empty: it has an interface."""
    interface: str = ""
    attached: bool
    """Whether a peer is."""
    attachments: int
    """How many times one was attached since the port was added."""
    vlan: int
    trunk: bool
    tagged: tuple[str, ...] = ()
    """VLANs of a trunk, as ranges."""
    class_: int = msgspec.field(name="class")
    trust: str
    offloads: bool
    queues: int = 1
    """Pairs of rings that its guest may use."""
    rate: int = 0
    """Bits of frames to it per second, at most; 0: no limit."""
    state: str = ""
    """Of a veth: `missing`, `silent`, `first`, `runs` or `gone`; of a TAP: `lossy` or `gone`; of a
    wire: `missing`, `runs` or `gone`. Empty for a guest."""
    lost: int | None = None
    """Frames that were lost at its interface, before they came to the switch or after they were
    delivered to the port; None: it has none."""
    stall: bool = False
    """Whether it takes nothing now, and its frames are dropped."""
    thread: int | None = None
    """Number of the forwarding thread that has it; None: no peer is attached."""
    fault: str = "none"
    """Why the switch stopped the port."""
    counters: Mapping[str, int] = {}
    drops: Mapping[str, int] = {}
    """By reason."""


class SwitchReport(msgspec.Struct, frozen=True, kw_only=True):
    """What a switch says of itself."""

    naps: int
    """How many times forwarding threads slept."""
    missed: int
    """How many sleeps ended late, by their bound."""
    lossy: int
    """Classes with a limit: only their frames can be dropped for congestion."""
    threads: int = 1
    """How many threads forward."""
    cpu_ns: tuple[int, ...] = ()
    """CPU time of each of them so far."""
    ports: tuple[PortReport, ...]


class StationReport(msgspec.Struct, frozen=True, kw_only=True):
    """An address that a switch knows."""

    ethernet: str
    vlan: int
    """0: of frames without a tag on a trunk that has no VLAN for them."""
    port: str
    kind: str
    """Of the port: stations behind a wire are at other hosts."""
    static: bool


def add(control: Path, words: str) -> None:
    """Add a port from its words.

    Raises:
        SwitchAway, SwitchError: no switch answers, or it refuses.
    """
    ask(control, f"add {words}")


def remove(control: Path, name: str) -> None:
    """Remove a port after what was taken from it is delivered, within limits.

    Raises:
        SwitchAway, SwitchError: no switch answers, or it refuses.
    """
    ask(control, f"remove {name}")


def ports(control: Path) -> tuple[PortReport, ...]:
    """Return all ports without their counters.

    Raises:
        SwitchAway: no switch answers.
    """
    return tuple(map(_port, ask(control, "list")))


def status(control: Path, patience_s: float = PATIENCE_S) -> SwitchReport:
    """Return the state of the switch and of all ports.

    Raises:
        SwitchAway: no switch answers, or not for so long.
    """
    first, *rest = ask(control, "status", patience_s)
    own = _words(first)
    numbers = {key: int(own[key]) for key in ("naps", "missed", "lossy", "threads")}
    used = tuple(map(int, filter(None, own.get("cpu_ns", "").split(","))))
    return SwitchReport(**numbers, cpu_ns=used, ports=tuple(map(_port, rest)))


def stations(control: Path) -> tuple[StationReport, ...]:
    """Return the addresses that the switch has learnt or has as static ones, by port and VLAN.

    Addresses that come or go meanwhile may be left out.

    Raises:
        SwitchAway: no switch answers.
    """
    found: list[StationReport] = []
    place, ended = 0, False
    while not ended:
        first, *rest = ask(control, f"stations {place}")
        found += map(_station, rest)
        following = int(_words(first)["next"])
        place, ended = following, following <= place
    return tuple(sorted(found, key=lambda one: (one.port, one.vlan, one.ethernet)))


def _station(line: str) -> StationReport:
    return msgspec.convert(_words(line), StationReport, strict=False)


def ask(control: Path, line: str, patience_s: float = PATIENCE_S) -> list[str]:
    """Send a line; return the lines of the answer.

    Raises:
        SwitchAway, SwitchError: no switch answers, or it refuses.
    """
    try:
        text = _answered(control, line, patience_s)
    except OSError as error:
        raise _away(control, error.strerror or "no answer", _fix_for(error)) from error
    *lines, last = text.splitlines() or [""]
    if last == "ok":
        return lines
    if last.startswith("error "):
        raise SwitchError(last.removeprefix("error "))
    raise _away(control, "the answer is incomplete")


def _answered(control: Path, line: str, patience_s: float) -> str:
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(str(control))  # with a timeout it would fail where others queue before it
        client.settimeout(patience_s)
        client.sendall(f"{line}\n".encode())
        with suppress(OSError):  # it may have ended already
            client.shutdown(socket.SHUT_WR)
        return b"".join(iter(lambda: client.recv(65536), b"")).decode()


def _fix_for(error: OSError) -> str:
    if isinstance(error, PermissionError):
        return "run it as root, or set control_group"
    if isinstance(error, TimeoutError):
        return "it hangs: journalctl -u zovn-switch"
    return START


def _away(control: Path, problem: str, fix: str = START) -> SwitchAway:
    return SwitchAway(f"{control}: {problem}", fix)


def _words(line: str) -> dict[str, str]:
    return dict(word.split("=", 1) for word in line.split()[1:])


def _port(line: str) -> PortReport:
    words = _words(line)
    numbers = {key: int(value) for key, value in words.items() if value.isdecimal()}
    known = {field.encode_name for field in msgspec.structs.fields(PortReport)}
    counted = {key: value for key, value in numbers.items() if key not in known}
    tagged = tuple(filter(None, words.pop("tagged", "").split(",")))
    drops = {
        key.removeprefix(_DROP): value for key, value in counted.items() if key.startswith(_DROP)
    }
    return msgspec.convert(
        words
        | {
            "tagged": tagged,
            "counters": {key: counted[key] for key in counted if not key.startswith(_DROP)},
            "drops": drops,
        },
        PortReport,
        strict=False,
    )
