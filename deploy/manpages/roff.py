"""Write roff for man(7): escape text, and turn the documents' inline marks into fonts."""

import re
from collections.abc import Iterable

_MARKS = re.compile(r"`(?P<code>[^`]+)`|\[(?P<link>[^\]]+)\]\([^)]+\)")


def escaped(text: str) -> str:
    """Return text with roff's special characters escaped."""
    plain = text.replace("\\", r"\e").replace("-", r"\-").replace("'", r"\(aq")
    plain = plain.replace("^", r"\(ha").replace("~", r"\(ti").replace("`", r"\(ga")
    return rf"\&{plain}" if plain.startswith(".") else plain


def inline(text: str) -> str:
    """Return a line of Markdown as roff: code in bold, links as their text."""
    parts, end = [], 0
    for mark in _MARKS.finditer(text):
        parts.append(escaped(text[end : mark.start()]))
        parts.append(bold(mark["code"]) if mark["code"] else inline(mark["link"]))
        end = mark.end()
    return "".join([*parts, escaped(text[end:])])


def bold(text: str) -> str:
    """Return text in bold, for literal text."""
    return rf"\fB{escaped(text)}\fR"


def italic(text: str) -> str:
    """Return text in italics, for placeholders."""
    return rf"\fI{escaped(text)}\fR"


def title(name: str, section: int, date: str, version: str) -> str:
    """Return the page's first line; the date is YYYY-MM-DD."""
    return f'.TH {name.upper()} {section} {date} "xtc {version}"\n'


def heading(text: str) -> str:
    """Return a section's heading."""
    return f".SH {escaped(text.upper())}\n"


def subheading(text: str) -> str:
    """Return a subsection's heading."""
    return f'.SS "{escaped(text)}"\n'


def paragraphs(texts: Iterable[str]) -> str:
    """Return paragraphs with Markdown's inline marks as roff, for below a heading."""
    return ".PP\n".join(f"{inline(text)}\n" for text in texts)


def entry(term: str, *words: str) -> str:
    """Return a tagged paragraph: the term in roff, then lines of roff under it."""
    return f".TP\n{term}\n" + ("\n.br\n".join(word for word in words if word) or r"\&") + "\n"


def example(lines: Iterable[str]) -> str:
    """Return lines as they are, indented."""
    body = "".join(rf"\&{escaped(line)}" + "\n" for line in lines)
    return f".RS 4\n.nf\n{body}.fi\n.RE\n"
