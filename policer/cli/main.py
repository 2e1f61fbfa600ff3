"""policer: command line of the fleet's policer and of its clients."""

from common.command import command_line, report_errors
from policer.cli.classes import app as class_app
from policer.cli.config import app as config_app
from policer.cli.contract import app as contract_app
from policer.cli.db import app as db_app
from policer.cli.fleet import audit, capacity, lead
from policer.cli.fleet_file import apply, export, plan
from policer.cli.host import app as host_app
from policer.cli.override import app as override_app
from policer.cli.override import brake, epoch_app, exempt, resume, suspend, unexempt
from policer.cli.placement import fit, what_if
from policer.cli.report import report
from policer.cli.router import app as router_app
from policer.cli.shared.local import ConfigPath, folder_of
from policer.cli.shared.remote import POLICER_CODES
from policer.cli.tenant import app as tenant_app
from policer.cli.token import app as token_app
from policer.cli.watch import events, top
from policer.cli.webhook import app as webhook_app
from policer.cli.whoami import whoami
from policer.config.file import load_settings, store_url
from policer.config.schema import DEFAULT_PATH
from policer.extra import extra_needed

app = command_line(
    "policer",
    about="Keep every virtual router of a fleet at what it was promised.",
    epilog="Exit codes: 0 done, 1 refused or failed, 2 wrong usage or configuration, "
    "3 no policer answers.",
)
for _name, _group in (
    ("config", config_app),
    ("db", db_app),
    ("token", token_app),
    ("host", host_app),
    ("contract", contract_app),
    ("tenant", tenant_app),
    ("class", class_app),
    ("router", router_app),
    ("override", override_app),
    ("epoch", epoch_app),
    ("webhook", webhook_app),
):
    app.add_typer(_group, name=_name)
for _command in (
    export,
    plan,
    apply,
    events,
    top,
    lead,
    brake,
    capacity,
    fit,
    what_if,
    report,
    audit,
    whoami,
):
    app.command()(_command)
for _of_host in (suspend, resume):
    host_app.command()(_of_host)
for _of_router in (exempt, unexempt):
    router_app.command()(_of_router)


@app.command()
def serve(config: ConfigPath = DEFAULT_PATH) -> None:
    """Run the policer in the foreground: the service, REST and the page."""
    settings = load_settings(config)
    folder_of(store_url(settings.store))
    from policer.daemon.serve import serve as run  # noqa: PLC0415  the service takes a second to load

    run(settings, config)


def main() -> None:
    """Run the command line."""
    with report_errors("policer", POLICER_CODES), extra_needed():
        app()
