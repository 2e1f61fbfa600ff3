"""Tables of ports, for people."""

from collections.abc import Iterable

from rich.table import Table

from common.output import fitting_console
from zovn.switch.control import PortReport


def table_of(headings: Iterable[str], left: int) -> Table:
    """Return an empty table without lines; all columns after the first `left` are of numbers."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for number, heading in enumerate(headings):
        table.add_column(heading, justify="left" if number < left else "right")
    return table


def show(table: Table) -> None:
    """Print a table as wide as the terminal."""
    fitting_console().print(table)


def peer(port: PortReport) -> str:
    """Return in a word or two whether a peer is attached, and whether it takes frames."""
    if port.fault != "none":
        return f"stopped: {port.fault}"
    if port.stall:
        return "stalled"
    return port.state or ("attached" if port.attached else "-")
