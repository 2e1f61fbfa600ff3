"""Statistics files as the loops write them, with names from their C sources.

xco/core/common/stats.h has the layout.
"""

import re
import struct
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

CORE = Path(__file__).parents[2] / "xco" / "core"


def controller_names() -> tuple[list[str], list[str]]:
    """Return the controller's fields and its rows' columns."""
    counters, rows = (
        (CORE / "controller/engine/counters.h").read_text().split("XCO_CONTROLLER_ROW(X)")
    )
    fields = re.findall(r"\bX\((\w+)\)", counters.partition("COUNTERS(X)")[2])
    return [*fields, "port", "strategy"], re.findall(r"\bX\((\w+)\)", rows.partition("struct")[0])


def coordinator_names() -> tuple[list[str], list[str]]:
    """Return the coordinator's fields and its rows' columns."""
    text = (CORE / "coordinator/statistics.c").read_text()
    arrays = re.findall(r"(?:FIELDS|COLUMNS)\[\] = \{(.*?)\};", text, re.DOTALL)
    fields, columns = (re.findall(r'"(\w+)"', body) for body in arrays)
    return fields, columns


def write_statistics(
    path: Path,
    names: tuple[list[str], list[str]],
    values: Mapping[str, int],
    rows: Sequence[Mapping[str, int]] = (),
    fresh_s: float = 0.0,
) -> None:
    """Write a file of now, or of a later instant so that it stays fresh; the rest is 0."""
    fields, columns = names
    header = struct.pack(
        "=8sIIIIQQQQQ",
        *(b"XCOSTAT1", len(fields), len(columns), len(rows), 1),
        *(2, time.monotonic_ns() + int(fresh_s * 1e9), len(rows), 0, 0),
    )
    words = b"".join(name.encode().ljust(32, b"\0") for name in [*fields, *columns])
    numbers = [values.get(name, 0) for name in fields]
    numbers += [row.get(name, 0) for row in rows for name in columns]
    path.write_bytes(header + words + struct.pack(f"={len(numbers)}Q", *numbers))
