"""Notes which lines of some modules run: each statement first stores 1 in an array, at its line.

Tracing, as coverage.py has it, makes all of Python 3.11 two to four times slower. This takes
little, and only in these modules.
"""

import ast
import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import CodeType, ModuleType
from typing import Final

NAME: Final = "__reached__"
"""Global variable of a module: the array."""
_BLOCKS: Final = ("body", "orelse", "finalbody")
_DOCUMENTED: Final = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


class Reached(importlib.abc.MetaPathFinder):
    """Imports modules so that they note their lines, and keeps those lines that count."""

    def __init__(self, root: Path, paths: Iterable[str]) -> None:
        """Take modules by their paths below a root."""
        self._files = {path.removesuffix(".py").replace("/", "."): root / path for path in paths}
        self._noted: dict[str, bytearray] = {}
        self._counted: dict[str, set[int]] = {}

    def install(self) -> None:
        """Register before every other finder."""
        sys.meta_path.insert(0, self)

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Handle only these modules."""
        del path, target
        if name not in self._files:
            return None
        file = str(self._files[name])
        loader = _Loader(name, file, self._note, self._count)
        return importlib.util.spec_from_file_location(name, file, loader=loader)

    def count(self) -> None:
        """Let all lines count that were noted."""
        for file in self._noted:
            self._count(file)

    def forget(self) -> None:
        """Forget what was noted and does not count."""
        for noted in self._noted.values():
            noted[:] = bytes(len(noted))

    @property
    def lines(self) -> dict[str, list[int]]:
        """The lines that count, by file."""
        return {file: sorted(lines) for file, lines in self._counted.items()}

    def _note(self, file: str, lines: int) -> bytearray:
        return self._noted.setdefault(file, bytearray(lines + 1))

    def _count(self, file: str) -> None:
        lines = {line for line, reached in enumerate(self._noted[file]) if reached}
        self._counted.setdefault(file, set()).update(lines)


class _Loader(importlib.machinery.SourceFileLoader):
    def __init__(
        self,
        name: str,
        file: str,
        note: Callable[[str, int], bytearray],
        count: Callable[[str], None],
    ) -> None:
        super().__init__(name, file)
        self._note, self._count = note, count

    def get_code(self, fullname: str) -> CodeType:
        """Compile the module; nothing is read from a cache or written to it."""
        del fullname
        return noting(self.get_data(self.path), self.path)

    def exec_module(self, module: ModuleType) -> None:
        """Load the module; what that reaches counts, whoever needs it."""
        lines = self.get_data(self.path).count(b"\n") + 1
        vars(module)[NAME] = self._note(self.path, lines)
        super().exec_module(module)
        self._count(self.path)


def noting(source: bytes, file: str) -> CodeType:
    """Return the code of a module, with notes."""
    tree = _Notes().visit(ast.parse(source, file))
    return compile(ast.fix_missing_locations(tree), file, "exec", dont_inherit=True)


class _Notes(ast.NodeTransformer):
    def generic_visit(self, node: ast.AST) -> ast.AST:
        """Put a note before each statement of a node's blocks."""
        super().generic_visit(node)
        for name in _BLOCKS:
            block = getattr(node, name, None)
            if isinstance(block, list) and block:
                setattr(node, name, _noted(node, block))
        return node


def _noted(node: ast.AST, block: list[ast.stmt]) -> list[ast.stmt]:
    first = 0
    if isinstance(node, _DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
        first = 1
    while first < len(block) and _is_future(block[first]):
        first += 1
    found = [*block[:first], *(_note(one.lineno, one) for one in block[:first])]
    if isinstance(node, ast.ExceptHandler):
        found.append(_note(node.lineno, block[0]))
    for statement in block[first:]:
        found += [_note(line, statement) for line in _lines_of(statement)]
        found.append(statement)
    return found


def _is_future(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.ImportFrom) and statement.module == "__future__"


def _lines_of(statement: ast.stmt) -> list[int]:
    """Return the line of a statement, and those of its decorators or cases."""
    found = [statement.lineno]
    found += [decorator.lineno for decorator in getattr(statement, "decorator_list", [])]
    found += [case.pattern.lineno for case in getattr(statement, "cases", [])]
    return found


def _note(line: int, place: ast.stmt) -> ast.stmt:
    array = ast.Name(NAME, ast.Load())
    target = ast.Subscript(array, ast.Constant(line), ast.Store())
    return ast.copy_location(ast.Assign([target], ast.Constant(1)), place)
