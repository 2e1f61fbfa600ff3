"""The load on the router: the lab's source, a given command, or existing traffic."""

import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from common.errors import ConfigError
from common.units import format_rate
from training.sweep import run_bound as tether
from training.sweep.watch import MeasureError

PLACEHOLDER = "{rate}"
SIZE = "{size}"
"""Placeholder in a source's command line for the bytes of a frame without its checksum."""
GRACE_S = 2.0
"""How much longer than a source its watcher process may take to end."""
FIRST_RATE = 25e3
LAST_RATE = 25.6e6
"""Range of the search for a router's saturating rate, in packets/s."""
FORWARDED = 0.9
"""A router that forwards less than this share of its load is saturated."""
RISES = 1.1
"""A router with a smaller gain in throughput than this factor has reached its top."""
SENT = 0.9
"""A source that sends less than this share of the requested rate has reached its limit."""


class Load(Protocol):
    """A sender of packets towards the router."""

    def set_rate(self, rate_pps: float, packet_bytes: int | None = None) -> None:
        """Send at another rate from now on, in packets/s.

        Args:
            rate_pps: packets/s.
            packet_bytes: of a frame without its checksum; None keeps the size.
        """
        ...

    @property
    def alive(self) -> bool:
        """Whether it is still running."""
        ...

    def stop(self) -> None:
        """Stop sending."""
        ...


class Command:
    """An operator's program that sends, restarted for each rate.

    It and its children end with this process, even if that is killed.

    Raises:
        ConfigError: the command line cannot be split, or has no ``{rate}``.
        MeasureError: it cannot be started.
    """

    def __init__(self, template: str, packet_bytes: int | None = None) -> None:
        """Take a command line with ``{rate}`` for packets/s, ``{size}`` for bytes."""
        self._words, self._size = words_of(template), packet_bytes
        check_size(template, packet_bytes)
        self._process: subprocess.Popen[bytes] | None = None

    def set_rate(self, rate_pps: float, packet_bytes: int | None = None) -> None:
        """Restart the program with another rate, and another size if one is given."""
        self.stop()
        self._size = self._size if packet_bytes is None else packet_bytes
        given = {PLACEHOLDER: f"{rate_pps:.0f}", SIZE: str(self._size)}
        words = [_filled(word, given) for word in self._words]
        if shutil.which(words[0]) is None:
            there = Path(words[0]).exists()
            problem = "not executable" if there else "No such file"
            raise MeasureError("--source", f"{words[0]}: {problem}", "correct it")
        self._process = subprocess.Popen(  # noqa: S603  the operator's own command
            [sys.executable, "-I", tether.__file__, str(os.getpid()), *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            start_new_session=True,
        )

    @property
    def alive(self) -> bool:
        """Whether the program runs."""
        return self._process is not None and self._process.poll() is None

    @property
    def exit_code(self) -> int | None:
        """Exit code of a program that ended by itself; None while it runs or after a stop."""
        return None if self._process is None else self._process.poll()

    def stop(self) -> None:
        """End the program, by force if need be."""
        process, self._process = self._process, None
        if process is None or process.poll() is not None:
            return
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(tether.END_S + GRACE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def words_of(template: str) -> list[str]:
    """Split a source's command line into words, as a shell does.

    Raises:
        ConfigError: a quote is not closed, or there is no ``{rate}``.
    """
    if PLACEHOLDER not in template:
        fix = f"write {PLACEHOLDER} where packets/s belong"
        raise ConfigError("--source", f"has no {PLACEHOLDER}", fix)
    try:
        return shlex.split(template)
    except ValueError as error:
        fix = "close each quote; a \\ before one has it stand for itself"
        problem = f"cannot be taken apart: {str(error).lower()}"
        raise ConfigError("--source", problem, fix) from error


def _filled(word: str, given: Mapping[str, str]) -> str:
    for name, value in given.items():
        word = word.replace(name, value)
    return word


def check_size(template: str | None, packet_bytes: int | None) -> None:
    """Reject a size that no source sends, and a source that lacks the size it needs.

    Raises:
        ConfigError: one of the two applies.
    """
    sized = template is not None and SIZE in template
    if packet_bytes is not None and not sized:
        fix = f"give --lab, or a --source with {SIZE}"
        raise ConfigError("--packet-size", "nothing sends that size", fix)
    if packet_bytes is None and sized:
        fix = f"give --packet-size, or write the size instead of {SIZE}"
        raise ConfigError("--source", f"has {SIZE}, but no size is given", fix)


def check_alive(load: Load | None) -> None:
    """Refuse to measure once the source has ended; a command that has not started yet is accepted.

    Raises:
        MeasureError: the source has ended by itself.
    """
    if load is None or load.alive:
        return
    code = ""
    if isinstance(load, Command):
        if load.exit_code is None:
            return
        code = f" with exit code {load.exit_code}"
    fix = "have it send until it is ended, then run again: a sweep goes on where it stopped"
    raise MeasureError("the source", f"ended by itself{code}", fix)


def arrives(offered: float | None, rate: float) -> bool:
    """Whether a rate arrives at the router; assumed without a counter."""
    return offered is None or offered >= SENT * rate


def short_of(offered: float | None, rate: float) -> MeasureError:
    """Return the error of a rate that does not arrive at the router."""
    problem = f"{format_rate(offered or 0.0)} arrive where {format_rate(rate)} were asked for"
    return MeasureError("--offered", problem, "give a rate that the source can send")


def saturating_rate(load: Load, measure: Callable[[], tuple[float, float | None]]) -> float:
    """Raise the rate until it saturates the router; send at that rate, and return it.

    Where the source reaches its limit first, that is the rate that arrives.

    Args:
        load: the sender.
        measure: returns throughput and offered load, in packets/s, at the rate in force.

    Raises:
        MeasureError: nothing arrives at the router.
    """
    tried: list[tuple[float, float, float | None]] = []
    while (rate := next_rate(tried)) is not None:
        load.set_rate(rate)
        tried.append((rate, *measure()))
    rate, _, offered = tried[-1]
    found = _arriving(rate, offered)
    if found <= 0:
        raise short_of(offered, rate)
    for rate, throughput, offered in reversed(tried):
        if not _lossy(rate, throughput, offered):
            break
        found = _arriving(rate, offered)
    load.set_rate(found)
    return found


def _arriving(rate: float, offered: float | None) -> float:
    return rate if offered is None or arrives(offered, rate) else offered


def next_rate(tried: Sequence[tuple[float, float, float | None]]) -> float | None:
    """Return the rate to try next, in packets/s, None when the last saturates the router.

    Loss alone may be temporary: throughput must also not exceed that at the previous rate.

    Args:
        tried: (rate, throughput, offered) of each rate so far.
    """
    if not tried:
        return FIRST_RATE
    rate, throughput, offered = tried[-1]
    exhausted = not arrives(offered, rate)
    flat = len(tried) > 1 and throughput < RISES * tried[-2][1]
    saturated = flat and _lossy(rate, throughput, offered)
    return None if saturated or exhausted or rate >= LAST_RATE else 2 * rate


def _lossy(rate: float, throughput: float, offered: float | None) -> bool:
    return throughput < FORWARDED * (rate if offered is None else offered)
