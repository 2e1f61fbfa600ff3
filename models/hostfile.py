"""Reads model files: one TOML file per host, checked to the last number."""

import difflib
import re
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import msgspec

from models.cost import PacketCost
from models.curve import ThroughputCurve
from models.errors import InvalidModelError, ModelFileError
from models.explain import explain, shown
from models.host import ControlGains, HostModel
from models.logcap import PACKETS_PER_KP, PERCENT_PER_CPU, LogCapModel
from models.schema import (
    NS_PER_S,
    SCHEMA_VERSION,
    US_PER_S,
    CostSection,
    CurveSection,
    GainsSection,
    HostDocument,
    LogModelSection,
    UncertaintySection,
)
from models.uncertainty import Uncertainty

MAX_BYTES = 1 << 16
"""A thousand points take 20 KB; a larger file is no model file."""

MAX_LINE = 2048
"""Characters; tomllib's memory grows with the square of a dotted key, which is on one line."""

_LOCATION = re.compile(r"^(?P<problem>.*) \(at (?P<where>[^()]*)\)$", re.DOTALL)
_FILE_KEYS = {
    "curve.offered": "curve.offered_pps",
    "cap_floor": "loop.cap_floor_percent",
    "cap_step": "loop.cap_step_percent",
    "uncertainty.top": "uncertainty.top_pps",
    "cost.per_packet_s": "cost.per_packet_us",
    "cost.per_byte_s": "cost.per_byte_ns",
}


def load_host(path: Path) -> HostModel:
    """Load one host's model file.

    Raises:
        ModelFileError: the file cannot be read or used; it names the field and the fix.
    """
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:  # ValueError: a null byte in the path
        problem = getattr(error, "strerror", None) or str(error)
        fix = "give the path of a model file that this user may read"
        raise ModelFileError(str(path), "file", problem, fix) from error
    return parse_host(content, str(path))


def bundled_names() -> tuple[str, ...]:
    """Return the names of the bundled hosts."""
    folder = resources.files("models") / "hosts"
    return tuple(sorted(entry.name.removesuffix(".toml") for entry in folder.iterdir()))


@cache
def bundled_host(name: str) -> HostModel:
    """Return a bundled host: ``paper``, ``hinge`` or ``log``.

    Raises:
        ModelFileError: no bundled host has this name.
    """
    known = bundled_names()
    if name not in known:
        close = difflib.get_close_matches(name, known, n=1)
        fix = f"did you mean {close[0]}?" if close else f"bundled hosts: {', '.join(known)}"
        raise ModelFileError(name, "name", "no bundled host has this name", fix)
    file = resources.files("models") / "hosts" / f"{name}.toml"
    return parse_host(file.read_bytes(), file.name)


def paper_host() -> HostModel:
    """Return the paper's host: Table 1, Eq. 1 and both sets of gains."""
    return bundled_host("paper")


def parse_host(content: bytes, source: str) -> HostModel:
    """Parse a model file's content; ``source`` is its name in errors.

    Raises:
        ModelFileError: the content cannot be used; it names the field and the fix.
    """
    if len(content) > MAX_BYTES:
        fix = f"a model file has at most {MAX_BYTES} bytes"
        raise ModelFileError(source, "file", "too large", fix)
    raw = read_tables(content, source)
    _check_version(raw, source)
    try:
        document = msgspec.convert(raw, HostDocument)
    except msgspec.ValidationError as error:
        raise explain(source, raw, error) from error
    return _model(document, source)


def _text(content: bytes, source: str) -> str:
    try:
        # Editors on other systems add a byte order mark, which has no meaning in UTF-8.
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        fix = "save the file as UTF-8 text"
        raise ModelFileError(source, f"byte {error.start}", "not UTF-8", fix) from error
    for number, line in enumerate(text.split("\n"), start=1):
        if len(line) > MAX_LINE:
            problem = f"longer than {MAX_LINE} characters"
            raise ModelFileError(source, f"line {number}", problem, "write one point a line")
    return text


def read_tables(content: bytes, source: str) -> dict[str, Any]:
    """Return the tables of a TOML file's content.

    Raises:
        ModelFileError: it is not UTF-8 or not TOML; it names line and fix.
    """
    text = _text(content, source)
    try:
        return tomllib.loads(text)
    except RecursionError as error:
        fix = "a point is [cap_percent, packets_per_second]"
        raise ModelFileError(source, "file", "brackets nested too deeply", fix) from error
    except ValueError as error:  # TOMLDecodeError, or an integer of thousands of digits
        match = _LOCATION.match(str(error))
        where, problem = (match["where"], match["problem"]) if match else ("file", str(error))
        fix = "write TOML: key = value lines under [table] headers"
        raise ModelFileError(source, where, problem, fix) from error


def _check_version(raw: dict[str, Any], source: str) -> None:
    """Check the version before the keys: keys of another version would look wrong."""
    if not raw:
        fix = "add schema = 1 as the first line, and a [curve] with points"
        raise ModelFileError(source, "schema", "the file holds no keys", fix)
    if "schema" not in raw:
        raise ModelFileError(source, "schema", "missing", "add schema = 1 as the first line")
    version = raw["schema"]
    # True equals 1, and 1.0 does too, but neither is a version.
    if type(version) is not int or version != SCHEMA_VERSION:
        problem = f"this xtc reads version {SCHEMA_VERSION}, not {shown(version)}"
        fix = f"write schema = {SCHEMA_VERSION}, or use the xtc that the file was written for"
        raise ModelFileError(source, "schema", problem, fix)


def _model(document: HostDocument, source: str) -> HostModel:
    """Turn the file's units into packets/s and fractions, and fill in defaults."""
    host, loop = document.host, document.loop
    curve = log_model = cost = None
    if document.curve is not None:
        with _located(source, "curve"):
            curve = _curve(document.curve)
    if document.log_model is not None:
        with _located(source, "log_model"):
            log_model = _log_model(document.log_model)
    if document.cost is not None:
        with _located(source, "cost"):
            cost = _cost(document.cost)
    with _located(source, ""):
        return HostModel(
            name=host.name if host.name is not None else Path(source).stem,
            description=host.description,
            hypervisor=host.hypervisor,
            cpu=host.cpu,
            kernel=host.kernel,
            measured_curve=curve,
            log_model=log_model,
            lag=loop.lag if loop.lag is not None else (log_model.a if log_model else 0.0),
            delay_samples=loop.delay_samples,
            cap_floor=_cap(loop.cap_floor_percent, default=_default_floor(curve)),
            cap_ceiling=_cap(loop.cap_ceiling_percent, default=_default_ceiling(curve)),
            cap_step=loop.cap_step_percent / PERCENT_PER_CPU,
            uncertainty=_uncertainty(document.uncertainty),
            pi=_gains(document.gains.pi),
            dead_beat=_gains(document.gains.dead_beat),
            cost=cost,
        )


def _curve(section: CurveSection) -> ThroughputCurve:
    points = tuple((percent / PERCENT_PER_CPU, rate) for percent, rate in section.points)
    return ThroughputCurve(points, section.offered_pps)


def _log_model(section: LogModelSection) -> LogCapModel:
    return LogCapModel(
        a=section.a,
        b=section.b,
        mean_throughput=section.mean_throughput_kpps,
        mean_log_cap=section.mean_log_cap,
        cap_threshold=section.cap_threshold_percent / PERCENT_PER_CPU,
        offered=section.offered_kpps * PACKETS_PER_KP,
        r_squared=section.r_squared,
    )


def _uncertainty(section: UncertaintySection | None) -> Uncertainty | None:
    if section is None:
        return None
    return Uncertainty(
        noise=section.noise,
        speed_sd=section.speed_sd,
        trend=section.trend,
        intervals=tuple((cap / PERCENT_PER_CPU, low, high) for cap, low, high in section.intervals),
        top=section.top_pps,
        limited_by=section.limited_by,
    )


def _cost(section: CostSection) -> PacketCost:
    return PacketCost(
        section.per_packet_us / US_PER_S, section.per_byte_ns / NS_PER_S, section.reference_bytes
    )


def _gains(section: GainsSection | None) -> ControlGains | None:
    if section is None:
        return None
    return ControlGains(
        kp=section.kp,
        ki=section.ki,
        period=section.period_s,
        dead_zone=section.dead_zone,
        min_cap=section.min_cap_percent / PERCENT_PER_CPU,
    )


def _cap(percent: float | None, *, default: float) -> float:
    return default if percent is None else percent / PERCENT_PER_CPU


def _default_floor(curve: ThroughputCurve | None) -> float:
    """Xen's smallest cap, or less if a smaller one was measured."""
    return min(0.01, curve.points[0][0]) if curve else 0.01


def _default_ceiling(curve: ThroughputCurve | None) -> float:
    """One CPU, or more if a larger cap was measured."""
    return max(1.0, curve.points[-1][0]) if curve else 1.0


@contextmanager
def _located(source: str, table: str) -> Iterator[None]:
    """Add the file's name and field path to errors from checks of the numbers."""
    try:
        yield
    except InvalidModelError as error:
        field = f"{table}.{error.field}" if table else error.field
        field = _FILE_KEYS.get(field, field)
        raise ModelFileError(source, field, error.problem, error.fix) from error
