"""xtc.toml(5): keys from the schema, descriptions from docs/reference/configuration.md."""

import re
from collections.abc import Iterator
from typing import NamedTuple, get_args

import msgspec

from common import __version__
from deploy.manpages import roff
from xtc.config.schema import Config, RouterSection
from xtc.spec import ActuatorSpec

ACTUATOR = "actuator"
SYNTAX = (
    "TOML. `xtc config check` finds mistakes, `xtc config show` prints what is in force. A key "
    "that is not listed here is an error, and so is a value of the wrong type."
)
RELOAD = (
    "SIGHUP to the daemon (`systemctl reload xtc`) reads the `[router]` tables, `daemon.floors`, "
    "`daemon.max_release_share` and `limiter.shield` again; the rest takes effect at the start."
)
_HEADING = re.compile(r"^#+ `\[?(?P<table>[\w.]+)\]?`")
_FENCE = re.compile(r"^```toml\n(?P<body>.*?)^```$", re.DOTALL | re.MULTILINE)


class Row(NamedTuple):
    """Description of one key in the document."""

    kind: str
    """Type, unit and range."""
    default: str
    meaning: str


class UndocumentedError(Exception):
    """A key of the schema has no row in the document that explains it."""

    def __init__(self, key: str, document: str = "docs/reference/configuration.md") -> None:
        super().__init__(f"{document} does not explain {key}")


def page(document: str, date: str) -> str:
    """Return xtc.toml(5).

    Raises:
        UndocumentedError: the schema has a key that the document does not explain.
    """
    rows = rows_of(document)
    return "".join(
        [
            roff.title("xtc.toml", 5, date, __version__),
            roff.heading("Name"),
            r"xtc.toml \- configuration of xtc(8)" + "\n",
            roff.heading("Synopsis"),
            "/etc/xtc/xtc.toml\n.br\n/etc/xtc/conf.d/*.toml\n",
            roff.heading("Description"),
            roff.paragraphs((SYNTAX, RELOAD)),
            roff.subheading("Drop-ins"),
            roff.paragraphs(_prose(document, "## Drop-ins")),
            roff.subheading("Quantities"),
            *_quantities(document),
            roff.heading("Tables"),
            *(_section(rows, *table) for table in tables()),
            roff.heading("Actuators"),
            roff.paragraphs(("Where a cap goes. `kind` comes first; each kind has its own keys.",)),
            *(_section(rows, *table) for table in actuators()),
            roff.heading("Example"),
            roff.example(_last_example(document)),
            roff.heading("See also"),
            f"{roff.bold('xtc')}(8)\n",
        ]
    )


def tables() -> Iterator[tuple[str, type[msgspec.Struct]]]:
    """Yield each table's name and structure."""
    for field in msgspec.structs.fields(Config):
        section = RouterSection if field.name == "router" else field.type
        yield field.name, section


def actuators() -> Iterator[tuple[str, type[msgspec.Struct]]]:
    """Yield each kind of actuator and its structure."""
    for structure in get_args(ActuatorSpec):
        yield f"{ACTUATOR}.{structure.__struct_config__.tag}", structure


def rows_of(document: str) -> dict[str, Row]:
    """Return the rows of the document's tables, by `table.key` or `actuator.kind.key`."""
    rows: dict[str, Row] = {}
    table = kind = ""
    for line in document.splitlines():
        if line.startswith("#"):
            match = _HEADING.match(line)
            table = match["table"].partition(".")[0] if match else ""
        if table and line.startswith("| "):
            cells = [cell.strip() for cell in line.strip("|").split(" | ")]
            if table == ACTUATOR:
                kind = cells.pop(0).strip("` ") or kind
            place = f"{table}.{kind}" if table == ACTUATOR else table
            rows[f"{place}.{cells[0].strip('` ')}"] = _row(cells)
    return rows


def _row(cells: list[str]) -> Row:
    _, kind, *default, meaning = cells
    return Row(kind, default[0] if default else "", meaning.strip(" |"))


def _section(rows: dict[str, Row], name: str, structure: type[msgspec.Struct]) -> str:
    kind = name.removeprefix(f"{ACTUATOR}.")
    shown = f'{{ kind = "{kind}", ... }}' if kind != name else f"[{_shown(name)}]"
    return roff.subheading(shown.replace('"', "")) + "".join(
        _entry(rows, f"{name}.{field.name}", field.name)
        for field in msgspec.structs.fields(structure)
    )


def _shown(table: str) -> str:
    return "router.NAME" if table == "router" else table


def _entry(rows: dict[str, Row], where: str, key: str) -> str:
    if where not in rows:
        raise UndocumentedError(where)
    row = rows[where]
    default = "required" if row.default == "required" else f"default {roff.inline(row.default)}"
    return roff.entry(
        roff.bold(key), roff.inline(row.meaning), f"({roff.inline(row.kind)}; {default})"
    )


def _prose(document: str, heading: str) -> list[str]:
    """Return the paragraphs under a heading, without its tables and examples."""
    blocks = (text for text in _under(document, heading).split("\n\n"))
    return [" ".join(text.split()) for text in blocks if text.strip() and text.strip()[0] != "|"]


def _quantities(document: str) -> list[str]:
    """Return the document's description of each kind of quantity."""
    lines = [line for line in _under(document, "## Quantities").splitlines() if line[:1] == "|"]
    cells = [[cell.strip() for cell in line.strip("| ").split(" | ")] for line in lines[2:]]
    return [
        roff.entry(kind, roff.inline(f"as text: {text}"), roff.inline(f"as a number: {number}"))
        for kind, text, number in cells
    ]


def _under(document: str, heading: str) -> str:
    """Return the text between a heading and the next, without examples."""
    _, _, after = re.sub(r"(?ms)^```.*?^```$", "", document).partition(f"{heading}\n")
    return re.split(r"(?m)^#", after)[0]


def _last_example(document: str) -> list[str]:
    *_, last = _FENCE.finditer(document)
    return last["body"].splitlines()
