"""Mistakes in tables: all of them, each with its path, whatever tables and lists are around it."""

from enum import StrEnum
from typing import Annotated, Any, Literal

import msgspec
import pytest

from common.toml_explain import Mistake, Words, any_of, choices_of, last_key, mistakes

Name = Annotated[str, msgspec.Meta(pattern="^[a-z]+$")]


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


class Part(msgspec.Struct, forbid_unknown_fields=True):
    size: int
    mode: Literal["fast", "slow"] = "fast"


class Disk(msgspec.Struct, forbid_unknown_fields=True, tag="disk", tag_field="kind"):
    path: str


class Tape(msgspec.Struct, forbid_unknown_fields=True, tag="tape", tag_field="kind"):
    label: str


class Document(msgspec.Struct, forbid_unknown_fields=True):
    title: str
    parts: tuple[Part, ...] = ()
    named: Annotated[dict[Name, Part], msgspec.Meta(max_length=2)] = {}
    store: Disk | Tape | None = None
    main: Part | None = None
    colours: tuple[Colour, ...] = ()


def found(tables: object, *, partial: bool = False) -> list[Mistake]:
    return list(mistakes(tables, Document, Words(), partial=partial))


def test_a_valid_document_has_no_mistake() -> None:
    tables = {
        "title": "a",
        "parts": [{"size": 1}],
        "named": {"a": {"size": 1, "mode": "slow"}},
        "store": {"kind": "tape", "label": "l"},
        "main": {"size": 3},
        "colours": ["red"],
    }
    assert found(tables) == []
    msgspec.convert(tables, Document)


def test_all_mistakes_are_found_in_the_order_of_the_document() -> None:
    tables = {
        "parts": [{"size": 1}, {"size": "x", "mode": "fats"}],
        "named": {"A": {"size": 1}, "b": {}},
        "main": {"sise": 1},
        "tittle": "a",
    }
    assert [one.where for one in found(tables)] == [
        "parts[1].size",
        "parts[1].mode",
        "named.A",
        "named.b.size",
        "main.sise",
        "tittle",
    ]


def test_what_an_unknown_key_was_meant_to_be_is_not_missing_as_well() -> None:
    assert found({"titel": "a"}) == [Mistake("titel", "no such key", "did you mean title?")]


def test_a_part_of_a_document_may_lack_keys_but_not_within_its_tables() -> None:
    assert found({}, partial=True) == []
    assert [one.where for one in found({"main": {}}, partial=True)] == ["main.size"]


@pytest.mark.parametrize(
    ("store", "where", "problem"),
    [
        ({"path": "p"}, "store.kind", "missing"),
        ({"kind": "tape"}, "store.label", "missing"),
        ({"kind": "disk", "path": 1}, "store.path", "expected `str`, got `int`"),
        ({"kind": "drum"}, "store", "invalid value 'drum'"),
        (7, "store", "expected `object | null`, got `int`"),
    ],
)
def test_a_table_with_a_kind_is_judged_as_that_kind(store: Any, where: str, problem: str) -> None:
    (mistake,) = found({"title": "a", "store": store})
    assert mistake.where.startswith(where)
    assert mistake.problem.startswith(problem)


def test_too_many_names_are_told() -> None:
    part = {"size": 1}
    tables = {"title": "a", "named": {"a": part, "b": part, "c": part}}
    assert found(tables) == [Mistake("named", "3 are too many", "give at most 2")]


@pytest.mark.parametrize("tables", [7, [], None, "text"])
def test_what_is_no_table_at_all_is_one_mistake(tables: object) -> None:
    (mistake,) = found(tables)
    assert mistake.where == ""


def test_there_is_a_mistake_wherever_msgspec_finds_one() -> None:
    """Else a reader would go on, and fail without an explanation."""
    for tables in ({"title": 1}, {"title": "a", "parts": {}}, {"title": "a", "colours": ["pink"]}):
        with pytest.raises(msgspec.ValidationError):
            msgspec.convert(tables, Document)
        assert found(tables)


def test_choices_come_from_literals_enums_unions_and_lists_of_them() -> None:
    assert choices_of(Literal["a", "b"] | None) == ("a", "b")
    assert choices_of(tuple[Colour, ...]) == ("red", "blue")
    assert choices_of(Disk | Tape | None) == ("disk", "tape")
    assert choices_of(int) == ()


def test_words_for_choices_and_paths() -> None:
    assert (any_of(("a",)), any_of(("a", "b", "c"))) == ("a", "a, b or c")
    assert last_key("router.gold.interfaces[2]") == "interfaces"
