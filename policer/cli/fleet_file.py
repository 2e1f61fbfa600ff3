"""policer export, plan and apply: the fleet as a file."""

import sys
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from common.command import EXIT_FAILED
from common.output import fitting_console, print_json
from common.printable import say
from policer.cli.shared.places import place
from policer.cli.shared.remote import URL, Json, TokenFile, Url, reach
from policer.cli.shared.replay import Replay, replay_s, show_replay
from policer.cli.shared.tables import rate, show
from policer.errors import Problem, SettingsError
from policer.fleetfile.document import FleetFile, bare
from policer.fleetfile.reading import Read, located, read_file
from policer.fleetfile.words import change_lines, summary

if TYPE_CHECKING:
    from policer.cli.shared.client import Answer, Client

EXIT_CHANGES = 4
"""Exit code of `policer plan` if there are changes. terraform's 2 is wrong usage here."""
PATIENCE_S = 120.0
"""How long to wait for an answer about a large fleet."""
HEADINGS = ("host", ">capacity", ">promised", ">would be", "overcommit")

File = Annotated[
    str, typer.Argument(metavar="FILE", help="File in TOML or JSON (-: standard input).")
]
FileOrNone = Annotated[
    str | None, typer.Argument(metavar="[FILE]", help="File in TOML or JSON (-: standard input).")
]
Keep = Annotated[
    bool, typer.Option("--keep", help="Keep what the file does not name (default: remove it).")
]


def export(url: Url = URL, token_file: TokenFile = None, json: Json = False) -> None:
    """Print hosts, contracts, classes and tenants as one TOML file, or as JSON; no tokens."""
    from policer.fleetfile.writing import json_of, toml_of  # noqa: PLC0415  part of the extra

    with reach(url, token_file, PATIENCE_S) as client:
        body = client.get(place("fleet")).body
    try:
        file = msgspec.convert(body, FleetFile)
    except msgspec.ValidationError as error:
        problem = f"the policer there has another format: {error}"
        raise SettingsError("--url", problem, "export with its own version") from error
    sys.stdout.write(json_of(file) if json else toml_of(file))


def plan(
    file: File,
    keep: Keep = False,
    replay: Replay = None,
    url: Url = URL,
    token_file: TokenFile = None,
    json: Json = False,
) -> None:
    """Show what a file would change; change nothing. Exit code 4 if there is anything to do."""
    more = {} if (length := replay_s(replay)) is None else {"replay_s": length}
    read = read_file(file)
    with reach(url, token_file, PATIENCE_S) as client:
        made = _made(client, read, keep=keep, **more).body
    if json:
        print_json(made)
    else:
        _show(made)
    _check(made, read)
    if made["changes"]:
        raise typer.Exit(EXIT_CHANGES)


def apply(
    file: FileOrNone = None,
    keep: Keep = False,
    plan: Annotated[
        str | None, typer.Option("--plan", metavar="ID", help="Apply this earlier plan.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Ask nothing.")] = False,
    url: Url = URL,
    token_file: TokenFile = None,
    json: Json = False,
) -> None:
    """Change the fleet to match a file, all or nothing. Shows the changes, and asks first."""
    if (file is None) is (plan is None):
        raise SettingsError("apply", "one of FILE and --plan is needed", "give one of the two")
    if plan is not None and keep:
        raise SettingsError("--keep", "the plan says already what is kept", "leave it out")
    read = None if file is None else read_file(file)
    with reach(url, token_file, PATIENCE_S) as client:
        if read is not None:
            made = _made(client, read, keep=keep)
        else:
            made = client.get(place("plans", plan or ""))
        if not json:
            _show(made.body)
        _check(made.body, read)
        if made.body["changes"] and made.body["applied_at"] is None:
            if not yes:
                _ask(made.body, can_be_asked=sys.stdin.isatty() and not json)
            made = client.confirm(place("plans", made.body["id"], "apply"), made.etag)
    if json:
        print_json(made.body)
    elif made.body["applied_at"] is not None:
        typer.echo(f"applied: plan {made.body['id']} in the audit log")


def _made(client: "Client", read: Read, *, keep: bool, **more: int) -> "Answer":
    """Have a plan made of a file."""
    return client.post(place("plans"), {"fleet": bare(read.file), "keep": keep, **more})


def _show(made: Any) -> None:
    """Show the changes of a plan."""
    console = fitting_console()
    for line in change_lines(made["changes"]):
        console.print(line, soft_wrap=True)
    if made["hosts"]:
        show(HEADINGS, map(_host_row, made["hosts"]))
    if made["changes"] or made["admissible"]:
        console.print(summary(made["changes"]))
    if made["changes"] and made["needs"] == "admin":
        console.print("to apply it takes a token with the scope admin")
    show_replay(made.get("replay"))


def _host_row(item: Any) -> tuple[str, ...]:
    promised = (rate(item["before_pps"]), rate(item["promised_pps"]))
    overcommit = "yes" if item["overcommit"] else "no"
    return item["host"], rate(item["capacity_pps"]), *promised, overcommit


def _check(made: Any, read: Read | None) -> None:
    """Show the problems of a plan, and exit if there are any."""
    if made["admissible"]:
        return
    problems = [Problem(one["field"], one["problem"], one["fix"]) for one in made["problems"]]
    for mistake in located(read, problems):
        say(f"policer: {mistake}", err=True)
    raise typer.Exit(EXIT_FAILED)


def _ask(made: Any, *, can_be_asked: bool) -> None:
    """Continue if the operator agrees, otherwise exit.

    Raises:
        SettingsError: there is no terminal to ask the operator.
    """
    if not can_be_asked:
        problem = "missing, and there is no terminal to ask at"
        raise SettingsError("--yes", problem, "look at `policer plan`, then give --yes")
    gone = sum(change["action"] == "remove" for change in made["changes"])
    question = f"Apply these changes, which REMOVE {gone}?" if gone else "Apply these changes?"
    if not typer.confirm(question, err=True):
        typer.echo("nothing was changed", err=True)
        raise typer.Exit(EXIT_FAILED)
