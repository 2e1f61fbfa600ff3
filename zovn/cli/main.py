"""zovn: the command line."""

from common.command import command_line, report_errors
from zovn.check.command import check
from zovn.cli.command import CODES
from zovn.cli.exporter import exporter
from zovn.cli.switch import app as switch_app
from zovn.simulate.cli import simulate

app = command_line(
    "zovn",
    about="Switch frames between virtual machines without dropping any for lack of room.",
    epilog="Exit codes: 0 done, 1 refused or failed, 2 wrong usage or configuration, "
    "3 no switch answers.",
)
app.add_typer(switch_app, name="switch")
app.command()(check)
app.command()(exporter)
app.command()(simulate)


def main() -> None:
    """Run the command line."""
    with report_errors("zovn", CODES):
        app()
