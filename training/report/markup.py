"""Build HTML that is escaped by default: text from files cannot become markup."""

import html
import re
from collections.abc import Iterable, Sequence
from importlib import resources
from itertools import count

_EMPTY = frozenset({"meta", "br"})
"""Elements without an end tag."""
_IDS = re.compile(r'(\bid="|url\(#|href="#)')


class Markup(str):
    """Text that is HTML already; other text is escaped when it is added to a `Markup`."""

    __slots__ = ()


def element(tag: str, /, *content: str, **attributes: str) -> Markup:
    """Return an element; `class_` is the attribute `class`, and `_` in names stands for `-`."""
    words = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{html.escape(value)}"'
        for key, value in attributes.items()
    )
    if tag in _EMPTY:
        return Markup(f"<{tag}{words}>")
    return Markup(f"<{tag}{words}>{joined(content)}</{tag}>")


def joined(parts: Iterable[str], between: str = "") -> Markup:
    """Join the parts, escaped unless they are markup."""
    return Markup(between.join(p if isinstance(p, Markup) else html.escape(p) for p in parts))


def table(caption: str, head: Sequence[str], rows: Iterable[Sequence[str]]) -> Markup:
    """Return a table; the first cell of a row is its heading."""
    headings = (element("th", text, scope="col") for text in head)
    lines = [
        element("tr", element("th", row[0], scope="row"), *(element("td", c) for c in row[1:]))
        for row in rows
    ]
    inner = element(
        "table",
        element("caption", caption),
        element("thead", element("tr", *headings)),
        element("tbody", joined(lines, "\n")),
    )
    return element("div", inner, class_="wide", tabindex="0", role="region", aria_label=caption)


class Figures:
    """Number the figures of a page, and keep their ids distinct."""

    def __init__(self) -> None:
        self._numbers = count(1)

    def figure(self, svg: str, alternative: str, caption: str) -> Markup:
        """Return a figure.

        Args:
            svg: a drawing by matplotlib without external text.
            alternative: the alternative text.
            caption: its caption: what to look for.
        """
        number = next(self._numbers)
        return element(
            "figure",
            _inline(svg, f"f{number}-", alternative),
            element("figcaption", f"Figure {number}. {caption}"),
        )


def _inline(svg: str, prefix: str, alternative: str) -> Markup:
    """Return the drawing as part of a page: no prologue, ids of its own, and a name."""
    start = svg.index("<svg")
    label = f'<svg role="img" aria-label="{html.escape(alternative)}"'
    own = _IDS.sub(rf"\g<1>{prefix}", svg[start:])
    return Markup(own.replace("<svg", label, 1))


def document(title: str, body: Iterable[str], *, class_: str = "report") -> str:
    """Return a self-contained page; `class_` is its kind in `page.css`."""
    style = (resources.files("training.report") / "page.css").read_text(encoding="utf-8")
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("title", title),
        element("style", Markup(style)),
    )
    page = element("body", element("main", joined(body, "\n"), class_=class_))
    return f"<!DOCTYPE html>\n{element('html', head, page, lang='en')}\n"
