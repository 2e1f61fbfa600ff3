"""Render the notebooks as Markdown with figures, so that they can be read without running them.

    python -m scripts.notebooks [--check] [NAME ...]

Each copy begins with the hash of the notebook's source, so that a test can detect an outdated one.
Nothing is measured: without `XTC_CSV`, `XTC_MODEL` and a lab, the same source gives the same text.
"""

import argparse
import base64
import hashlib
import io
import os
import posixpath
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import jupytext
from nbclient import NotebookClient
from PIL import Image
from traitlets.config import Config

ROOT: Final = Path(__file__).resolve().parent.parent
SOURCES: Final = ROOT / "notebooks"
COPIES: Final = ROOT / "docs" / "notebooks"
COLOURS: Final = 128
"""Colours of a figure: drawings have few, and this cuts the files to a third."""
LONGEST_CELL_S: Final = 240
LINK: Final = re.compile(r"\]\((?!https?:|#)([^)#\s]+)")
PRAGMA: Final = re.compile(r"^# ruff: noqa.*\n", re.MULTILINE)
OWN: Final = ("XTC_CSV", "XTC_MODEL", "MPLBACKEND")
"""Variables that change the subject of a notebook."""
JUPYTER: Final = ("JUPYTER_RUNTIME_DIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "IPYTHONDIR")


def notebooks() -> list[Path]:
    """Return the sources of all notebooks."""
    return sorted(SOURCES.glob("*.py"))


def copy_of(source: Path) -> Path:
    """Return where the rendered copy of a notebook is."""
    return COPIES / f"{source.stem}.md"


def head_of(source: Path) -> str:
    """Return the first line of a copy of the current source."""
    digest = hashlib.sha256(source.read_bytes()).hexdigest()
    return f"<!-- `make notebooks` wrote this from notebooks/{source.name}, SHA-256 {digest} -->"


def is_current(source: Path) -> bool:
    """Whether there is a copy of the current notebook."""
    copy = copy_of(source)
    return copy.exists() and copy.read_text(encoding="utf-8").split("\n", 1)[0] == head_of(source)


def executed(notebook: Any, folder: Path) -> Any:
    """Return the notebook with the output of each cell; a cell that fails raises.

    Args:
        notebook: as jupytext reads it.
        folder: where the kernel's sockets and files go; its path must be short.
    """
    client = NotebookClient(
        notebook,
        kernel_name="python3",
        config=Config(KernelManager={"transport": "ipc", "ip": str(folder / "kernel")}),
        timeout=LONGEST_CELL_S,
        resources={"metadata": {"path": str(SOURCES)}},
    )
    client.execute()
    return notebook


def rendered(source: Path, notebook: Any) -> tuple[str, dict[str, bytes]]:
    """Return an executed notebook's Markdown, and its figures by their path next to it."""
    figures: dict[str, bytes] = {}
    parts = [head_of(source)]
    title = source.stem
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            title = _heading(cell.source) or title
            parts.append(relinked(cell.source))
            continue
        parts.append(f"```python\n{PRAGMA.sub('', cell.source)}\n```")
        for output in _outputs(cell):
            if isinstance(output, str):
                parts.append(f"```text\n{output}\n```")
                continue
            name = f"{source.stem}_files/{len(figures) + 1}.png"
            figures[name] = output
            parts.append(f"![{title}]({name})")
    return "\n\n".join(parts) + "\n", figures


def relinked(text: str) -> str:
    """Return Markdown with the notebook's links adapted to the place of the copy.

    A link to another notebook leads to its copy.
    """

    def moved(match: re.Match[str]) -> str:
        target = match[1]
        if (SOURCES / target).suffix == ".py" and "/" not in target:
            return f"]({Path(target).stem}.md"
        from_root = posixpath.normpath(posixpath.join("notebooks", target))
        return f"]({posixpath.relpath(from_root, 'docs/notebooks')}"

    return LINK.sub(moved, text)


def _heading(text: str) -> str | None:
    found = re.search(r"^#+ (.+)$", text, re.MULTILINE)
    return found[1] if found else None


def _outputs(cell: Any) -> Iterator[str | bytes]:
    """Yield what a cell printed, joined, and its figures as PNG files."""
    streams = [output for output in cell.outputs if output.output_type == "stream"]
    if text := "".join(output.text for output in streams).strip("\n"):
        yield "\n".join(line.rstrip() for line in text.splitlines())
    for output in cell.outputs:
        if "image/png" in output.get("data", {}):
            yield _small(base64.b64decode(output.data["image/png"]))


def _small(png: bytes) -> bytes:
    """Return a figure with 8 bits a pixel."""
    with Image.open(io.BytesIO(png)) as image:
        few = image.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
    buffer = io.BytesIO()
    few.save(buffer, format="PNG", optimize=True)
    return buffer.getvalue()


def _write(source: Path, text: str, figures: dict[str, bytes]) -> None:
    folder = COPIES / f"{source.stem}_files"
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.png"):
        old.unlink()
    for name, png in figures.items():
        (COPIES / name).write_bytes(png)
    copy_of(source).write_text(text, encoding="utf-8")


def _prepare(folder: str) -> None:
    """Set the environment of kernels: the repository's packages, no user settings, no lab."""
    for name in OWN:
        os.environ.pop(name, None)
    os.environ.update(dict.fromkeys(JUPYTER, folder))
    os.environ.update(PYTHONPATH=str(ROOT), XTC_LAB="0")


def _render(sources: Sequence[Path]) -> None:
    with TemporaryDirectory(prefix="nb") as folder:
        _prepare(folder)
        for source in sources:
            notebook = executed(jupytext.read(source), Path(folder))
            _write(source, *rendered(source, notebook))
            print(copy_of(source).relative_to(ROOT))  # noqa: T201  this is its output


def main() -> int:
    """Render, or only check; return the exit code."""
    parser = argparse.ArgumentParser(description="Render the notebooks as Markdown with figures.")
    parser.add_argument("--check", action="store_true", help="only say which copies are old")
    parser.add_argument("name", nargs="*", help="of a notebook, such as truth; all where none is")
    options = parser.parse_args()
    known = {source.stem: source for source in notebooks()}
    if unknown := [name for name in options.name if name not in known]:
        parser.error(f"{', '.join(unknown)}: give one of {', '.join(known)}")
    sources = [known[name] for name in options.name or known]
    if not options.check:
        _render(sources)
        return 0
    old = [source.name for source in sources if not is_current(source)]
    for name in old:
        print(f"notebooks/{name}: its copy is old; run `make notebooks`", file=sys.stderr)  # noqa: T201
    return 1 if old else 0


if __name__ == "__main__":
    sys.exit(main())
