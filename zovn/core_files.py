"""Finds the compiled core: the library of the switch."""

import os
from pathlib import Path
from typing import Final

from zovn.errors import CoreError

VARIABLE: Final = "ZOVN_CORE"
"""Names a directory of the core that takes precedence."""
LIBRARY: Final = "libzovn.so"
BUILD: Final = Path(__file__).parent / "core" / "build"
FIX: Final = "build it: make -C zovn/core"


def library() -> Path:
    """Return the compiled switch.

    Raises:
        CoreError: it is not built, or ZOVN_CORE names a folder without it.
    """
    if named := os.environ.get(VARIABLE):
        if (path := Path(named, LIBRARY)).is_file():
            return path
        raise CoreError(f"{VARIABLE}={named}", f"there is no {LIBRARY}", f"unset it, or {FIX}")
    if (path := BUILD / LIBRARY).is_file():
        return path
    raise CoreError(LIBRARY, "the compiled core is not built", FIX)
