"""The original cap as an element of a domain's metadata: it travels where the domain goes.

A cap travels with a live migration, and with a guest that is saved and restored. Whoever finds it
there must not take it for the domain's own; the mark says what stood there before xtc.
"""

from collections.abc import Mapping
from typing import Final
from xml.etree import ElementTree as ET

KEY: Final = "xtc"
URI: Final = "urn:xtc:original:1"
_TAG: Final = "original"


def mark_of(original: Mapping[str, int]) -> str:
    """Return the metadata element that says what stood there before."""
    return ET.tostring(ET.Element(_TAG, {k: str(v) for k, v in original.items()}), "unicode")


def original_of(mark: str) -> dict[str, int] | None:
    """Read a mark; None where somebody else wrote it, so that it says nothing."""
    try:
        element = ET.fromstring(mark)  # noqa: S314  the hypervisor's own words
        found = {key: int(value) for key, value in element.attrib.items()}
    except (ET.ParseError, ValueError):
        return None
    return found if element.tag.rpartition("}")[2] == _TAG and found else None
