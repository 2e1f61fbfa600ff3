"""Man pages of settings: keys from the structures, descriptions from the documents."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

import msgspec

from common import __version__
from deploy.manpages import roff
from deploy.manpages.configuration import UndocumentedError
from policer.config import schema as policers
from xco.controller.config import ControllerTable
from xco.coordinator.config import CoordinatorTable
from xco.ports.config import AgentTable
from xco.ports.port_tables import TABLES as READERS
from zovn.switch.config import ClassTable, SwitchTable
from zovn.switch.port_table import PortTable
from zovn.switch.wire_table import WireTable


@dataclass(frozen=True, slots=True)
class Settings:
    """A file of settings, and the document that explains it."""

    program: str
    purpose: str
    document: str
    tables: Mapping[str, type[msgspec.Struct]]
    """By their names in the document's headings."""
    free: tuple[str, ...] = ()
    """Tables with the administrator's names as keys, which the document describes in prose."""


class Row(NamedTuple):
    """Description of one key in a document."""

    kind: str
    """Type, unit and range; empty if the default shows it."""
    default: str
    meaning: str


POLICER: Final = Settings(
    "policer",
    "settings of policer(8)",
    "docs/howto/policer.md",
    {
        "[server]": policers.ServerSection,
        "[oidc]": policers.OidcSection,
        "[[oidc.grants]]": policers.GrantSection,
        "[store]": policers.StoreSection,
        "[link]": policers.LinkSection,
        "[lease]": policers.LeaseSection,
        "[policy]": policers.PolicySection,
        "[policy.engagement]": policers.EngagementSection,
        "[policy.rules]": policers.RulesSection,
        "[policy.escalation]": policers.EscalationSection,
        "[history]": policers.HistorySection,
        "[webhooks]": policers.WebhooksSection,
        "[log]": policers.LogSection,
    },
)
XCO: Final = Settings(
    "xco",
    "settings of xco(8), for controllers, coordinators and port agents",
    "docs/howto/xco.md",
    {
        "[controller]": ControllerTable,
        "[coordinator]": CoordinatorTable,
        "[port-agent]": AgentTable,
        **{f'[[port-agent.port]], reader = "{name}"': table for name, table in READERS.items()},
    },
    ("[weight]",),
)
ZOVN: Final = Settings(
    "zovn",
    "settings of zovn(8)",
    "docs/howto/zovn.md",
    {
        "[switch]": SwitchTable,
        "[switch.classes.N]": ClassTable,
        "[[switch.port]]": PortTable,
        "[switch.port.wire]": WireTable,
    },
)


def page(settings: Settings, document: str, date: str) -> str:
    """Return the page (section 5) of a file of settings.

    Raises:
        UndocumentedError: a table has a key that the document does not explain.
        ValueError: the document has no example.
    """
    name = f"{settings.program}.toml"
    return "".join(
        [
            roff.title(name, 5, date, __version__),
            roff.heading("Name"),
            rf"{name} \- {settings.purpose}" + "\n",
            roff.heading("Synopsis"),
            f"/etc/xtc/{name}\n",
            roff.heading("Description"),
            roff.paragraphs(_prose(document, "## Settings")),
            roff.heading("Tables"),
            *(_table(settings, document, table) for table in settings.tables),
            *(_told(document, table) for table in settings.free),
            roff.heading("Example"),
            roff.example(_first_example(settings, document)),
            roff.heading("See also"),
            f"{roff.bold(settings.program)}(8)\n",
        ]
    )


def keys(settings: Settings, table: str) -> list[str]:
    """Return a table's keys, without those that are tables of their own."""
    inner = {f"{table.strip('[]')}.{key}": key for key in _fields(settings, table)}
    apart = {name.strip("[]") for name in settings.tables}
    return [key for name, key in inner.items() if name not in apart]


def _fields(settings: Settings, table: str) -> tuple[str, ...]:
    return settings.tables[table].__struct_encode_fields__


def _told(document: str, table: str) -> str:
    return roff.subheading(table) + roff.paragraphs(_prose(document, f"### `{table}`"))


def _table(settings: Settings, document: str, table: str) -> str:
    rows = _rows(_under(document, f"### `{table}`"))
    entries = []
    for key in keys(settings, table):
        if key not in rows:
            raise UndocumentedError(f"{table.strip('[]')}.{key}", settings.document)
        entries.append(_entry(key, rows[key]))
    return _told(document, table) + "".join(entries)


def _entry(key: str, row: Row) -> str:
    default = "required" if row.default == "required" else f"default {roff.inline(row.default)}"
    told = f"{roff.inline(row.kind)}; {default}" if row.kind else default
    return roff.entry(roff.bold(key), roff.inline(row.meaning), f"({told})")


def _rows(text: str) -> dict[str, Row]:
    """Return the description of each key from a table in Markdown."""
    cells = [line.strip("| ").split(" | ") for line in text.splitlines() if line[:1] == "|"]
    return {
        key.strip("` "): Row("".join(kind), default, meaning)
        for key, *kind, default, meaning in cells[2:]
    }


def _under(document: str, heading: str) -> str:
    """Return the text between a heading and the next, without examples."""
    _, _, after = re.sub(r"(?ms)^```.*?^```$", "", document).partition(f"\n{heading}\n")
    return re.split(r"(?m)^#", after)[0]


def _prose(document: str, heading: str) -> list[str]:
    """Return the paragraphs under a heading, without its tables."""
    blocks = (text.strip() for text in _under(document, heading).split("\n\n"))
    return [" ".join(text.split()) for text in blocks if text and text[0] != "|"]


def _first_example(settings: Settings, document: str) -> list[str]:
    """Return the document's first example of settings.

    Raises:
        ValueError: it has none.
    """
    begin = re.escape(f"```toml\n# /etc/xtc/{settings.program}.toml\n")
    if not (found := re.search(f"(?ms)^{begin}(?P<body>.*?)^```$", document)):
        raise ValueError(f"{settings.document} has no example of {settings.program}.toml")
    return found["body"].splitlines()
