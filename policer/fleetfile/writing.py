"""Writes a document as TOML or JSON: in the order of names, without what is a default."""

from collections.abc import Mapping
from typing import Any

import msgspec
import tomli_w

from policer.fleetfile.document import FleetFile, bare
from policer.fleetfile.rates import shortened, written


def toml_of(file: FleetFile) -> str:
    """Return a document in TOML; rates have their unit."""
    return tomli_w.dumps(_for_people(bare(file), ""))


def json_of(file: FleetFile) -> str:
    """Return a document in JSON; rates are numbers."""
    return msgspec.json.format(msgspec.json.encode(_plain(bare(file))), indent=2).decode() + "\n"


def _for_people(value: Any, key: str) -> Any:
    if isinstance(value, Mapping):
        return {name: _for_people(inner, name) for name, inner in value.items()}
    if isinstance(value, list):
        return [_for_people(inner, "") for inner in value]
    return written(value, key)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _plain(inner) for name, inner in value.items()}
    return [_plain(inner) for inner in value] if isinstance(value, list) else shortened(value)
