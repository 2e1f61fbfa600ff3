"""Figures of matplotlib, which only plots need, saved with clear errors."""

from pathlib import Path
from typing import TYPE_CHECKING

from xco.errors import ConfigError

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def figure_class() -> "type[Figure]":
    """Return the class of figures.

    Raises:
        ConfigError: matplotlib is not installed.
    """
    try:
        from matplotlib.figure import Figure  # noqa: PLC0415  only plots need it
    except ImportError as error:
        fix = "pip install matplotlib"
        raise ConfigError("", "--plot", "matplotlib is not installed", fix) from error
    return Figure


def save(figure: "Figure", path: Path) -> None:
    """Save a figure in the format of its file name.

    Raises:
        ConfigError: the file cannot be written, or has no such format.
    """
    try:
        figure.savefig(path, dpi=110)
    except (OSError, ValueError) as error:
        fix = "name a file ending in .png or .svg in a folder that can be written"
        raise ConfigError("", "--plot", f"{path}: {error}", fix) from error
