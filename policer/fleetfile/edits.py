"""Changes from one fleet to another, entry by entry and field by field; pure."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal, NamedTuple

import msgspec

from policer.contracts.host import Host, way_to
from policer.contracts.promised import ANYWHERE
from policer.fleetfile.document import Entered, Key, fields_of

Kind = Literal["tenant", "class", "host", "contract"]
Action = Literal["add", "change", "remove"]
Scope = Literal["operate", "admin"]


class Edit(NamedTuple):
    """An entry to add, change or remove."""

    kind: Kind
    host: str | None
    """Of a contract that holds on this host alone."""
    name: str
    """Of the thing; of a contract, its router's."""
    before: msgspec.Struct | None
    """None for an addition."""
    after: msgspec.Struct | None
    """None for a removal."""

    @property
    def action(self) -> Action:
        """Kind of the change."""
        if self.before is None:
            return "add"
        return "change" if self.after is not None else "remove"

    @property
    def key(self) -> Key:
        """Host and router of a contract."""
        return self.host or ANYWHERE, self.name

    @property
    def target(self) -> str:
        """Its target, as named in the audit log."""
        return f"{self.kind} {shown_name(self.host, self.name)}"


class FieldChange(msgspec.Struct, frozen=True):
    """A new value of one field."""

    field: str
    before: Any = None
    """None if there was none, or it was not given."""
    after: Any = None


class PlannedChange(msgspec.Struct, frozen=True):
    """An entry to add, change or remove."""

    action: Action
    kind: Kind
    name: str
    """Of a contract, its router's."""
    host: str | None = None
    """Of a contract that holds on this host alone."""
    fields: tuple[FieldChange, ...] = ()
    """Differences; for additions and removals, the differences from the defaults."""


def edits(current: Entered, goal: Entered) -> tuple[Edit, ...]:
    """Return the changes from one fleet to the other, by kind and name."""
    return (
        *_named("tenant", current.tenants, goal.tenants),
        *_named("class", current.classes, goal.classes),
        *_named("host", current.hosts, goal.hosts),
        *_contracts(current.contracts, goal.contracts),
    )


def shown(edit: Edit) -> PlannedChange:
    """Return an edit as it is shown."""
    return PlannedChange(edit.action, edit.kind, edit.name, edit.host, tuple(_fields(edit)))


def needed(changes: Iterable[Edit]) -> Scope:
    """Return the scope that changes take: hosts and their addresses take admin."""
    return "admin" if any(map(_is_admins, changes)) else "operate"


def is_moved(edit: Edit) -> bool:
    """Whether a host is new, or has other addresses than before."""
    before, after = edit.before, edit.after
    if not isinstance(after, Host):
        return False
    return not isinstance(before, Host) or way_to(before) != way_to(after)


def shown_name(host: str | None, name: str) -> str:
    """Return what a contract, or another thing, is called."""
    return f"{host}/{name}" if host else name


def _named(
    kind: Kind, current: Mapping[str, msgspec.Struct], goal: Mapping[str, msgspec.Struct]
) -> Iterator[Edit]:
    for name in sorted({*current, *goal}):
        before, after = current.get(name), goal.get(name)
        if before != after:
            yield Edit(kind, None, name, before, after)


def _contracts(
    current: Mapping[Key, msgspec.Struct], goal: Mapping[Key, msgspec.Struct]
) -> Iterator[Edit]:
    for key in sorted({*current, *goal}):
        before, after = current.get(key), goal.get(key)
        if before != after:
            host, vr = key
            yield Edit("contract", host or None, vr, before, after)


def _fields(edit: Edit) -> Iterator[FieldChange]:
    thing = edit.before if edit.after is None else edit.after
    assert thing is not None
    for field in fields_of(type(thing)):
        before, after = _value(edit.before, field), _value(edit.after, field)
        if before != after and field.name != "name":
            yield FieldChange(field.encode_name, before, after)


def _value(thing: msgspec.Struct | None, field: msgspec.structs.FieldInfo) -> Any:
    """Return a field as JSON has it; what is not there has the defaults."""
    if thing is None:
        default = field.default
        return None if default is msgspec.NODEFAULT else msgspec.to_builtins(default)
    return msgspec.to_builtins(getattr(thing, field.name))


def _is_admins(edit: Edit) -> bool:
    return edit.kind == "host" and (edit.after is None or is_moved(edit))
