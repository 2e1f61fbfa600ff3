"""Finds the compiled core: the library of the switch, and the program."""

import os
from pathlib import Path
from typing import Final

from zovn.errors import CoreError

VARIABLE: Final = "ZOVN_CORE"
"""Names a directory of the core that takes precedence."""
LIBRARY: Final = "libzovn.so"
PROGRAM: Final = "zovn-switch"
"""Built only where DPDK is: libdpdk-dev."""
BUILD: Final = Path(__file__).parent / "core" / "build"
FIX: Final = "build it: make -C zovn/core"


def library() -> Path:
    """Return the compiled switch.

    Raises:
        CoreError: it is not built, or ZOVN_CORE names a folder without it.
    """
    return _found(LIBRARY, FIX)


def program(name: str = PROGRAM) -> Path:
    """Return a compiled program.

    Raises:
        CoreError: it is not built, or ZOVN_CORE names a folder without it.
    """
    return _found(name, f"install libdpdk-dev and {FIX}")


def _found(name: str, fix: str) -> Path:
    if named := os.environ.get(VARIABLE):
        if (path := Path(named, name)).is_file():
            return path
        raise CoreError(f"{VARIABLE}={named}", f"there is no {name}", f"unset it, or {fix}")
    if (path := BUILD / name).is_file():
        return path
    raise CoreError(name, "the compiled core is not built", fix)
