"""Packages, folders and modules import in one direction, along the arrows of the architecture."""

import ast
from collections.abc import Iterator, Mapping
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
ARROWS = {
    "common": set(),
    "models": set(),
    "xtc": {"models", "common"},
    "lab": {"common"},
    "training": {"models", "xtc", "lab", "common"},
    "policer": {"xtc", "models", "common"},
    "xco": {"common"},
    "zovn": {"common"},
}
"""What each package may import; DESIGN's arrows (docs/architecture.md)."""
PARTS = {("policer", "xtc"): {"xtc.wire"}}
"""Where a package may use no more than a part of another."""

Graph = dict[str, set[str]]
"""Names, and those that each of them imports."""


def modules(package: str) -> dict[str, Path]:
    """Return the modules of a package by their dotted names."""
    files = [file for file in (ROOT / package).rglob("*.py") if "core" not in file.parts]
    return {dotted(file): file for file in files}


def dotted(file: Path) -> str:
    parts = file.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(file: Path, known: Mapping[str, Path]) -> Iterator[str]:
    """Yield the modules of ours that a file imports, wherever in it that stands."""
    for node in ast.walk(ast.parse(file.read_bytes())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in known)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: relative imports hide who imports whom"
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield from {inner if inner in known else node.module or ""} & known.keys()


KNOWN = {name: file for package in ARROWS for name, file in modules(package).items()}


@cache
def graph() -> Graph:
    """Return which modules import which; to parse all takes seconds."""
    return {name: {*imports(file, KNOWN)} - {name} for name, file in KNOWN.items()}


def folder(name: str) -> str:
    """Return a module's folder. What stands at the top of a package stands for itself.

    So does an `__init__.py`: it shows to others what the folder and those below it have.
    """
    above, _, _ = name.rpartition(".")
    if KNOWN[name].name == "__init__.py":
        return f"{name}.__init__"
    return above if above.count(".") else name


def folders() -> Graph:
    found: Graph = {}
    for name, used in graph().items():
        found.setdefault(folder(name), set()).update(folder(one) for one in used)
    return {name: used - {name} for name, used in found.items()}


def cycle(graph: Graph) -> list[str]:
    """Return a circle of a graph; empty where there is none."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return [str(name) for name in error.args[1]]
    return []


def test_a_circle_is_found() -> None:
    assert cycle({"a": {"b"}, "b": {"c"}, "c": {"a"}}) != []
    assert cycle({"a": {"b"}, "b": {"c"}, "c": set()}) == []


def test_no_modules_import_each_other() -> None:
    assert cycle(graph()) == []


def test_no_folders_import_each_other() -> None:
    assert cycle(folders()) == []


@pytest.mark.parametrize("package", ARROWS)
def test_a_package_imports_along_the_arrows_alone(package: str) -> None:
    mine = {name: used for name, used in graph().items() if name.split(".")[0] == package}
    assert len(mine) > 1
    against = {
        f"{name} -> {other}"
        for name, used in mine.items()
        for other in used
        if (top := other.split(".")[0]) not in {package, *ARROWS[package]}
        or other not in PARTS.get((package, top), {other})
    }
    assert against == set()
