"""Checks of output files."""

from collections.abc import Iterable
from pathlib import Path

from training.errors import OptionError


def check_output(
    output: Path | None,
    inputs: Iterable[Path],
    *,
    option: str = "--output",
    fix: str = "name another file",
) -> None:
    """Refuse to overwrite an input: a sweep takes minutes.

    Args:
        output: the file to write, if any.
        inputs: the files that are read.
        option: the option that names the output.
        fix: what to do where it is an input.

    Raises:
        OptionError: the output is one of the inputs, by whatever name.
    """
    for path in inputs:
        if output is not None and output.exists() and path.exists() and output.samefile(path):
            raise OptionError(option, f"{output} is what is read", fix)
