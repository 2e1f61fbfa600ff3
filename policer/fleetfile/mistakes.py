"""What is wrong with a document's tables, key by key; pure."""

from collections.abc import Iterator, Mapping
from typing import Any, get_origin

from common.suggest import did_you_mean, nearest
from common.toml_explain import Words, any_of, choices_of
from common.toml_explain import mistakes as explained
from policer.errors import Problem
from policer.fleetfile.document import FleetFile
from policer.fleetfile.forms import FORMS, NAME, fix_of, wrong


def mistakes(tables: object) -> Iterator[Problem]:
    """Yield what is wrong with a document's tables, each by the path of its key."""
    return (Problem(*one) for one in explained(tables, FleetFile, _FleetWords()))


class _FleetWords(Words):
    """How mistakes in a fleet file are described."""

    def unknown(self, key: str, fields: Mapping[str, Any], where: str) -> str:
        del where
        return did_you_mean(key, fields, f"give one of {', '.join(fields)}")

    def missing(self, key: str, kind: Any) -> str:
        choices = choices_of(kind)
        return f"add it: {key} = {choices[0]}" if choices else f"add it: {FORMS.get(key, key)}"

    def wrong(self, key: str, kind: Any, value: object, problem: str) -> tuple[str, str]:
        choices = choices_of(kind)
        if not choices or isinstance(value, list) is not (get_origin(kind) is tuple):
            fix = fix_of(key, value) or (f"write {any_of(choices)}" if choices else "")
            return wrong(key, value, problem), fix
        given = _wrong_choice(value, choices)
        near = nearest(given, choices)
        fix = f"write {any_of(choices)}"
        meant = f"did you mean {near}? {fix}" if near and near != given else fix
        return f"no such choice: {given}", meant

    def name(self, name: str, kind: Any, problem: str, where: str) -> tuple[str, str]:
        del name, kind, problem, where
        return "this is no name", f"write {NAME}"


def _wrong_choice(value: object, choices: tuple[str, ...]) -> str:
    given = value if isinstance(value, list) else [value]
    return next((str(one) for one in given if str(one) not in choices), repr(value))
