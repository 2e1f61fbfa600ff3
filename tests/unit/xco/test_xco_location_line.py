"""What a coordinator that starts reads of the file of locations, line by line."""

import ctypes
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xco.coordinator.locations import render

ROOT = Path(__file__).parents[3]
CORE = ROOT / "xco" / "core"
SOURCE = CORE / "coordinator" / "engine" / "location_line.c"
FLAGS = ("-std=c17", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-O1", "-fPIC", "-shared")
SANITIZED = ("-fsanitize=undefined", "-fno-sanitize-recover=all")
STATION = bytes.fromhex("525400000002")
HOST = bytes(10) + b"\xff\xff" + bytes([10, 0, 0, 2])


@pytest.fixture(scope="module")
def core(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    library = tmp_path_factory.mktemp("line") / "shim.so"
    command = ["cc", *FLAGS, *SANITIZED, f"-I{CORE}", "-o", library, SOURCE]
    subprocess.run(command, check=True)
    loaded = ctypes.CDLL(str(library))
    loaded.xco_location_line_read.restype = ctypes.c_bool
    return loaded


def read(core: ctypes.CDLL, line: str) -> tuple[bytes, bytes] | None:
    """Return a station and its host; None: the line names none."""
    ethernet, host = ctypes.create_string_buffer(6), ctypes.create_string_buffer(16)
    text = ctypes.create_string_buffer(line.encode())
    found = core.xco_location_line_read(text, ethernet, host)
    return (ethernet.raw, host.raw) if found else None


def test_what_the_coordinator_writes_is_read(core: ctypes.CDLL) -> None:
    text = render({1: "10.0.0.2"}, {int.from_bytes(STATION, "big"): 1})
    lines = text.splitlines(keepends=True)
    assert [read(core, line) for line in lines] == [None, (STATION, HOST)]


@pytest.mark.parametrize(
    "line",
    [
        "",
        "\n",
        "host 10.0.0.2",
        "station",
        "station 52:54:00:00:00:02",
        "station 53:54:00:00:00:02 10.0.0.2",
        "station 52:54:00:00:00 10.0.0.2",
        "station 52:54:00:00:00:02 10.0.0.256",
        "station 52:54:00:00:00:02 ::1",
        "station 52:54:00:00:00:02 10.0.0.2 more",
        "stations 52:54:00:00:00:02 10.0.0.2",
    ],
)
def test_other_lines_name_no_station(core: ctypes.CDLL, line: str) -> None:
    assert read(core, line) is None


@given(st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=80))
def test_any_line_is_read(core: ctypes.CDLL, text: str) -> None:
    read(core, text)
    read(core, f"station {text}")
