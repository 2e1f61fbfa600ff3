"""Runs the check of an endpoint alone: python -m zovn.check."""

from types import MappingProxyType

import typer

from common.command import EXIT_USAGE, Codes, report_errors
from zovn.check.command import check
from zovn.errors import ZovnError

CODES: Codes = MappingProxyType({ZovnError: EXIT_USAGE})

if __name__ == "__main__":
    app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
    app.command()(check)
    with report_errors("zovn check", CODES):
        app(prog_name="zovn check")
