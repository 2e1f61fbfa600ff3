"""Put a mutant in place of the original: in a running process, or when it is imported."""

import gc
import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import CodeType, FunctionType, ModuleType

from scripts.mutation.operators import Mutant


def swap(path: Path, mutant: Mutant) -> bool:
    """Give the mutated function its new code, for all references to it."""
    module = compile(mutant.source, str(path), "exec", dont_inherit=True)
    new = next(code for code in _codes(module) if _is(code, path, mutant))
    found = [
        function
        for function in gc.get_objects()
        if isinstance(function, FunctionType) and _is(function.__code__, path, mutant)
    ]
    try:
        for function in found:
            function.__code__ = new
    except ValueError:  # it closes over other variables now
        return False
    return bool(found)


def _is(code: CodeType, path: Path, mutant: Mutant) -> bool:
    return (code.co_filename, code.co_qualname, code.co_firstlineno) == (
        str(path),
        mutant.function,
        mutant.first_line,
    )


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


class _Loader(importlib.machinery.SourceFileLoader):
    def __init__(self, name: str, path: Path, mutant: Mutant) -> None:
        super().__init__(name, str(path))
        self._mutant = mutant

    def get_code(self, fullname: str) -> CodeType:
        """Compile the mutant; nothing is read from a cache or written to it."""
        del fullname
        return compile(self._mutant.source, self.path, "exec", dont_inherit=True)


class MutantFinder(importlib.abc.MetaPathFinder):
    """Imports one module from a mutant's source."""

    def __init__(self, name: str, path: Path, mutant: Mutant) -> None:
        self._name = name
        self._loader = _Loader(name, path, mutant)

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Handle only the mutated module."""
        del path, target
        if name != self._name:
            return None
        return importlib.util.spec_from_file_location(name, self._loader.path, loader=self._loader)

    def install(self) -> None:
        """Register before every other finder."""
        sys.meta_path.insert(0, self)
