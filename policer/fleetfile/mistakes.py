"""What is wrong with a document's tables, key by key: msgspec tells of the first alone; pure."""

import re
from collections.abc import Iterator, Mapping
from types import UnionType
from typing import Annotated, Any, Literal, get_args, get_origin

import msgspec

from common.suggest import did_you_mean, nearest
from policer.contracts.ladder import Step
from policer.errors import Problem
from policer.fleetfile.document import FleetFile
from policer.fleetfile.forms import FORMS, NAME, fix_of, wrong

_AT = re.compile(r"^(?P<problem>.*?)(?: - at `(?:key` in `)?\$(?P<path>.*)`)?$", re.DOTALL)


def mistakes(tables: object) -> Iterator[Problem]:
    """Yield what is wrong with a document's tables, each by the path of its key."""
    yield from _of(tables, FleetFile, "")


def joined(table: str, key: str) -> str:
    """Return the path of a key in a table."""
    return f"{table}.{key}" if table else key


def _of(value: object, kind: Any, where: str) -> Iterator[Problem]:
    base = get_args(kind)[0] if get_origin(kind) is Annotated else kind
    inner = get_args(base)
    if _is_structure(base) and isinstance(value, dict):
        yield from _of_structure(value, base, where)
    elif get_origin(base) is dict and isinstance(value, dict):
        yield from _of_names(value, inner[0], inner[1], where)
        yield from _too_many(value, kind, where)
    elif get_origin(base) is tuple and _is_structure(inner[0]) and isinstance(value, list):
        for number, one in enumerate(value):
            yield from _of(one, inner[0], f"{where}[{number}]")
    else:
        yield from _of_value(value, kind, where)


def _is_structure(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)


def _of_structure(
    table: Mapping[Any, Any], structure: type[msgspec.Struct], where: str
) -> Iterator[Problem]:
    fields = {field.encode_name: field for field in msgspec.structs.fields(structure)}
    for key, value in table.items():
        if key in fields:
            yield from _of(value, fields[key].type, joined(where, key))
        else:
            fix = did_you_mean(str(key), fields, f"give one of {', '.join(fields)}")
            yield Problem(joined(where, str(key)), "no such key", fix)
    for key, field in fields.items():
        if field.required and key not in table:
            yield Problem(joined(where, key), "missing", f"add it: {_hint(key, field.type)}")


def _of_names(names: Mapping[Any, Any], kind: Any, inner: Any, where: str) -> Iterator[Problem]:
    for name, value in names.items():
        try:
            msgspec.convert(name, kind)
        except msgspec.ValidationError:
            yield Problem(joined(where, str(name)), "this is no name", f"write {NAME}")
        else:
            yield from _of(value, inner, joined(where, name))


def _too_many(table: Mapping[Any, Any], kind: Any, where: str) -> Iterator[Problem]:
    bounds = [one.max_length for one in get_args(kind)[1:] if isinstance(one, msgspec.Meta)]
    for most in bounds:
        if most is not None and len(table) > most:
            yield Problem(where, f"{len(table)} are too many", f"give at most {most}")


def _of_value(value: object, kind: Any, where: str) -> Iterator[Problem]:
    try:
        msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        match = _AT.match(str(error))
        problem, inside = (match["problem"], match["path"] or "") if match else (str(error), "")
        key = where.rpartition(".")[2].partition("[")[0]
        yield Problem(where + inside, *_in_words(key, kind, value, problem))


def _in_words(key: str, kind: Any, value: object, problem: str) -> tuple[str, str]:
    """Return what is wrong with the value of a key, and what to write instead."""
    choices = _choices(kind)
    if not choices or isinstance(value, list) is not _is_list(kind):
        fix = fix_of(key, value) or (f"write {_any_of(choices)}" if choices else "")
        return wrong(key, value, problem), fix
    given = _wrong_choice(value, choices)
    near = nearest(given, choices)
    fix = f"write {_any_of(choices)}"
    meant = f"did you mean {near}? {fix}" if near and near != given else fix
    return f"no such choice: {given}", meant


def _wrong_choice(value: object, choices: tuple[str, ...]) -> str:
    given = value if isinstance(value, list) else [value]
    return next((str(one) for one in given if str(one) not in choices), repr(value))


def _is_list(kind: Any) -> bool:
    return get_origin(kind) is tuple


def _choices(kind: Any) -> tuple[str, ...]:
    """Return the values that there are to choose from; none where there is no choice."""
    if get_origin(kind) is Literal:
        return tuple(map(str, get_args(kind)))
    if kind is Step:
        return tuple(Step)
    if get_origin(kind) in {tuple, Annotated, UnionType}:
        return next((found for one in get_args(kind) if (found := _choices(one))), ())
    return ()


def _hint(key: str, kind: Any) -> str:
    choices = _choices(kind)
    return f"{key} = {choices[0]}" if choices else FORMS.get(key, key)


def _any_of(choices: tuple[str, ...]) -> str:
    return choices[0] if len(choices) == 1 else f"{', '.join(choices[:-1])} or {choices[-1]}"
