"""xtc journal: show what is recorded, and repair a journal that was damaged."""

from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from common.output import print_json
from common.printable import say
from xtc.errors import JournalError
from xtc.state.journal import JOURNAL, Journal, Ledger, boot_id
from xtc.state.repair import Repair, carry_out, planned, read_all, read_state
from xtc.state.salvage import Salvaged

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Show and repair.")
StateDir = Annotated[Path, typer.Option(envvar="XTC_STATE_DIR", help="Directory of the journal.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")]

STATE = Path("/var/lib/xtc")


@app.command()
def show(state_dir: StateDir = STATE, json: Json = False) -> None:
    """Show the journal, read-only: originals, leases, limits and the highest epoch.

    It works while the daemon runs, and shows the readable parts of a damaged journal.
    """
    found = read_state(state_dir)
    if json:
        print_json([_as_json(name, one) for name, one in found.items()])
        return
    if not found:
        say(f"{state_dir} holds no journal")
    for name, one in found.items():
        say("\n".join(_lines(str(state_dir / name), one)))


def _as_json(name: str, one: Salvaged) -> dict[str, Any]:
    return {
        "file": name,
        "set_aside": name != JOURNAL,
        "this_boot": one.ledger.boot_id == boot_id(),
        "problems": one.problems,
        "ledger": one.ledger,
    }


def _lines(path: str, one: Salvaged) -> list[str]:
    boot = "" if one.ledger.boot_id == boot_id() else ", of another boot"
    return [
        f"{path}: highest epoch {one.ledger.highest_epoch}{boot}",
        *(f"  problem: {problem}" for problem in one.problems),
        *_ledger_lines(one.ledger),
    ]


def _ledger_lines(ledger: Ledger) -> list[str]:
    originals = [
        f"  original of {vr}: {_words(entry.original)} at {_words(entry.spec)}"
        for vr, entry in ledger.entries.items()
    ]
    leases = [
        f"  lease of {vr}: {lease.setpoint}, {lease.kind.value}, "
        f"epoch {lease.epoch}, sequence {lease.sequence}"
        for vr, lease in ledger.leases.items()
    ]
    limits = [f"  limit of {vr}: {', '.join(names)}" for vr, names in ledger.limits.items()]
    shields = [f"  shield of {vr}: {', '.join(names)}" for vr, names in ledger.shields.items()]
    return [*originals, *leases, *limits, *shields]


def _words(value: object) -> str:
    return msgspec.json.encode(value).decode()


@app.command()
def repair(
    state_dir: StateDir = STATE,
    newer: Annotated[
        bool, typer.Option("--newer", help="Of two originals of one place, use the newer.")
    ] = False,
    yes: Yes = False,
    json: Json = False,
) -> None:
    """Rebuild the journal from quarantined ones; the daemon must be stopped.

    Of two originals of one place the older wins: a daemon that starts without its journal mistakes
    its predecessor's caps for originals. Every file is kept under another name.
    """
    with Journal(state_dir) as journal:
        found = read_all(journal.descriptor)
        if not found.keys() - {JOURNAL}:
            _print_done(state_dir, None, [], json=json)
            return
        plan = planned(found, boot_id(), newer_wins=newer)
        if not json or not yes:
            say("\n".join(_plan_lines(plan)), err=True)
        if not yes:
            typer.confirm(f"Write this to {state_dir / JOURNAL}?", abort=True, err=True)
        _print_done(state_dir, plan, carry_out(journal, plan), json=json)


def _plan_lines(plan: Repair) -> list[str]:
    return [
        f"made of {', '.join(plan.sources)}; highest epoch {plan.ledger.highest_epoch}",
        *(f"  note: {note}" for note in plan.notes),
        *_ledger_lines(plan.ledger),
    ]


def _print_done(state_dir: Path, plan: Repair | None, kept: list[str], *, json: bool) -> None:
    if json:
        ledger, notes = (None, ()) if plan is None else (plan.ledger, plan.notes)
        print_json({"ledger": ledger, "notes": notes, "kept": kept})
    elif plan is None:
        say(f"{state_dir} holds no journal that was set aside: there is nothing to repair")
    else:
        say(f"repaired; the files before are kept as {', '.join(kept)}")
        say("start the daemon, or restore the originals with `xtc release --all`")


def ledger_of(journal: Journal) -> Ledger:
    """Return the contents of a journal.

    Raises:
        JournalError: it was damaged and has been set aside.
    """
    if journal.quarantined is not None:
        raise JournalError(
            f"the journal is damaged and was set aside as {journal.quarantined}; "
            "run `xtc journal repair`"
        )
    return journal.ledger
