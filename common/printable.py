"""Text for people, in which names chosen by tenants cannot control the terminal.

Linux lets an interface have any name without spaces, slashes and colons: an escape sequence of the
terminal, or a character that changes the writing direction.
"""

import typer


def printable(text: str) -> str:
    r"""Return text of one line; what is no printable character is written as JSON and TOML do.

    So ESC is shown as \u001b, and TOML or JSON that is shown stays what it is.
    """
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else _escaped(each) for each in text)


def printable_lines(text: str) -> str:
    """Return text of several lines; see `printable`."""
    return "\n".join(map(printable, text.split("\n")))


def say(text: str, *, err: bool = False) -> None:
    """Print lines for people, on standard output or standard error."""
    typer.echo(printable_lines(text), err=err)


def _escaped(character: str) -> str:
    code = ord(character)
    return f"\\u{code:04x}" if code < 1 << 16 else f"\\U{code:08x}"
