"""xtc epoch: undo an epoch that was given by mistake."""

import sys
from pathlib import Path
from typing import Annotated

import structlog
import typer

from common.logs import set_up_logging
from common.output import print_json
from common.printable import say
from xtc.cli.journal import STATE, Json, StateDir, Yes, ledger_of
from xtc.state.journal import Journal
from xtc.state.repair import with_epoch

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Lower the highest epoch.")
To = Annotated[int, typer.Option("--to", min=0, help="New highest epoch.")]


@app.callback()
def epoch() -> None:
    """Lower the highest epoch that the daemon remembers."""


@app.command()
def reset(to: To = 0, state_dir: StateDir = STATE, yes: Yes = False, json: Json = False) -> None:
    """Lower the highest epoch, and that of recorded leases; the daemon must be stopped.

    Policers with this epoch or a higher one are accepted again, including former leaders.
    """
    with Journal(state_dir) as journal:
        ledger = ledger_of(journal)
        before = ledger.highest_epoch
        if to > before:
            raise typer.BadParameter(f"--to: {to} is above the highest epoch, which is {before}")
        if not yes:
            question = f"Accept epochs from {to} on again? The highest so far is {before}."
            typer.confirm(question, abort=True, err=True)
        journal.store(with_epoch(ledger, to))
    _log(before, to, state_dir)
    if json:
        print_json({"before": before, "highest_epoch": to})
    else:
        say(f"highest epoch: {before} before, {to} now")


def _log(before: int, to: int, state_dir: Path) -> None:
    set_up_logging(json=not sys.stderr.isatty(), level="warning")
    structlog.get_logger().warning(
        "epoch_reset", before=before, highest_epoch=to, state_dir=str(state_dir)
    )
