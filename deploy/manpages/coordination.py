"""xco.toml(5): its keys from the tables' structures, their words from docs/xco.md."""

import re
from typing import Final

import msgspec

from deploy.manpages import roff
from deploy.manpages.configuration import UndocumentedError
from xco.controller_config import ControllerTable
from xco.coordinator_config import CoordinatorTable
from xtc import __version__

DOCUMENT: Final = "docs/xco.md"
TABLES: Final[dict[str, type[msgspec.Struct]]] = {
    "controller": ControllerTable,
    "coordinator": CoordinatorTable,
}
_SETTINGS: Final = "## Settings"
_WEIGHT: Final = "### `[weight]`"
_FENCE: Final = re.compile(
    r"^```toml\n# /etc/xtc/xco.toml\n(?P<body>.*?)^```$", re.DOTALL | re.MULTILINE
)


def page(document: str, date: str) -> str:
    """Return xco.toml(5).

    Raises:
        UndocumentedError: a table has a key that the document does not explain.
    """
    return "".join(
        [
            roff.title("xco.toml", 5, date, __version__),
            roff.heading("Name"),
            r"xco.toml \- settings of xco(8), for controllers and coordinators" + "\n",
            roff.heading("Synopsis"),
            "/etc/xtc/xco.toml\n",
            roff.heading("Description"),
            roff.paragraphs(_prose(document, _SETTINGS)),
            roff.heading("Tables"),
            *(_table(document, name, structure) for name, structure in TABLES.items()),
            roff.subheading("[weight]"),
            roff.paragraphs(_prose(document, _WEIGHT)),
            roff.heading("Example"),
            roff.example(_first_example(document)),
            roff.heading("See also"),
            f"{roff.bold('xco')}(8)\n",
        ]
    )


def _table(document: str, name: str, structure: type[msgspec.Struct]) -> str:
    rows = _rows(_under(document, f"### `[{name}]`"))
    entries = []
    for key in structure.__struct_fields__:
        if key not in rows:
            raise UndocumentedError(f"{name}.{key}", DOCUMENT)
        default, meaning = rows[key]
        words = "required" if default == "required" else f"default {roff.inline(default)}"
        entries.append(roff.entry(roff.bold(key), roff.inline(meaning), f"({words})"))
    return roff.subheading(f"[{name}]") + "".join(entries)


def _rows(text: str) -> dict[str, tuple[str, str]]:
    """Return default and meaning of each key of a table in Markdown."""
    cells = [line.strip("| ").split(" | ") for line in text.splitlines() if line[:1] == "|"]
    return {key.strip("` "): (default, meaning) for key, default, meaning in cells[2:]}


def _under(document: str, heading: str) -> str:
    """Return what stands between a heading and the next."""
    _, _, after = document.partition(f"\n{heading}\n")
    return re.split(r"(?m)^#", after)[0]


def _prose(document: str, heading: str) -> list[str]:
    paragraphs = _under(document, heading).split("\n\n")
    return [" ".join(text.split()) for text in paragraphs if text.strip()]


def _first_example(document: str) -> list[str]:
    """Return the first settings that the document shows.

    Raises:
        ValueError: it shows none.
    """
    if not (found := _FENCE.search(document)):
        raise ValueError(f"{DOCUMENT} has no example of xco.toml")
    return found["body"].splitlines()
