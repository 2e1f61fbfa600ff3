"""Handles on the lab's running programs: start them in their place, control and stop them."""

import math
import os
import select
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from lab.errors import BadRequestError, ProgramError
from lab.programs.source import HEADERS, LARGEST_PAYLOAD
from lab.system import launch

READY_TIMEOUT_S: Final = 60.0
MAX_RATE: Final = 1e9
_PACKAGE_PARENT: Final = str(Path(__file__).resolve().parents[2])


@dataclass(frozen=True, slots=True)
class Place:
    """Where a program runs."""

    netns: str
    """The path of its network namespace."""
    cgroup: str | None = None
    """The directory of the control group that it joins."""
    cpu: int | None = None
    """The CPU it is pinned to; None lets the kernel choose."""

    def command(self, argv: Sequence[str]) -> list[str]:
        """Return the command line that starts ``argv`` here, tied to the life of this process."""
        place = ["--owner", str(os.getpid()), "--netns", self.netns]
        place += ["--cgroup", self.cgroup] if self.cgroup else []
        place += ["--cpu", str(self.cpu)] if self.cpu is not None else []
        return [sys.executable, "-I", str(launch.__file__), *place, "--", *argv]


class Program:
    """One running program of the lab; the kernel kills it when the thread that started it ends.

    Raises:
        ProgramError: it ended, or was not ready within a minute.
    """

    def __init__(self, module: str, arguments: Sequence[str], place: Place) -> None:
        """Start ``python -m lab.<module>`` there, and wait until it is ready."""
        self.name = module.rpartition(".")[2]
        self._stopped = False
        self._process = subprocess.Popen(  # noqa: S603  our own program
            place.command([sys.executable, "-m", f"lab.{module}", *arguments]),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment(),
            start_new_session=True,  # Ctrl-C is for the owner, which then ends its programs
        )
        self._wait_until_ready()

    @property
    def pid(self) -> int:
        """The process's id."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether it still runs."""
        return self._process.poll() is None

    @property
    def died(self) -> bool:
        """Whether it ended without being stopped."""
        return not self._stopped and not self.alive

    def stop(self) -> None:
        """Stop it immediately, if it still runs."""
        self._stopped = True
        self._process.kill()
        self._process.communicate()

    def _wait_until_ready(self) -> None:
        output = self._process.stdout
        if output and select.select([output], [], [], READY_TIMEOUT_S)[0] and output.readline():
            return
        hung = self.alive
        self._process.kill()
        problem = f"not ready within {READY_TIMEOUT_S:g} s" if hung else "exited immediately"
        raise ProgramError(self.name, problem, self._process.communicate()[1])

    def _tell(self, line: str) -> None:
        if not self.alive or self._process.stdin is None:
            raise ProgramError(self.name, "it no longer runs")
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()


class Source(Program):
    """A running traffic source."""

    def set_rate(self, rate_pps: float, packet_bytes: int | None = None) -> None:
        """Change the rate, in packets/s.

        Args:
            rate_pps: packets/s.
            packet_bytes: of a frame without its checksum; None keeps the size. It does not apply to
                a TCP flow.

        Raises:
            BadRequestError: the rate is not within [0, 1e9], or the size not within [43, 1514].
            ProgramError: the source has ended.
        """
        rate = str(check_rate(rate_pps))
        self._tell(rate if packet_bytes is None else f"{rate} {payload_of(packet_bytes)}")


class Hog(Program):
    """A running CPU hog."""


@dataclass(frozen=True, slots=True)
class TcpFlow:
    """A TCP flow through a router: its source and its sink."""

    source: Source
    sink: Program

    def stop(self) -> None:
        """Stop both ends."""
        self.source.stop()
        self.sink.stop()


def check_rate(rate_pps: float) -> float:
    """Return a packet rate.

    Raises:
        BadRequestError: the rate is not within [0, 1e9] packets/s.
    """
    if not math.isfinite(rate_pps) or not 0 <= rate_pps <= MAX_RATE:
        raise BadRequestError("rate_pps", rate_pps, "a rate from 0 to 1e9 packets/s")
    return rate_pps


def payload_of(packet_bytes: int) -> int:
    """Return the bytes of data in a UDP packet, from the size of its frame without checksum.

    Raises:
        BadRequestError: the size is not within [43, 1514] bytes.
    """
    if not HEADERS < packet_bytes <= HEADERS + LARGEST_PAYLOAD:
        expected = f"{HEADERS + 1} to {HEADERS + LARGEST_PAYLOAD} bytes"
        raise BadRequestError("packet size", packet_bytes, expected)
    return packet_bytes - HEADERS


def check_share(share: float) -> float:
    """Return a share of one CPU.

    Raises:
        BadRequestError: the share is not within (0, 1].
    """
    if not math.isfinite(share) or not 0 < share <= 1:
        raise BadRequestError("share", share, "a fraction of one CPU above 0 and at most 1")
    return share


def environment() -> dict[str, str]:
    """Return the environment of a Python program of the lab, which finds our packages."""
    inherited = os.environ.get("PYTHONPATH")
    paths = [_PACKAGE_PARENT, *([inherited] if inherited else [])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
