"""Explains what is wrong with the tables of a document, key by key; msgspec reports the first only.

The walk over tables, names and lists is the same for every format. A format's `Words` say how its
mistakes are described. Pure.
"""

import re
from collections.abc import Iterator, Mapping, Sized
from enum import Enum
from types import UnionType
from typing import Annotated, Any, Literal, NamedTuple, TypeGuard, Union, get_args, get_origin

import msgspec

from common.suggest import did_you_mean, nearest

_AT = re.compile(r"^(?P<problem>.*?)(?: - at `(?:key` in `)?\$(?P<path>.*)`)?$", re.DOTALL)


class Mistake(NamedTuple):
    """One mistake: the path of its key, what is wrong, and what to write instead."""

    where: str
    problem: str
    fix: str


class Words:
    """How a format describes its mistakes; the methods return problems and fixes."""

    def unknown(self, key: str, fields: Mapping[str, Any], where: str) -> str:
        """Return the fix for a key that a table does not have; `where` is the table's path."""
        del where
        return did_you_mean(key, fields, "remove it")

    def missing(self, key: str, kind: Any) -> str:
        """Return the fix for a key that is missing from a table."""
        choices = choices_of(kind)
        return f"add it: {any_of(choices)}" if choices else f"add it: {key}"

    def wrong(self, key: str, kind: Any, value: object, problem: str) -> tuple[str, str]:
        """Return problem and fix of a value.

        Args:
            key: its key, or that of the list or table around it.
            kind: its type.
            value: what was given.
            problem: the problem in msgspec's words.
        """
        del key, value
        choices = choices_of(kind)
        return plain(problem), f"write {any_of(choices)}" if choices else ""

    def name(self, name: str, kind: Any, problem: str, where: str) -> tuple[str, str]:
        """Return problem and fix of a name that a table at `where` may not have."""
        del where
        return self.wrong(name, kind, name, problem)


def mistakes(
    value: object, kind: Any, words: Words, where: str = "", *, partial: bool = False
) -> Iterator[Mistake]:
    """Yield what is wrong with a value of a type, each by the path of its key.

    Args:
        value: from a decoder: tables are dictionaries, lists are lists.
        kind: its type, for msgspec.
        words: of the format.
        where: the path of the value; empty for the whole document.
        partial: whether keys may be missing from the table itself, but not from those inside.
    """
    base = get_args(kind)[0] if get_origin(kind) is Annotated else kind
    inner = get_args(base)
    structure = _structure_for(base, value)
    if structure is not None and isinstance(value, dict):
        yield from _of_table(value, structure, words, where, partial=partial)
    elif _is_tagged(base) and isinstance(value, dict) and _tag_field(base) not in value:
        tag = _tag_field(base)
        yield Mistake(joined(where, tag), "missing", words.missing(tag, base))
    elif get_origin(base) is dict and isinstance(value, dict):
        yield from _of_names(value, inner[0], inner[1], words, where)
        yield from _too_many(value, kind, where)
    elif get_origin(base) in {tuple, list} and isinstance(value, list) and _is_struct(inner[0]):
        for number, one in enumerate(value):
            yield from mistakes(one, inner[0], words, f"{where}[{number}]")
        yield from _too_many(value, kind, where)
    else:
        yield from _of_value(value, kind, words, where)


def _of_table(
    table: Mapping[Any, Any],
    structure: type[msgspec.Struct],
    words: Words,
    where: str,
    *,
    partial: bool,
) -> Iterator[Mistake]:
    fields = {field.encode_name: field for field in msgspec.structs.fields(structure)}
    kinds = {name: field.type for name, field in fields.items()}
    meant: set[str] = set()
    for key, value in table.items():
        if key in fields:
            yield from mistakes(value, kinds[key], words, joined(where, key))
        elif key != structure.__struct_config__.tag_field:
            meant.add(nearest(str(key), fields) or "")
            fix = words.unknown(str(key), kinds, where)
            yield Mistake(joined(where, str(key)), "no such key", fix)
    for key, field in fields.items():
        if field.required and key not in table and key not in meant and not partial:
            yield Mistake(joined(where, key), "missing", words.missing(key, field.type))


def _of_names(
    names: Mapping[Any, Any], kind: Any, inner: Any, words: Words, where: str
) -> Iterator[Mistake]:
    for name, value in names.items():
        try:
            msgspec.convert(name, kind)
        except msgspec.ValidationError as error:
            path, shown = joined(where, str(name)), str(error)
            yield Mistake(path, *words.name(str(name), kind, shown, where))
        else:
            yield from mistakes(value, inner, words, joined(where, name))


def _too_many(given: Sized, kind: Any, where: str) -> Iterator[Mistake]:
    bounds = [one.max_length for one in get_args(kind)[1:] if isinstance(one, msgspec.Meta)]
    for most in bounds:
        if most is not None and len(given) > most:
            yield Mistake(where, f"{len(given)} are too many", f"give at most {most}")


def _of_value(value: object, kind: Any, words: Words, where: str) -> Iterator[Mistake]:
    try:
        msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        match = _AT.match(str(error))
        problem, inside = (match["problem"], match["path"] or "") if match else (str(error), "")
        path = where + inside if where else inside.removeprefix(".")
        yield Mistake(path, *words.wrong(last_key(path), kind, value, problem))


def _structure_for(kind: Any, value: object) -> type[msgspec.Struct] | None:
    """Return the structure of a table: the type itself, or the member of a union that fits."""
    if _is_struct(kind):
        return kind
    structures = [one for one in _members(kind) if _is_struct(one)]
    if not _is_tagged(kind):
        return structures[0] if len(structures) == 1 else None
    tag = value.get(_tag_field(kind)) if isinstance(value, dict) else None
    by_tag = {str(one.__struct_config__.tag): one for one in structures}
    return by_tag.get(str(tag))


def _is_tagged(kind: Any) -> bool:
    structures = [one for one in _members(kind) if _is_struct(one)]
    return len(structures) > 1 and all(one.__struct_config__.tag_field for one in structures)


def _tag_field(kind: Any) -> str:
    return next(str(one.__struct_config__.tag_field) for one in _members(kind) if _is_struct(one))


def _members(kind: Any) -> tuple[Any, ...]:
    return get_args(kind) if get_origin(kind) in {Union, UnionType} else ()


def _is_struct(kind: Any) -> TypeGuard[type[msgspec.Struct]]:
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)


def choices_of(kind: Any) -> tuple[str, ...]:
    """Return the values that a type allows; none where it is no choice."""
    if get_origin(kind) is Literal:
        return tuple(map(str, get_args(kind)))
    if _is_tagged(kind):
        return tuple(str(one.__struct_config__.tag) for one in _members(kind) if _is_struct(one))
    if isinstance(kind, type) and issubclass(kind, Enum):
        return tuple(str(one.value) for one in kind)
    if get_origin(kind) in {tuple, list, Annotated, Union, UnionType}:
        return next((found for one in get_args(kind) if (found := choices_of(one))), ())
    return ()


def joined(table: str, key: str) -> str:
    """Return the path of a key in a table."""
    return f"{table}.{key}" if table else key


def last_key(path: str) -> str:
    """Return the key at the end of a path, without the number of an item."""
    return path.rpartition(".")[2].partition("[")[0]


def any_of(choices: tuple[str, ...]) -> str:
    """Return a choice in words: ``a, b or c``."""
    return choices[0] if len(choices) == 1 else f"{', '.join(choices[:-1])} or {choices[-1]}"


def plain(problem: str) -> str:
    """Return a problem in msgspec's words, to go on a line after the key."""
    return problem[:1].lower() + problem[1:]
