"""Mutate the pure cores in a copy of the tree, and report the mutants that no test detects."""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec

from common.arguments import whole_number
from scripts.mutation.report import Result, listed, table, total
from scripts.mutation.worker import Judged, Request

MODULES = Path(__file__).with_name("modules.toml")
LEFT_OUT = {".git", ".venv", ".hypothesis", ".mypy_cache", ".ruff_cache", "build", "dist"}
PASS_PERCENT = 85.0
NO_THREADS = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
"""Environment against threads, which a forking process must avoid."""


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


def _copy(tree: Path, copy: Path) -> None:
    for entry in tree.iterdir():
        if entry.is_dir() and entry.name not in LEFT_OUT:
            shutil.copytree(entry, copy / entry.name, symlinks=True)
        elif entry.is_file():
            shutil.copy2(entry, copy)
    (copy / ".venv").symlink_to(tree / ".venv")


def _judge(copy: Path, request: Request) -> Result | None:
    """Return the result of a file's mutants; None if its tests fail without mutation."""
    began = time.monotonic()
    asked, answered = (copy / f"{request.path.replace('/', '.')}.{end}" for end in ("ask", "say"))
    asked.write_bytes(msgspec.json.encode(request))
    environment = {
        **os.environ,
        **NO_THREADS,
        "HYPOTHESIS_PROFILE": "mutants",
        "PYTEST_DEBUG_TEMPROOT": str(copy),
        "PYTHONPATH": str(copy),
    }
    command = [sys.executable, "-m", "scripts.mutation.worker", str(asked), str(answered)]
    ended = subprocess.run(command, cwd=copy, env=environment, check=False)  # noqa: S603 our own
    if ended.returncode:
        return None
    judged = msgspec.json.decode(answered.read_bytes(), type=list[Judged])
    result = Result(request.path, judged, time.monotonic() - began)
    sys.stderr.write(f"{request.path}: {result.killed} of {len(judged)}\n")
    return result


def _survivors(file: Path) -> dict[str, list[Judged]]:
    results = msgspec.json.decode(file.read_bytes(), type=list[Result])
    return {result.path: result.survivors for result in results if result.survivors}


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m scripts.mutation",
        description=f"{__doc__} The mutants are the same at every run with the same seed.",
        epilog=f"Exits 1 if fewer than {PASS_PERCENT:g} % are killed, or if a test fails without "
        f"a mutation. {MODULES.name} says which tests prove which file.",
    )
    add = parser.add_argument
    add("--module", action="append", metavar="NAME", help="only files with NAME in their path")
    add("--list-survivors", action="store_true", help="where, what was there, what took its place")
    add("--again", type=Path, metavar="FILE", help="only the survivors of a run's --json FILE")
    add("--json", type=Path, metavar="FILE", help="write every mutant and its outcome there")
    add("--seed", type=int, default=0, help="choose other mutants (default: %(default)s)")
    add(
        "--limit", type=whole_number(1), default=40, help="mutants of a file (default: %(default)s)"
    )
    add(
        "--jobs",
        type=whole_number(1),
        default=2,
        help="files mutated at the same time (%(default)s)",
    )
    add("--tree", type=Path, default=Path.cwd(), help="what to copy (default: this directory)")
    return parser.parse_args()


def main() -> int:
    """Test all modules, print the table, and return the exit code."""
    arguments = _arguments()
    wanted = arguments.module or [""]
    before = _survivors(arguments.again) if arguments.again else {}
    with tempfile.TemporaryDirectory(prefix="m-") as directory:  # paths of sockets must be short
        copy = Path(directory)
        _copy(arguments.tree.absolute(), copy)
        requests = [
            Request(path, tests, arguments.seed, arguments.limit, before.get(path))
            for path, tests in modules(copy).items()
            if any(name in path for name in wanted) and (path in before or not before)
        ]
        with ThreadPoolExecutor(arguments.jobs) as pool:
            answers = list(pool.map(lambda request: _judge(copy, request), requests))
    results = [answer for answer in answers if answer is not None]
    sys.stdout.write(table(results))
    if arguments.list_survivors:
        sys.stdout.write(listed(results))
    if arguments.json:
        arguments.json.write_bytes(msgspec.json.encode(results))
    unknown = [one.path for one, answer in zip(requests, answers, strict=True) if answer is None]
    if unknown:
        sys.stdout.write(f"not judged: {', '.join(unknown)}\n")
    return 0 if total(results).percent >= PASS_PERCENT and not unknown else 1


if __name__ == "__main__":
    sys.exit(main())
