"""Loads as text: the grammar of `--load`, and traces in files."""

import math
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO

from common.errors import ConfigError, UnitError
from common.suggest import nearest
from common.units import MAX_RATE, parse_duration, parse_rate
from xtc.simulation.loads import Load, Pulses, Ramp, Sine, Steady, Steps, walk

FINEST_S = 0.005
"""The shortest time in which a load may change: anything shorter is an instantaneous burst."""
LONGEST_S = 1e6
MOST_STEPS = 1_000_000
MAX_BYTES = 32 << 20
"""A trace of a million lines takes 20 MB."""
HEADER = "seconds,offered_pps"
FORMS = {
    "steady": "steady",
    "on-off": "on-off:5.3s",
    "sine": "sine:5kpps-35kpps:30s",
    "ramp": "ramp:0-60kpps:120s",
    "walk": "walk:5kpps-80kpps:500ms",
    "trains": "trains:50ms:1s",
    "trace": "trace:FILE",
}
"""The syntax of each kind; times are of a whole cycle, of a step of the walk, or of a train."""
OWN_RATES = frozenset({"sine", "ramp", "walk", "trace"})
"""Kinds that specify their own rates."""
_DASH = re.compile(r"(?<!e)-")


def parse_load(text: str, offered: float, *, duration_s: float, seed: int = 0) -> Load:
    """Parse a load such as ``on-off:5.3s``.

    Args:
        text: a kind and its parameters, separated by colons.
        offered: the rate of kinds that do not specify their own, in packets/s.
        duration_s: length of a random walk.
        seed: of a random walk.

    Raises:
        UnitError: the text is no valid load; the error suggests the closest one.
        ConfigError: the trace cannot be used; it names the line.
    """
    kind, _, rest = text.partition(":")
    if kind == "trace":
        return _trace(text, rest)
    if kind not in FORMS:
        near = nearest(kind, FORMS)
        also = f"such as {FORMS[near]}" if near else f"one of {', '.join(FORMS.values())}"
        raise UnitError("--load", text, f"a load {also}")
    words = rest.split(":") if rest else []
    if len(words) != FORMS[kind].count(":"):
        raise _not_one(text, kind)
    match kind:
        case "steady":
            return Steady(offered)
        case "on-off":
            cycle = _seconds(words[0], 2 * FINEST_S)
            return Pulses(offered, cycle / 2, cycle)
        case "trains":
            cycle = _seconds(words[1], 2 * FINEST_S)
            train = _seconds(words[0], FINEST_S)
            if train > cycle - FINEST_S:
                raise UnitError("--load", text, f"a train shorter than its cycle of {cycle:g} s")
            return Pulses(offered, train, cycle)
    return _between(text, kind, *words, duration_s=duration_s, seed=seed)


def _between(text: str, kind: str, rates: str, time: str, *, duration_s: float, seed: int) -> Load:
    """Return a load between two rates."""
    ends = _DASH.split(rates)
    if len(ends) != 2:
        raise _not_one(text, kind)
    low, high = map(_rate, ends)
    if not low < high:
        raise UnitError("--load", text, "from a lower rate to a higher one")
    if kind == "walk":
        if low == 0:
            raise UnitError("--load", text, "a walk above 0: its steps are shares of the rate")
        step = _seconds(time, FINEST_S)
        if duration_s / step > MOST_STEPS:
            raise UnitError("--load", text, f"a walk of at most {MOST_STEPS} steps in the run")
        return walk(low, high, step, duration_s, seed)
    cycle = _seconds(time, 16 * FINEST_S)
    return Sine(low, high, cycle) if kind == "sine" else Ramp(low, high, cycle)


def _not_one(text: str, kind: str) -> UnitError:
    return UnitError("--load", text, f"written like {FORMS[kind]}")


def _rate(text: str) -> float:
    return 0.0 if text.strip() in {"0", "0pps", "0kpps"} else parse_rate(text, field="--load")


def _seconds(text: str, least: float) -> float:
    seconds = parse_duration(text, field="--load")
    if not least <= seconds <= LONGEST_S:
        raise UnitError("--load", text, f"a time from {least * 1e3:g} ms to {LONGEST_S:g} s")
    return seconds


def _trace(text: str, name: str) -> Steps:
    if not name:
        raise _not_one(text, "trace")
    try:
        if name == "-":
            return parse_trace(_read(sys.stdin.buffer, "standard input"), "standard input")
        with Path(name).open("rb") as stream:
            return parse_trace(_read(stream, name), name)
    except (OSError, ValueError) as error:  # ValueError: a null byte in the path
        problem = getattr(error, "strerror", None) or str(error)
        raise ConfigError("--load", f"{name}: {problem}", "name a file that can be read") from error


def _read(stream: BinaryIO, name: str) -> bytes:
    content = stream.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        fix = f"at most {MAX_BYTES >> 20} MiB: give a part of it, or fewer lines a second"
        raise ConfigError("--load", "too large", fix, at=name)
    return content


def parse_trace(content: bytes, name: str) -> Steps:
    """Parse a trace: the header ``seconds,offered_pps``, then lines of an instant and a rate.

    A rate holds until the next line, the last one until the end; before the first line, nothing is
    sent.

    Raises:
        ConfigError: names the file, the line, and the problem.
    """
    try:
        lines = content.decode("utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        fix = "save it as UTF-8"
        raise ConfigError("--load", "not UTF-8 text", fix, at=f"{name}:{line}") from error
    if not lines or lines[0].replace(" ", "") != HEADER:
        raise ConfigError("--load", "no header", f"begin with {HEADER}", at=f"{name}:1")
    starts, rates = _rows(lines[1:], name)
    if not starts:
        raise ConfigError("--load", "no line after the header", "add one, such as 0,20000", at=name)
    return Steps(starts, rates)


def _rows(lines: Iterable[str], name: str) -> tuple[list[float], list[float]]:
    starts: list[float] = []
    rates: list[float] = []
    for number, line in enumerate(lines, start=2):
        if not line.strip():
            continue
        at = f"{name}:{number}"
        cells = line.split(",")
        if len(cells) != 2:
            fix = "write two numbers, such as 0,20000"
            raise ConfigError("--load", f"{len(cells)} columns", fix, at=at)
        starts.append(_cell(cells[0], "seconds", LONGEST_S, at))
        rates.append(_cell(cells[1], "offered_pps", MAX_RATE, at))
        if len(starts) > 1 and starts[-1] <= starts[-2]:
            problem = f"seconds: {starts[-1]:g} is not after {starts[-2]:g}"
            raise ConfigError("--load", problem, "sort the lines by time", at=at)
    return starts, rates


def _cell(text: str, column: str, most: float, at: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value <= most:
        shown = text.strip()[:40]
        raise ConfigError("--load", f"{column}: {shown!r}", f"write 0 to {most:g}", at=at)
    return value
