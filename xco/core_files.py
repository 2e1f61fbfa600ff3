"""Finds the compiled core: the library of the scheduler and the two programs."""

import os
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from xco.errors import CoreError

VARIABLE: Final = "XCO_CORE"
"""Names a directory of the core that takes precedence."""
LIBRARY: Final = "libxcosched.so"
CLASSIFIER: Final = "gate_classify.bpf.o"
"""The BPF programs; built only where clang is available."""
SHIM: Final = "shim.bpf.o"
"""The BPF programs that count congestion marks; built with the classifier."""
PACKAGE: Final = "xco_core"
BUILD: Final = Path(__file__).parent / "core" / "build"
FIX: Final = "install xco-core, or build it: make -C xco/core"


def library() -> Path:
    """Return the compiled scheduler.

    Raises:
        CoreError: it is not built, or XCO_CORE names a folder without it.
    """
    return _found(LIBRARY)


def program(name: str) -> Path:
    """Return a compiled program: xco-controller or xco-coordinator.

    Raises:
        CoreError: it is not built, is not executable, or XCO_CORE names a folder without it.
    """
    path = _found(name)
    if not os.access(path, os.X_OK):
        raise CoreError(str(path), "may not be executed", "chmod a+x it, or mount without noexec")
    return path


def find(name: str) -> Path | None:
    """Return an optional file of the core, or None."""
    try:
        return _found(name)
    except CoreError:
        return None


def _found(name: str) -> Path:
    if named := os.environ.get(VARIABLE):
        if (path := Path(named, name)).is_file():
            return path
        raise CoreError(f"{VARIABLE}={named}", f"there is no {name}", f"unset it, or {FIX}")
    for folder in _folders():
        if (path := folder / name).is_file():
            return path
    raise CoreError(name, "the compiled core is not built", FIX)


def _folders() -> Iterator[Path]:
    """Yield the possible folders of the core: the installed package's, then the working tree's."""
    if spec := find_spec(PACKAGE):
        yield from map(Path, spec.submodule_search_locations or ())
    yield BUILD
