"""The pure cores, each with its tests: modules.toml."""

import tomllib
from pathlib import Path

MODULES = Path(__file__).with_name("modules.toml")


def modules(tree: Path) -> dict[str, list[str]]:
    """Return the files to mutate, each with its tests."""
    patterns = tomllib.loads(MODULES.read_text())
    found = {path: sorted(_tests(tree, globs)) for path, globs in patterns.items()}
    for path, tests in found.items():
        if not tests or not (tree / path).is_file():
            raise SystemExit(f"{MODULES.name}: {path}: there is no such file, or no test of it")
    return found


def _tests(tree: Path, globs: list[str]) -> set[str]:
    files = (file for glob in globs for file in tree.glob(f"tests/{glob}.py"))
    return {str(file.relative_to(tree)) for file in files}
