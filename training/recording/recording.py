"""Results of a sweep: samples, their metadata, and the CSV file that stores both.

A file begins with the metadata, one TOML `key = value` per line after `# `; then come a header and
one row per sample. Rows are only ever appended, so that a sweep can be resumed. A last line without
a newline was cut off by a crash and is ignored: rewrite the file before appending to it. The last
column, the packet size, is present only if it was recorded.
"""

import json
import tomllib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, get_args

import msgspec
from msgspec import Meta

from common.durable import replace_file
from common.suggest import nearest
from models.cost import LARGEST, SMALLEST
from models.curve import MAX_CAP, MAX_RATE
from training.errors import RecordingError, SampleError

Phase = Literal["uncapped", "steady", "step", "held_out", "load", "settling"]
"""Purpose of a sample: steady ones show the curve, steps the dynamics, held-out ones test both.

Settling ones follow a change of cap, before it is steady; they show the dynamics, too.
"""

PHASES: tuple[Phase, ...] = get_args(Phase)
COLUMNS = ("at_s", "cap", "throughput_pps", "offered_pps", "used", "binding", "phase", "visit")
SIZED_COLUMNS = (*COLUMNS, "packet_bytes")
"""The columns with a packet size."""
UNCAPPED = "uncapped"
"""Value of the cap's column for an uncapped router; 0 would be a cap."""

MAX_BYTES = 1 << 24
"""A sweep of an hour takes 1 MB; a larger file is not a recording."""
MOST_LINES = 40
"""Lines of metadata; there are a dozen keys."""
LONGEST_LINE = 6100
"""Characters of such a line: tomllib's memory grows with the square of a dotted key. A text of
1,000 characters may take 6,000, escaped."""
LONGEST = 1e9
"""Seconds; a longer sweep is a typing error."""
_FLAGS = {"": None, "true": True, "false": False}
_EXPECTED = {
    "cap": f"give CPUs, or {UNCAPPED}",
    "binding": "give true, false or nothing",
    "packet_bytes": "give whole bytes, or nothing",
}

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One period of the router.

    Raises:
        SampleError: a number is not finite or out of bounds.
    """

    at: float
    """Seconds since the sweep began, at the end of the period."""
    cap: float | None
    """The cap in force, in CPUs; None if the router was uncapped."""
    throughput_pps: float
    offered_pps: float | None = None
    """Offered load in packets/s, if known."""
    used: float | None = None
    """CPUs used on average, if the platform counts them."""
    binding: bool | None = None
    """Whether the cap limited the router; None if the platform does not report it."""
    phase: Phase = "steady"
    visit: int = 0
    """Index of the visit; the samples of one visit follow one change of cap."""
    packet_bytes: int | None = None
    """Bytes of each packet's Ethernet frame without its checksum, if recorded."""

    def __post_init__(self) -> None:
        _require("at_s", self.at, 0.0, LONGEST, "give seconds since the sweep began")
        if self.cap is not None:
            _require("cap", self.cap, 1e-9, MAX_CAP, f"give CPUs above 0, or {UNCAPPED}")
        _require("throughput_pps", self.throughput_pps, 0.0, MAX_RATE, "give packets/s")
        if self.offered_pps is not None:
            _require("offered_pps", self.offered_pps, 0.0, MAX_RATE, "give packets/s, or nothing")
        if self.used is not None:
            _require("used", self.used, 0.0, MAX_CAP, "give CPUs, or nothing")
        _phase(self.phase)
        if self.visit < 0:
            raise SampleError("visit", f"{self.visit}", "count from 0")
        if self.packet_bytes is not None:
            fix = "give bytes of the frame, or nothing"
            _require("packet_bytes", self.packet_bytes, SMALLEST, LARGEST, fix)


_Text = Annotated[str, Meta(max_length=1000)]
_Rate = Annotated[float, Meta(gt=0, le=MAX_RATE)]


class Metadata(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The measured host, and the method."""

    host: Annotated[str, Meta(min_length=1, max_length=100)]
    cpu: _Text = ""
    kernel: _Text = ""
    hypervisor: _Text = ""
    actuator: _Text = ""
    router: _Text = ""
    period_s: Annotated[float, Meta(gt=0, le=3600)] = 1.0
    """Seconds from one sample to the next."""
    started: _Text = ""
    """When the sweep began, ISO 8601."""
    xtc_version: _Text = ""
    offered_pps: _Rate | None = None
    """Offered load in packets/s; None if it was not controlled."""
    packet_bytes: Annotated[int, Meta(ge=SMALLEST, le=LARGEST)] | None = None
    """Bytes of a packet's frame without its checksum, of the whole curve; None if unknown."""


@dataclass(frozen=True, slots=True)
class Recording:
    """A sweep, complete or partial."""

    metadata: Metadata
    samples: tuple[Sample, ...]


def is_sized(recording: Recording) -> bool:
    """Whether the recording's file has a column for the packet size."""
    sized = any(sample.packet_bytes is not None for sample in recording.samples)
    return sized or recording.metadata.packet_bytes is not None


def csv_head(metadata: Metadata, *, sized: bool = False) -> str:
    """Return the head of a file, before any row."""
    values = msgspec.to_builtins(metadata)
    lines = [f"# {key} = {_toml(value)}" for key, value in values.items() if value is not None]
    return "\n".join([*lines, ",".join(SIZED_COLUMNS if sized else COLUMNS)]) + "\n"


def csv_row(sample: Sample, *, sized: bool = False) -> str:
    """Return a sample's line, newline included; a sweep only appends it to the file."""
    binding = "" if sample.binding is None else str(sample.binding).lower()
    cells: tuple[str, ...] = (
        *(repr(float(sample.at)), UNCAPPED if sample.cap is None else repr(float(sample.cap))),
        *(repr(float(sample.throughput_pps)), _optional(sample.offered_pps)),
        *(_optional(sample.used), binding, sample.phase, str(sample.visit)),
    )
    if sized:
        cells += ("" if sample.packet_bytes is None else str(sample.packet_bytes),)
    return ",".join(cells) + "\n"


def write_csv(recording: Recording, path: Path) -> None:
    """Write a recording atomically: after a crash the file has its old or its new content.

    Raises:
        RecordingError: the file cannot be written.
    """
    sized = is_sized(recording)
    rows = (csv_row(sample, sized=sized) for sample in recording.samples)
    text = csv_head(recording.metadata, sized=sized) + "".join(rows)
    try:
        replace_file(path, text.encode(), durable=True)
    except OSError as error:
        raise _unusable(path, error, "give a path that this user may write") from error


def append_csv(sample: Sample, path: Path, *, sized: bool = False) -> None:
    """Append a sample to a file that `write_csv` began.

    Raises:
        RecordingError: the file cannot be written.
    """
    try:
        with path.open("a", encoding="utf-8") as file:
            file.write(csv_row(sample, sized=sized))
    except OSError as error:
        raise _unusable(path, error, "give a path that this user may write") from error


def read_csv(path: Path) -> Recording:
    """Read a recording.

    Raises:
        RecordingError: the file cannot be read or used; it names line, column and fix.
    """
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise _unusable(path, error, "give the path of a recording that exists") from error
    if len(content) > MAX_BYTES:
        raise RecordingError(str(path), 0, "file", "too large", "give a recording of a sweep")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise RecordingError(str(path), 0, "file", "not UTF-8", "save it as UTF-8") from error
    return parse_csv(text, str(path))


def parse_csv(text: str, source: str) -> Recording:
    """Read a recording's text; ``source`` is its name in errors.

    Raises:
        RecordingError: the text cannot be used; it names line, column and fix.
    """
    lines = text.replace("\r\n", "\n").split("\n")[:-1]
    if not lines:
        fix = "give a recording of a sweep, or remove the file and sweep again"
        raise RecordingError(source, 0, "file", "no whole line" if text else "empty", fix)
    head = next((i for i, line in enumerate(lines) if not line.startswith("#")), len(lines))
    _check_head(lines[:head], source)
    metadata = _metadata(lines[:head], source)
    columns = tuple(lines[head].split(",")) if head < len(lines) else ()
    if columns not in {COLUMNS, SIZED_COLUMNS}:
        fix = f"the header is {','.join(COLUMNS)}, and may end with ,packet_bytes"
        raise RecordingError(source, head + 1, "header", "missing or another", fix)
    rows = enumerate(lines[head + 1 :], start=head + 2)
    return Recording(metadata, tuple(_samples(rows, columns, source)))


def _samples(
    rows: Iterable[tuple[int, str]], columns: Sequence[str], source: str
) -> Iterator[Sample]:
    latest = 0.0
    for number, line in rows:
        if not line.strip():
            continue
        sample = _sample(line, columns, number, source)
        if sample.at < latest:
            fix = "keep rows in the order of their time"
            raise RecordingError(source, number, "at_s", f"{sample.at:g} after {latest:g}", fix)
        latest = sample.at
        yield sample


def _sample(line: str, columns: Sequence[str], number: int, source: str) -> Sample:
    cells = [cell.strip() for cell in line.split(",")]
    if len(cells) != len(columns):
        problem = f"{len(cells)} cells under {len(columns)} columns"
        raise RecordingError(source, number, "row", problem, "remove or correct the line")
    row = _Row(dict(zip(columns, cells, strict=True)), number, source)
    try:
        return Sample(
            at=row.read("at_s", float),
            cap=None if row.cells["cap"] == UNCAPPED else row.read("cap", float),
            throughput_pps=row.read("throughput_pps", float),
            offered_pps=row.read("offered_pps", float) if row.cells["offered_pps"] else None,
            used=row.read("used", float) if row.cells["used"] else None,
            binding=row.read("binding", _FLAGS.__getitem__),
            phase=_phase(row.cells["phase"]),
            visit=row.read("visit", int),
            packet_bytes=row.read("packet_bytes", int) if row.cells.get("packet_bytes") else None,
        )
    except SampleError as error:
        raise RecordingError(source, number, error.field, error.problem, error.fix) from error


@dataclass(frozen=True, slots=True)
class _Row:
    """One line's cells, and their position."""

    cells: dict[str, str]
    number: int
    source: str

    def read(self, column: str, convert: Callable[[str], T]) -> T:
        try:
            return convert(self.cells[column])
        except (ValueError, KeyError) as error:
            problem = f"{self.cells[column][:40]!r} cannot be read"
            fix = _EXPECTED.get(column, "give a number")
            raise RecordingError(self.source, self.number, column, problem, fix) from error


def _phase(text: str) -> Phase:
    for phase in PHASES:
        if text == phase:
            return phase
    raise SampleError("phase", f"{text[:40]!r}", f"give one of {', '.join(PHASES)}")


def _check_head(lines: list[str], source: str) -> None:
    if len(lines) > MOST_LINES:
        problem, fix = f"more than {MOST_LINES} lines", "write one line for each key"
        raise RecordingError(source, MOST_LINES + 1, "metadata", problem, fix)
    for number, line in enumerate(lines, start=1):
        if len(line) > LONGEST_LINE:
            problem, fix = f"{len(line)} characters", f"give at most {LONGEST_LINE}"
            raise RecordingError(source, number, "metadata", problem, fix)


def _metadata(lines: list[str], source: str) -> Metadata:
    values: dict[str, Any] = {}
    where = dict[str, int]()
    for number, line in enumerate(lines, start=1):
        fix = "write `# key = value`, the value as in TOML"
        try:
            found = tomllib.loads(line.removeprefix("#"))
        except (ValueError, RecursionError) as error:
            raise RecordingError(source, number, "metadata", "not TOML", fix) from error
        for key in found.keys() & where.keys():
            problem = f"given before, on line {where[key]}"
            raise RecordingError(source, number, key, problem, "remove one of the two lines")
        values |= found
        where |= dict.fromkeys(found, number)
    try:
        return msgspec.convert(values, Metadata)
    except msgspec.ValidationError as error:
        raise _wrong_metadata(source, where, error) from error


def _wrong_metadata(
    source: str, where: dict[str, int], error: msgspec.ValidationError
) -> RecordingError:
    """Find the key in msgspec's message, its line, and the likely intended key."""
    problem = str(error)
    if "host" not in where and "missing required field `host`" in problem:
        fix = 'begin the file with the line `# host = "..."`'
        return RecordingError(source, 1, "host", "is not given", fix)
    key = next((key for key in where if f"`{key}`" in problem or f".{key}`" in problem), "metadata")
    known = nearest(key, Metadata.__struct_fields__)
    fix = f"did you mean {known}?" if known and known != key else "correct or remove the line"
    return RecordingError(source, where.get(key, 0), key, problem, fix)


def _toml(value: str | float) -> str:
    """Return the value as TOML; JSON escapes text the same way but for DEL."""
    if isinstance(value, int):
        return str(value)
    text = json.dumps(value, ensure_ascii=False) if isinstance(value, str) else repr(float(value))
    return text.replace("\x7f", "\\u007f")


def _optional(value: float | None) -> str:
    return "" if value is None else repr(float(value))


def _require(field: str, value: float, least: float, most: float, fix: str) -> None:
    if not least <= value <= most:
        raise SampleError(field, f"{value:g} is not within {least:g} to {most:g}", fix)


def _unusable(path: Path, error: OSError, fix: str) -> RecordingError:
    return RecordingError(str(path), 0, "file", error.strerror or str(error), fix)
