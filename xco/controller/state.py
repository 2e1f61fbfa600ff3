"""What a controller says of itself to who looks: its state file, and the names of its hosts."""

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
    """What this controller is."""

    STANDBY = "standby"
    LEADER = "leader"


class State(msgspec.Struct, frozen=True):
    """What the shell says of itself, in its state file."""

    role: Role
    pid: int
    born: int = 0
    """When that process started, in clock ticks since the boot; 0 if that is not known."""
    epoch: int = 0
    loop_pid: int = 0
    starts: int = 0
    """How often the loop was started, in this process."""
    problem: str = ""
    """Why it does not lead, what was refused, what waits for a restart; "" if nothing is wrong."""


def is_running(state: State) -> bool:
    """Whether the process that wrote a state is still there, and not another of its number."""
    born = born_at(state.pid)
    return born != 0 and state.born in {0, born}


def born_at(pid: int) -> int:
    """Return when a process started, in clock ticks since the boot; 0: there is none (proc(5))."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return 0
    return int(text.rpartition(")")[2].split()[19])


def is_of_another(path: Path) -> bool:
    """Whether the state file is that of another controller that runs: two share a directory."""
    try:
        state = msgspec.json.decode(path.read_bytes(), type=State)
    except (OSError, msgspec.DecodeError):
        return False
    return state.pid != os.getpid() and is_running(state)


def publish_names(places: Places, topology: Topology) -> None:
    """Say which hosts the loop's numbers mean, for those who look while the file is wrong."""
    names = msgspec.json.encode([host.name for host in topology.hosts])
    try:
        replace_file(places.names_file, names.decode() + "\n")
    except ControllerError as error:  # it leads without: only who looks misses them
        log.warning("names_not_written", problem=str(error))
