"""The mutations of a source file: the result of each operator at each place."""

import ast
import copy
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.Pow: ast.Mult,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
}
CALLS = {"min": "max", "max": "min", "any": "all", "all": "any", "floor": "ceil", "ceil": "floor"}
NO_BEHAVIOUR = {"strict", "encoding"}
"""Keyword arguments that matter only to a broken caller or in another locale."""
SMALLEST = 1e-5
"""A smaller constant is a tolerance against rounding."""

Variant = tuple[ast.AST, str]
"""A node, and its replacement text."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change of one file."""

    line: int
    function: str | None
    """The outermost function with it in the body; None for code that runs at import."""
    first_line: int
    """Where this function begins, with its decorators."""
    before: str
    after: str
    source: bytes
    """The whole file with the change."""


def _text(node: ast.AST) -> str:
    return ast.unparse(ast.fix_missing_locations(node))


def _negated(node: ast.expr) -> str:
    return f"not ({_text(node)})"


def _equality(node: ast.expr) -> bool:
    """Return whether another operator negates the node already."""
    if isinstance(node, ast.Compare):
        return not isinstance(node.ops[0], (ast.Lt, ast.LtE, ast.Gt, ast.GtE))
    return isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)


def _of_compare(node: ast.Compare) -> Iterator[Variant]:
    for index, operator in enumerate(node.ops):
        changed = copy.deepcopy(node)
        changed.ops[index] = COMPARISONS[type(operator)]()
        yield node, _text(changed)


def _of_binary(node: ast.BinOp) -> Iterator[Variant]:
    if any(_is_text(side) for side in _sides(node)):
        return
    if isinstance(node.op, (ast.BitOr, ast.BitAnd)):
        yield from ((node, _text(side)) for side in _sides(node))
    elif type(node.op) in ARITHMETIC:
        changed = copy.deepcopy(node)
        changed.op = ARITHMETIC[type(node.op)]()
        yield node, _text(changed)


def _sides(node: ast.BinOp) -> tuple[ast.expr, ast.expr]:
    return node.left, node.right


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or isinstance(getattr(node, "value", None), (str, bytes))


def _of_constant(node: ast.Constant) -> Iterator[Variant]:
    value = node.value
    if isinstance(value, bool):
        yield node, str(not value)
    elif isinstance(value, int):
        others = {value + 1, abs(value - 1)} if value <= 10 else {value * 2, value // 2}
        yield from ((node, str(other)) for other in sorted(others))
    elif isinstance(value, float) and value == 0.0:
        yield node, "1.0"
    elif isinstance(value, float) and value >= SMALLEST:
        yield from ((node, repr(value * factor)) for factor in (0.5, 1.5))


def _of_call(node: ast.Call) -> Iterator[Variant]:
    name = getattr(node.func, "attr", getattr(node.func, "id", ""))
    if name in CALLS:
        changed = copy.deepcopy(node)
        setattr(changed.func, "attr" if isinstance(node.func, ast.Attribute) else "id", CALLS[name])
        yield node, _text(changed)
    for index, keyword in enumerate(node.keywords):
        if keyword.arg is not None and keyword.arg not in NO_BEHAVIOUR:
            changed = copy.deepcopy(node)
            del changed.keywords[index]
            yield node, _text(changed)


def _of_boolean(node: ast.BoolOp) -> Iterator[Variant]:
    changed = copy.deepcopy(node)
    changed.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
    yield node, _text(changed)


def _of_unary(node: ast.UnaryOp) -> Iterator[Variant]:
    if isinstance(node.op, (ast.Not, ast.USub)):
        yield node, _text(node.operand)


def _of_statement(node: ast.stmt) -> Iterator[Variant]:
    match node:
        case ast.If(test=test) | ast.While(test=test) if not _equality(test):
            yield test, _negated(test)
        case ast.Return(value=ast.Compare() | ast.BoolOp() as value) if not _equality(value):
            yield value, _negated(value)
        case ast.Expr(value=ast.Call()) | ast.AugAssign() | ast.Raise() | ast.Delete():
            yield node, "pass"
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript(), *_]):
            yield node, "pass"
        case ast.Continue() | ast.Break():
            yield node, "pass"


def variants(node: ast.AST) -> Iterator[Variant]:
    """Yield replacements of a node or of its condition."""
    match node:
        case ast.Compare():
            yield from _of_compare(node)
        case ast.BinOp():
            yield from _of_binary(node)
        case ast.BoolOp():
            yield from _of_boolean(node)
        case ast.UnaryOp():
            yield from _of_unary(node)
        case ast.Constant():
            yield from _of_constant(node)
        case ast.Call():
            yield from _of_call(node)
        case ast.IfExp() if not _equality(node.test):
            yield node.test, _negated(node.test)
        case ast.stmt():
            yield from _of_statement(node)


def sample(mutants: list[Mutant], seed: int, limit: int) -> list[Mutant]:
    """Choose by the mutants' text, so that a change elsewhere in the file has no effect."""
    seen: dict[str, int] = {}

    def rank(mutant: Mutant) -> bytes:
        words = f"{seed} {mutant.function} {mutant.before} {mutant.after}"
        seen[words] = seen.get(words, 0) + 1
        return hashlib.sha256(f"{words} {seen[words]}".encode()).digest()

    return [mutant for _, mutant in sorted(((rank(m), m) for m in mutants), key=lambda p: p[0])][
        :limit
    ]
