"""The places of a source file that are mutated, and the mutants made there.

Code without behaviour of its own is not mutated: asserts, logs, texts, annotations, imports, and
the keyword `strict` of zip, which is a check like an assert.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from scripts.mutation.operators import Mutant, variants

LOGS = {"log", "logger"}
Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class _Place:
    node: ast.AST
    function: str | None = None
    first_line: int = 0


def _logs(node: ast.AST) -> bool:
    """Return whether a statement only logs."""
    call = node.value if isinstance(node, ast.Expr) else None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
        return False
    owner = call.func.value
    name = getattr(owner, "attr", getattr(owner, "id", ""))
    return name.strip("_").lower() in LOGS


def _unmutated(node: ast.AST) -> bool:
    """Return whether a node has no behaviour: asserts, logs, texts, type aliases, imports."""
    if isinstance(node, (ast.Assert, ast.JoinedStr, ast.Import, ast.ImportFrom)) or _logs(node):
        return True
    if isinstance(node, ast.If):
        return getattr(node.test, "id", "") == "TYPE_CHECKING"
    value = getattr(node, "value", None)
    return isinstance(node, ast.Assign) and isinstance(value, ast.BinOp) and _is_union(value)


def _is_union(node: ast.BinOp) -> bool:
    side = node.right
    return isinstance(node.op, ast.BitOr) and isinstance(side, ast.Name) and side.id.istitle()


def _children(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes below a node, without annotations, decorators, checks and error texts."""
    match node:
        case ast.Call(func=ast.Name(id="zip")):
            yield from node.args
            yield from (keyword for keyword in node.keywords if keyword.arg != "strict")
        case ast.ClassDef():
            yield from node.body
        case ast.AnnAssign() | ast.keyword():
            yield from () if node.value is None else (node.value,)
        case ast.arguments():
            yield from (default for default in (*node.defaults, *node.kw_defaults) if default)
        case ast.Raise():
            yield from ()
        case _:
            yield from ast.iter_child_nodes(node)


def _walk(place: _Place, prefix: str = "") -> Iterator[_Place]:
    node = place.node
    if _unmutated(node):
        return
    yield place
    if isinstance(node, Function):
        yield from _walk_function(node, place, prefix)
        return
    if isinstance(node, ast.ClassDef):
        prefix = f"{prefix}{node.name}."
    for child in _children(node):
        yield from _walk(_Place(child, place.function, place.first_line), prefix)


def _walk_function(node: Function, place: _Place, prefix: str) -> Iterator[_Place]:
    yield from _walk(_Place(node.args, place.function, place.first_line), prefix)
    inside = (place.function, place.first_line)
    if place.function is None:
        first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
        inside = (f"{prefix}{node.name}", first)
    for child in node.body:
        yield from _walk(_Place(child, *inside), prefix)


def mutants_of(source: bytes) -> Iterator[Mutant]:
    """Yield every mutant of a file that compiles."""
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    for place in _walk(_Place(ast.parse(source))):
        for node, text in variants(place.node):
            assert isinstance(node, (ast.expr, ast.stmt))
            assert node.end_lineno is not None
            assert node.end_col_offset is not None
            start = starts[node.lineno - 1] + node.col_offset
            end = starts[node.end_lineno - 1] + node.end_col_offset
            before, lines = source[start:end].decode(), "\n" * (node.end_lineno - node.lineno)
            after = text + lines if isinstance(node, ast.stmt) else f"({text}{lines})"
            changed = source[:start] + after.encode() + source[end:]
            yield Mutant(node.lineno, place.function, place.first_line, before, text, changed)
