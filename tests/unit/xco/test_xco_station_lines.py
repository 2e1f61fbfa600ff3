"""What a coordinator reads of a switch's answer to `stations`, line by line."""

import ctypes
import re
import subprocess
from pathlib import Path
from typing import ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

ROOT = Path(__file__).parents[3]
CORE = ROOT / "xco" / "core"
SOURCE = CORE / "coordinator" / "engine" / "station_lines.c"
WRITER = ROOT / "zovn" / "core" / "program" / "stations.c"
FLAGS = ("-std=c17", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-O1", "-fPIC", "-shared")
SANITIZED = ("-fsanitize=undefined", "-fno-sanitize-recover=all")
OTHER, PAGE, STATION, END, REFUSED = range(5)
MAC = bytes.fromhex("525400000002")


class Line(ctypes.Structure):
    """struct xco_station_line."""

    _fields_: ClassVar = [
        ("kind", ctypes.c_int),
        ("next", ctypes.c_uint32),
        ("ethernet", ctypes.c_uint8 * 6),
    ]


@pytest.fixture(scope="module")
def core(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    library = tmp_path_factory.mktemp("lines") / "shim.so"
    command = ["cc", *FLAGS, *SANITIZED, f"-I{CORE}", "-o", library, SOURCE]
    subprocess.run(command, check=True)
    loaded = ctypes.CDLL(str(library))
    loaded.xco_station_line_read.restype = Line
    return loaded


def read(core: ctypes.CDLL, text: str) -> Line:
    return core.xco_station_line_read(ctypes.create_string_buffer(text.encode()))  # type: ignore[no-any-return]


def station(**words: str) -> str:
    given = {"ethernet": MAC.hex(":"), "vlan": "1", "port": "vm1", "kind": "vhost", "static": "0"}
    return " ".join(["station", *(f"{key}={value}" for key, value in (given | words).items())])


def test_the_words_are_those_of_the_switch() -> None:
    said = re.search(r'"(station ethernet=.*)\\n"', WRITER.read_text())
    assert said is not None
    keys = [word.partition("=")[0] for word in said[1].split()]
    assert keys == [word.partition("=")[0] for word in station().split()]
    assert '"stations next=' in WRITER.read_text()


def test_a_station_has_its_address(core: ctypes.CDLL) -> None:
    found = read(core, station())
    assert (found.kind, bytes(found.ethernet)) == (STATION, MAC)
    assert read(core, station() + " later=1").kind == STATION


@pytest.mark.parametrize(
    "text",
    [
        station(kind="wire"),
        station(ethernet="53:54:00:00:00:02"),
        station(ethernet="52:54:00:00:00"),
        station(ethernet="52:54:00:00:00:02:03"),
        "station",
        "",
        " ",
        "later x=1",
    ],
)
def test_what_is_no_station_of_this_host_is_left_out(core: ctypes.CDLL, text: str) -> None:
    assert read(core, text).kind == OTHER


def test_pages_and_ends_are_told_apart(core: ctypes.CDLL) -> None:
    page = read(core, "stations next=4096")
    assert (page.kind, page.next) == (PAGE, 4096)
    assert read(core, "ok").kind == END
    assert read(core, "error stations: no such command").kind == REFUSED


@given(st.text(st.characters(codec="utf-8", exclude_characters="\0\n"), max_size=80))
def test_any_line_is_read(core: ctypes.CDLL, text: str) -> None:
    assert read(core, text).kind in range(5)
    assert read(core, f"station ethernet={text}").kind in {OTHER, STATION}
