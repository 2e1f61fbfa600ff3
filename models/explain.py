"""Explains errors of a model file: the field, the problem, and the fix."""

import difflib
import math
import re
import reprlib
from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import inspect

from models.errors import ModelFileError
from models.schema import HostDocument

_PATH = re.compile(r"^(?P<problem>.*?)(?: - at `\$\.?(?P<path>[^`]*)`)?$", re.DOTALL)
_UNKNOWN = re.compile(r"^Object contains unknown field `(.*)`$", re.DOTALL)
_MISSING = re.compile(r"^Object missing required field `(.*)`$")
_BARE_KEY = re.compile(r"^[A-Za-z0-9_-]{1,64}\Z")
_INDEX = re.compile(r"\[(\d+)\]")


def explain(
    source: str,
    raw: dict[str, Any],
    error: msgspec.ValidationError,
    document: type[msgspec.Struct] = HostDocument,
) -> ModelFileError:
    """Return an error with a fix, from a file's tables and msgspec's error.

    Each key of ``document``, the format of the file, has a description.
    """
    match = _PATH.match(str(error))
    problem, path = (match["problem"], match["path"] or "") if match else (str(error), "")
    if unknown := _UNKNOWN.match(problem):
        key = unknown[1]
        field = _join(path, key if _BARE_KEY.match(key) else reprlib.repr(key))
        return ModelFileError(source, field, "no such key", _nearest(path, key, document))
    if missing := _MISSING.match(problem):
        path = _join(path, missing[1])
        return ModelFileError(source, path, "missing", _advice(path, document))
    advice = _advice(path, document)
    return ModelFileError(source, path, _problem(problem, _value(raw, path)), advice)


def keys(document: type[msgspec.Struct] = HostDocument) -> dict[str, str]:
    """Return every key of a format, with its tables and its meaning."""
    return dict(_described(inspect.type_info(document), ""))


def _problem(complaint: str, value: object) -> str:
    if isinstance(value, float) and not math.isfinite(value):
        return f"{value} is not a finite number"
    words = complaint.replace(" | null", "").replace("`object`", "`table`")
    return f"{shown(value)}: {words[0].lower()}{words[1:]}"


def shown(value: object) -> str:
    """Return a value of a TOML file, shortened for a message."""
    if isinstance(value, int) and value.bit_length() > 64:
        return "an enormous number"  # Python refuses to print integers of thousands of digits
    if isinstance(value, list):
        return f"a list of {len(value)}"
    return "a table" if isinstance(value, dict) else reprlib.repr(value)


def _value(raw: object, path: str) -> object:
    """Walk to the value at a path such as ``curve.points[3][0]``."""
    value: Any = raw
    for step in filter(None, _INDEX.sub(r".\1", path).split(".")):
        value = value[int(step)] if isinstance(value, list) else value[step]
    return value


def _advice(path: str, document: type[msgspec.Struct]) -> str:
    """Return the fix for the value at a path, from its description in the schema."""
    return f"give {keys(document)[_INDEX.sub('', path)]}"


def _nearest(path: str, key: str, document: type[msgspec.Struct]) -> str:
    table, every = _INDEX.sub("", path), keys(document)
    known = [name for name in every if _parent(name) == table]
    elsewhere = [name for name in every if name.rpartition(".")[2] == key]
    if elsewhere:
        home = _parent(elsewhere[0])
        return f"it belongs in [{home}]" if home else "it belongs at the top, outside any table"
    names = [name.rpartition(".")[2] for name in known]
    close = difflib.get_close_matches(key, names, n=1)
    return f"did you mean {close[0]}?" if close else f"known here: {', '.join(names)}"


def _described(node: inspect.Type, prefix: str) -> Iterator[tuple[str, str]]:
    for struct in _structs(node):
        for field in struct.fields:
            path = _join(prefix, field.encode_name)
            yield path, _meaning(field.type, field.encode_name)
            yield from _described(field.type, path)


def _structs(node: inspect.Type) -> Iterator[inspect.StructType]:
    """Find the tables that a type may be, below annotations and alternatives."""
    if isinstance(node, inspect.StructType):
        yield node
    elif isinstance(node, inspect.Metadata):
        yield from _structs(node.type)
    elif isinstance(node, inspect.UnionType):
        for alternative in node.types:
            yield from _structs(alternative)
    elif isinstance(node, inspect.VarTupleType):
        yield from _structs(node.item_type)


def _meaning(node: inspect.Type, name: str) -> str:
    described = node.extra_json_schema if isinstance(node, inspect.Metadata) else None
    meaning = (described or {})["description"]
    examples = (described or {}).get("examples", [])
    return f"{meaning}, such as {name} = {examples[0]}" if examples else str(meaning)


def _parent(path: str) -> str:
    return path.rpartition(".")[0]


def _join(table: str, key: str) -> str:
    return f"{table}.{key}" if table else key
