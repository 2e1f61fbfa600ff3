"""Formats a plan for people: additions, changes and removals; pure."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec
from rich.text import Text

from common.printable import printable
from policer.fleetfile.rates import written

Item = Mapping[str, Any]
"""One thing of an answer, as JSON has it."""
SIGNS = {"add": ("+", "green"), "change": ("~", "yellow"), "remove": ("-", "bold red")}
LAST = "remove"
"""Removals are shown last, next to the question for confirmation."""


def change_lines(changes: Iterable[Item]) -> Iterator[Text]:
    """Yield the lines of changes; what is removed comes last."""
    for change in sorted(changes, key=lambda change: change["action"] == LAST):
        sign, style = SIGNS[change["action"]]
        verb = "REMOVE " if change["action"] == LAST else ""
        yield Text(f"{sign} {verb}{change['kind']} {printable(_name(change))}", style)
        width = max((len(field["field"]) for field in change["fields"]), default=0)
        for field in change["fields"]:
            yield Text(f"    {field['field']:{width}}  {printable(_values(change, field))}")


def summary(changes: Iterable[Item]) -> Text:
    """Return a line that says how much is to be done."""
    actions = [change["action"] for change in changes]
    counts = {action: actions.count(action) for action in SIGNS}
    if not actions:
        return Text("nothing to do: the fleet is as the file says")
    text = Text(f"{counts['add']} to add, {counts['change']} to change, ")
    style = SIGNS[LAST][1] if counts[LAST] else ""
    return text.append(f"{counts[LAST]} to {'REMOVE' if counts[LAST] else 'remove'}", style)


def value_text(name: str, value: Any) -> str:
    """Return the value of a field in a line."""
    if value is None:
        return "none"
    if isinstance(value, list):
        return ", ".join(map(_element_text, value)) or "none"
    if isinstance(value, str):
        return value
    number = written(value, name)
    return number if isinstance(number, str) else msgspec.json.encode(number).decode()


def _element_text(value: Any) -> str:
    """Return one of several: a text, or a window of the week."""
    if isinstance(value, str):
        return value
    of_class = f" ({value['class']})" if value["class"] else ""
    return f"{' '.join(value['days'])} {value['start']}-{value['end']}{of_class}"


def _name(change: Item) -> str:
    return f"{change['host']}/{change['name']}" if change["host"] else str(change["name"])


def _values(change: Item, field: Item) -> str:
    before, after = (value_text(field["field"], field[side]) for side in ("before", "after"))
    return {"add": after, "remove": before}.get(change["action"], f"{before} -> {after}")
