"""A controller's published state: its state file, and the names of its hosts."""

import os
from enum import StrEnum
from pathlib import Path

import msgspec
import structlog

from xco.controller.config import Places
from xco.controller.loopfile import replace_file
from xco.errors import ControllerError
from xco.topology.graph import Topology

log = structlog.get_logger("xco.controller")


class Role(StrEnum):
    """The role of this controller."""

    STANDBY = "standby"
    LEADER = "leader"


class State(msgspec.Struct, frozen=True):
    """The content of the shell's state file."""

    role: Role
    pid: int
    born: int = 0
    """Start time of that process, in clock ticks since boot; 0 if unknown."""
    epoch: int = 0
    loop_pid: int = 0
    starts: int = 0
    """How often this process has started the loop."""
    problem: str = ""
    """Why it does not lead, what was refused, what waits for a restart; "" if nothing is wrong."""


def is_running(state: State) -> bool:
    """Whether the process that wrote a state still runs; a reused process number does not count."""
    born = born_at(state.pid)
    return born != 0 and state.born in {0, born}


def born_at(pid: int) -> int:
    """Return a process' start time, in clock ticks since boot; 0: no such process (proc(5))."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return 0
    return int(text.rpartition(")")[2].split()[19])


def is_of_another(path: Path) -> bool:
    """Whether the state file belongs to another running controller: two share a directory."""
    try:
        state = msgspec.json.decode(path.read_bytes(), type=State)
    except (OSError, msgspec.DecodeError):
        return False
    return state.pid != os.getpid() and is_running(state)


def publish_names(places: Places, topology: Topology) -> None:
    """Publish the names of the loop's host numbers, for use while the topology file is wrong."""
    names = msgspec.json.encode([host.name for host in topology.hosts])
    try:
        replace_file(places.names_file, names.decode() + "\n")
    except ControllerError as error:  # leading does not need the names
        log.warning("names_not_written", problem=str(error))
