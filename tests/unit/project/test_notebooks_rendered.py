"""The rendered notebooks are of the sources as they are, whole, and small."""

import re
from pathlib import Path

import pytest
from nbformat import v4

from scripts import notebooks
from scripts.notebooks import head_of, is_current, relinked, rendered

ROOT = Path(__file__).parents[3]
COPIES = ROOT / "docs" / "notebooks"
SOURCES = notebooks.notebooks()
MOST_BYTES = 1_500_000
PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4//8/AAX+Av4N70a4AAAAAElFTkSuQmCC"
)

each_source = pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)


@each_source
def test_the_copy_is_of_the_notebook_as_it_is(source: Path) -> None:
    assert is_current(source), "run `make notebooks`, and commit docs/notebooks"


@each_source
def test_the_copy_shows_each_figure_of_the_notebook(source: Path) -> None:
    text = (COPIES / f"{source.stem}.md").read_text()
    shown = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", text)
    assert len(shown) == source.read_text().count("plt.show()")
    files = {path.name for path in (COPIES / f"{source.stem}_files").iterdir()}
    assert {Path(name).name for name in shown} == files


def test_there_is_no_copy_of_a_notebook_that_is_gone() -> None:
    known = {source.stem for source in SOURCES}
    assert {path.stem for path in COPIES.glob("*.md")} == known
    assert {path.name for path in COPIES.iterdir() if path.is_dir()} == {
        f"{n}_files" for n in known
    }


def test_all_copies_together_are_small() -> None:
    assert sum(p.stat().st_size for p in COPIES.rglob("*") if p.is_file()) < MOST_BYTES


def test_an_edited_notebook_makes_its_copy_old(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notebooks, "COPIES", tmp_path)
    source = tmp_path / "lesson.py"
    source.write_text("# %%\n1 + 1\n")
    assert not is_current(source)
    (tmp_path / "lesson.md").write_text(f"{head_of(source)}\n\ntext\n")
    assert is_current(source)
    source.write_text("# %%\n1 + 2\n")
    assert not is_current(source)


def test_text_code_output_and_figures_come_in_their_order(tmp_path: Path) -> None:
    source = tmp_path / "lesson.py"
    source.touch()
    code = v4.new_code_cell("# ruff: noqa: ERA001  (a header)\nprint(1)")
    code.outputs = [
        v4.new_output("stream", name="stdout", text="1  \n"),
        v4.new_output("display_data", data={"image/png": PIXEL}),
    ]
    cells = [v4.new_markdown_cell("# A lesson"), code]
    text, figures = rendered(source, v4.new_notebook(cells=cells))
    assert text.split("\n\n")[1:] == [
        "# A lesson",
        "```python\nprint(1)\n```",
        "```text\n1\n```",
        "![A lesson](lesson_files/1.png)\n",
    ]
    assert figures["lesson_files/1.png"].startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("link", "moved"),
    [
        ("[x](data/README.md)", "[x](../../notebooks/data/README.md)"),
        ("[x](../docs/figures.md#part)", "[x](../figures.md#part)"),
        ("[x](identification.py)", "[x](identification.md)"),
        ("[x](https://example.org/a)", "[x](https://example.org/a)"),
    ],
)
def test_links_lead_to_where_they_led(link: str, moved: str) -> None:
    assert relinked(link) == moved
