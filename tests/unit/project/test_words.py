"""Plain words: the code, the documents and what users read avoid a list of quaint ones.

docs/architecture.md and the guides use the terms of the field; a word here has a plainer one.
"""

import re
import subprocess
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
AVOIDED = {
    "mend|mends|mended|mending": "fix, correct, repair",
    "wander|wanders|wandered|wandering": "vary",
    "let go|lets go|letting go": "release",
    "decent": "acceptable, compliant",
    "stranger|strangers": "unknown host, other user",
    "crew": "workers, pool",
    "keeper|keepers": "controller, store, supervisor",
    "whoever": "the one that, any client that",
    "nobody": "no router, no one, none",
    "somebody": "another process, another user",
    "for ever": "forever",
    "any more": "no longer",
    "anew": "again",
    "foretell|foretells|foretold": "predict",
}
SUFFIXES = {".py", ".c", ".h", ".md", ".toml", ".yml", ".js", ".html", ".sh", ".service"}
OTHER_NAMES = re.compile(r'USER = "nobody"|nobody:nogroup|\bnobody@|_NOBODY\b|--owner nobody')
"""The user of that name."""


def texts() -> list[tuple[str, str]]:
    """Return path and text of every file that a reader or user may see, but for tests."""
    command = ["git", "ls-files", "-z", "--", ".", ":!tests", ":!docs/measured", ":!docs/notebooks"]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    paths = [path for path in listed.split("\0") if Path(path).suffix in SUFFIXES]
    return [(path, (ROOT / path).read_text()) for path in paths if (ROOT / path).is_file()]


@cache
def suspects() -> list[tuple[str, str]]:
    """Return every line with any of the words, after its place; without the user of that name."""
    avoided = re.compile(rf"\b(?:{'|'.join(AVOIDED)})\b", re.IGNORECASE)
    lines = (
        (f"{path}:{number}: {line.strip()[:100]}", OTHER_NAMES.sub("", line))
        for path, text in texts()
        for number, line in enumerate(text.splitlines(), start=1)
    )
    return [(place, line) for place, line in lines if avoided.search(line)]


@pytest.mark.parametrize("words", AVOIDED)
def test_no_text_has_a_word_to_avoid(words: str) -> None:
    avoided = re.compile(rf"\b(?:{words})\b", re.IGNORECASE)
    found = [place for place, line in suspects() if avoided.search(line)]
    assert not found, f"write {AVOIDED[words]}:\n" + "\n".join(found)


def test_a_word_of_the_list_is_found_whatever_its_case() -> None:
    for words in AVOIDED:
        first = words.partition("|")[0]
        assert re.search(rf"\b(?:{words})\b", f"Then {first.upper()}.", re.IGNORECASE)
