"""The page: files that the REST service hands out as they are."""

from pathlib import Path
from typing import Final

STATIC: Final = Path(__file__).parent / "static"
"""The folder to mount at the root."""
