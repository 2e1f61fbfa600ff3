"""xco: the command line of link coordination."""

from common.command import command_line, report_errors
from xco.cli.command import CODES
from xco.cli.controller import app as controller_app
from xco.cli.coordinator import app as coordinator_app
from xco.cli.key import app as key_app
from xco.cli.lazy import Commands, simulate_is_missing
from xco.cli.port_agent import app as port_agent_app
from xco.cli.topology import app as topology_app
from xco.cli.watch import status, top

app = command_line(
    "xco",
    about="Coordinate which V2V flows may send, so that no link is congested.",
    epilog="Exit codes: 0 done, 1 refused or failed, 2 wrong usage or configuration, "
    "3 no controller, coordinator or port agent answers.",
    group=Commands,
)
for _name, _group in (
    ("controller", controller_app),
    ("coordinator", coordinator_app),
    ("port-agent", port_agent_app),
    ("topology", topology_app),
    ("key", key_app),
):
    app.add_typer(_group, name=_name)
app.command()(status)
app.command()(top)
# Its options are those of the real command, which is not there to accept them.
ANY_OPTIONS = {"ignore_unknown_options": True, "allow_extra_args": True}
app.command("simulate", context_settings=ANY_OPTIONS)(simulate_is_missing)


def main() -> None:
    """Run the command line."""
    with report_errors("xco", CODES):
        app()
