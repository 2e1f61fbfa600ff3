"""Checks of output files."""

from collections.abc import Iterable
from pathlib import Path

from training.errors import OptionError


def check_output(output: Path | None, inputs: Iterable[Path]) -> None:
    """Refuse to overwrite an input: a sweep takes minutes.

    Raises:
        OptionError: the output is one of the inputs, by whatever name.
    """
    for path in inputs:
        if output is not None and output.exists() and path.exists() and output.samefile(path):
            fix = "name another file"
            raise OptionError("--output", f"{output} is what is read", fix)
