"""Suggestions for misspelt words."""

import difflib
from collections.abc import Iterable


def nearest(word: str, known: Iterable[str]) -> str | None:
    """Return the known word that a misspelt one is most like; None if there is none like it."""
    found = difflib.get_close_matches(word, list(known), n=1)
    return found[0] if found else None


def did_you_mean(word: str, known: Iterable[str], otherwise: str) -> str:
    """Return the fix of a misspelt word: the known word that it is most like, or another advice."""
    near = nearest(word, known)
    return f"did you mean {near}?" if near else otherwise
