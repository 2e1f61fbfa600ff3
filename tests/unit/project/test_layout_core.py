"""Files of each compiled core include each other in one direction only."""

import re
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Final

import pytest

Arrows = Mapping[str, frozenset[str]]
ROOT: Final = Path(__file__).parents[3]
XCO: Final[Arrows] = {
    "common": frozenset(),
    "scheduler": frozenset(),
    "qdisc": frozenset({"common"}),
    "shim": frozenset({"common"}),
    "controller/engine": frozenset({"common", "scheduler"}),
    "controller": frozenset({"common", "controller/engine", "qdisc/maps.h"}),
    "coordinator/engine": frozenset({"common", "qdisc"}),
    "coordinator": frozenset({"common", "coordinator/engine", "qdisc", "shim"}),
    "tools": frozenset({"common", "scheduler", "shim"}),
}
"""Folders, each with the folders and files of others that it may include."""
ZOVN: Final[Arrows] = {
    "rings": frozenset(),
    "ports": frozenset({"rings"}),
    "switch": frozenset({"ports/port.h"}),
    "system": frozenset(),
    "forward": frozenset({"switch/settings.h", "switch/switch.h", "system"}),
    "vhost": frozenset({"forward", "ports", "rings", "system"}),
    "program": frozenset(
        {
            *("forward", "switch/settings.h", "system", "vhost"),
            *("tap/tap_port.h", "veth/veth_port.h", "wire/wire_port.h"),
        }
    ),
    "veth": frozenset({"ports/port.h", "system/dropped.h"}),
    "tap": frozenset({"ports/port.h", "system/dropped.h"}),
    "wire": frozenset({"ports/port.h", "switch/pace.h"}),
    "tools": frozenset({"forward", "ports", "switch/switch.h", "veth", "wire"}),
}
SIMULATOR: Final[Arrows] = {"": frozenset()}
CORES: Final = [
    (ROOT / "xco" / "core", XCO, 100),
    (ROOT / "zovn" / "core", ZOVN, 80),
    (ROOT / "zovn" / "core" / "simulate", SIMULATOR, 20),
]
"""Each with its arrows, and the least number of its files."""
INCLUDE: Final = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)


def includes(core: Path, arrows: Arrows) -> dict[str, list[str]]:
    """Return what each file below the folders includes with quotes, by path from `core`."""
    files = (path for folder in arrows for path in (core / folder).glob("*.[ch]"))
    return {
        path.relative_to(core).as_posix(): INCLUDE.findall(path.read_text())
        for path in sorted(files)
    }


def unit(file: str) -> str:
    """Return the name that a .c file shares with its header."""
    return file.rpartition(".")[0]


def folder(file: str) -> str:
    """Return the folder of a file."""
    return file.rpartition("/")[0]


def cycle(graph: Mapping[str, set[str]]) -> str:
    """Return a circle of a graph, or nothing."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return " -> ".join(error.args[1])
    return ""


def graph_of(found: Mapping[str, list[str]], name: Mapping[str, str]) -> dict[str, set[str]]:
    """Return who includes whom, files being named by `name`; none includes itself."""
    graph: dict[str, set[str]] = {name[file]: set() for file in found}
    for file, others in found.items():
        graph[name[file]] |= {name[other] for other in others if other in name}
    return {node: others - {node} for node, others in graph.items()}


def complaints(core: Path, arrows: Arrows) -> Iterator[str]:
    """Say what in a tree is against the layout."""
    found = includes(core, arrows)
    for file, others in found.items():
        for other in others:
            if other not in found:
                yield f"{file}: no such file in the core: {other}"
            elif (
                folder(other) != folder(file) and not {other, folder(other)} & arrows[folder(file)]
            ):
                yield f"{file}: {folder(file)} must not include {other}"
    for name in (unit, folder):
        circle = cycle(graph_of(found, {file: name(file) for file in found}))
        if circle:
            yield f"circle of {name.__name__}s: {circle}"


@pytest.mark.parametrize(("core", "arrows", "least"), CORES)
def test_files_of_a_core_include_in_one_direction(core: Path, arrows: Arrows, least: int) -> None:
    assert list(complaints(core, arrows)) == []
    assert len(includes(core, arrows)) > least


@pytest.mark.parametrize(("core", "arrows", "least"), CORES)
def test_every_file_of_a_core_is_in_a_folder_of_the_layout(
    core: Path, arrows: Arrows, least: int
) -> None:
    skipped = {"build", "xco_core", "simulate"}
    sources = {
        path.relative_to(core).as_posix()
        for path in core.rglob("*.[ch]")
        if path.relative_to(core).parts[0] not in skipped
    }
    assert sources == set(includes(core, arrows))
    assert len(sources) > least


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({"qdisc/a.c": "common/b.h", "common/b.h": ""}, ""),
        ({"qdisc/a.c": "b.h", "qdisc/b.h": ""}, "qdisc/a.c: no such file in the core: b.h"),
        (
            {"common/a.c": "qdisc/b.h", "qdisc/b.h": ""},
            "common/a.c: common must not include qdisc/b.h",
        ),
        (
            {"qdisc/a.c": "qdisc/b.h", "qdisc/a.h": "", "qdisc/b.h": "", "qdisc/b.c": "qdisc/a.h"},
            "circle of units: ",
        ),
        (
            {
                "common/a.c": "qdisc/b.h",
                "qdisc/b.h": "",
                "qdisc/c.c": "common/d.h",
                "common/d.h": "",
            },
            "circle of folders: ",
        ),
    ],
)
def test_what_is_against_the_layout_is_found(
    tmp_path: Path, files: dict[str, str], said: str
) -> None:
    for name, other in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(f'#include "{other}"\n' if other else "")
    found = list(complaints(tmp_path, XCO))
    assert any(one.startswith(said) for one in found) if said else found == []
