"""The original cap as an element of a domain's metadata: it migrates with the domain.

A cap survives live migration, and save and restore of a guest. Another xtc must not mistake it for
the domain's own; the mark contains the original.
"""

from collections.abc import Mapping
from typing import Final
from xml.etree import ElementTree as ET

KEY: Final = "xtc"
URI: Final = "urn:xtc:original:1"
_TAG: Final = "original"


def mark_of(original: Mapping[str, int]) -> str:
    """Return the metadata element that contains the original."""
    return ET.tostring(ET.Element(_TAG, {k: str(v) for k, v in original.items()}), "unicode")


def original_of(mark: str) -> dict[str, int] | None:
    """Parse a mark; None if another program wrote it."""
    try:
        element = ET.fromstring(mark)  # noqa: S314  the hypervisor's own words
        found = {key: int(value) for key, value in element.attrib.items()}
    except (ET.ParseError, ValueError):
        return None
    return found if element.tag.rpartition("}")[2] == _TAG and found else None
