"""Write files atomically: after a crash a file has its old or its new content."""

import contextlib
import os
from collections.abc import Iterable
from pathlib import Path

from training.errors import OptionError


def write_whole(path: Path, content: bytes) -> None:
    """Write a file.

    Raises:
        OSError: it cannot be written; the old content stays.
    """
    new = path.with_name(f"{path.name}.new")
    try:
        with new.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        new.replace(path)
    except OSError:
        with contextlib.suppress(OSError):  # report the first error
            new.unlink()
        raise


def check_output(output: Path | None, inputs: Iterable[Path]) -> None:
    """Refuse to overwrite an input: a sweep takes minutes.

    Raises:
        OptionError: the output is one of the inputs, by whatever name.
    """
    for path in inputs:
        if output is not None and output.exists() and path.exists() and output.samefile(path):
            fix = "name another file"
            raise OptionError("--output", f"{output} is what is read", fix)
