"""What `make mutants` changes: each kind of place, and nothing that is no behaviour."""

import ast

import pytest

from scripts.mutation.operators import sample
from scripts.mutation.places import mutants_of


def changes(source: str) -> set[tuple[str, str]]:
    """Return what takes the place of what, in a function's body."""
    body = f"def f(a, b):\n    {source}\n"
    return {(one.before, one.after) for one in mutants_of(body.encode())}


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("return a < b", {("a < b", "a <= b"), ("a < b", "not (a < b)")}),
        ("return a == b", {("a == b", "a != b")}),
        ("return a + b", {("a + b", "a - b")}),
        ("return a | b", {("a | b", "a"), ("a | b", "b")}),
        ("return 1", {("1", "0"), ("1", "2")}),
        ("return 100", {("100", "50"), ("100", "200")}),
        ("return 0.5", {("0.5", "0.25"), ("0.5", "0.75")}),
        ("return 1e-9", set()),
        ("return min(a, b)", {("min(a, b)", "max(a, b)")}),
        ("return g(a, slow=b)", {("g(a, slow=b)", "g(a)")}),
        ("return zip(a, -b, strict=True)", {("-b", "b")}),
        ("return not a", {("not a", "a")}),
        ("a.x = b", {("a.x = b", "pass")}),
        ("g(a)", {("g(a)", "pass")}),
        ("raise E('words')", {("raise E('words')", "pass")}),
    ],
)
def test_each_kind_of_place_is_changed(source: str, found: set[tuple[str, str]]) -> None:
    assert changes(source) == found


@pytest.mark.parametrize(
    "source",
    ["assert a < b", "log.info('x', n=1)", "return f'{a + 1}'", "x: int", "return 'a' + b"],
)
def test_what_is_no_behaviour_is_left_alone(source: str) -> None:
    assert changes(source) == set()


def test_constants_of_a_module_and_defaults_are_changed_without_a_function() -> None:
    found = list(mutants_of(b"LIMIT = 3\ndef f(a=5): return a\n"))
    assert {(one.before, one.function) for one in found} == {("3", None), ("5", None)}


def test_every_mutant_compiles_and_differs_in_its_line_alone() -> None:
    source = b"def f(a):\n    if a > 2:\n        return a\n    return (a +\n            1)\n"
    for mutant in mutants_of(source):
        ast.parse(mutant.source)
        assert mutant.source != source
        assert mutant.source.count(b"\n") == source.count(b"\n")
        assert mutant.function == "f"


def test_a_sample_is_the_same_at_every_run_and_other_with_another_seed() -> None:
    mutants = list(mutants_of("\n".join(f"A{n} = {n + 20}" for n in range(50)).encode()))
    first = sample(mutants, seed=1, limit=10)
    assert first == sample(list(reversed(mutants)), seed=1, limit=10)
    assert first != sample(mutants, seed=2, limit=10)
    assert len(first) == 10
