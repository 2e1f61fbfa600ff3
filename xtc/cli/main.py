"""xtc: the command line of the daemon and its clients."""

import time
from pathlib import Path
from typing import Annotated, Literal

import typer

from common.burst import parse_burst
from common.command import EXIT_FAILED, command_line, report_errors
from common.errors import Busy
from common.output import print_json
from common.printable import say
from common.setpoint import parse_setpoint
from common.units import parse_duration, parse_rate
from xtc.cli.config import app as config_app
from xtc.cli.discover import discover
from xtc.cli.epoch import app as epoch_app
from xtc.cli.journal import app as journal_app
from xtc.cli.sandbox import app as sandbox_app
from xtc.cli.simulate import simulate
from xtc.cli.status import print_status
from xtc.cli.top import watch
from xtc.config.file import DEFAULT_PATH, load_config
from xtc.daemon.client import Client
from xtc.errors import Refused, Unreachable
from xtc.exit_codes import CODES
from xtc.lease import Kind
from xtc.wire import Activate, Deactivate, Limit, Observe, Pause, Request, Resume, Retune, Status

app = command_line(
    "xtc",
    about="Hold virtual routers at their promised packet rates by adjusting their CPU caps.",
    epilog="Exit codes: 0 done, 1 refused or failed, 2 wrong usage or configuration, "
    "3 no daemon answers, 4 the daemon's state directory was taken over.",
)
app.add_typer(config_app, name="config")
app.add_typer(journal_app, name="journal")
app.add_typer(epoch_app, name="epoch")
app.add_typer(sandbox_app, name="sandbox")
app.command()(simulate)
app.command()(discover)

RuntimeDir = Annotated[
    Path, typer.Option(envvar="XTC_RUNTIME_DIR", help="Directory of the daemon's sockets.")
]
StateDir = Annotated[Path, typer.Option(envvar="XTC_STATE_DIR", help="Directory of the journal.")]
ConfigPath = Annotated[Path, typer.Option("--config", "-c", envvar="XTC_CONFIG")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Vr = Annotated[str, typer.Argument(help="Name of the router in the configuration.")]
Setpoint = Annotated[
    str, typer.Option(help="A packet rate, such as 20kpps, or a bit rate, such as 50Mb/s.")
]
Burst = Annotated[
    str | None,
    typer.Option(help="Burst beyond the setpoint: 4000 (packets), 2Mb, or 200ms, the default."),
]
Ttl = Annotated[str | None, typer.Option(help="Duration, e.g. 10min (default: no expiry).")]
Epoch = Annotated[int, typer.Option(min=0, help="Epoch of the policer; lower epochs are rejected.")]
Sequence = Annotated[int, typer.Option(min=0, help="Sequence number within the epoch.")]
Punish = Annotated[
    bool, typer.Option("--punish", help="Keep the cap even while the meter is blind.")
]

RELEASE_S = 10.0
"""How long `release` retries what could not be undone immediately."""
ASK_AGAIN_S = 0.5

HUNG = "kill it and try again, or take {0} from it with `xtc release --all --force`"
FORCED = (
    "{0} is taken from it. If the daemon wakes up it ends, but it may first write caps for one "
    "more period: kill it, then run `xtc release --all` again. Originals stay in the journal "
    "until then"
)

RUNTIME = Path("/run/xtc")
STATE = Path("/var/lib/xtc")


@app.command()
def run(config: ConfigPath = DEFAULT_PATH) -> None:
    """Run the daemon in the foreground."""
    from xtc.daemon.build import run_daemon  # noqa: PLC0415  the daemon takes 0.2 s to load

    run_daemon(load_config(config), config)


@app.command()
def status(
    vr: Annotated[str | None, typer.Argument()] = None,
    runtime_dir: RuntimeDir = RUNTIME,
    json: Json = False,
) -> None:
    """Show the state of the routers."""
    _ask(Status(vr), runtime_dir, json)


@app.command()
def top(
    runtime_dir: RuntimeDir = RUNTIME,
    json: Json = False,
    ticks: Annotated[int, typer.Option(min=0, help="Exit after N ticks (0 = never).")] = 0,
) -> None:
    """Watch the routers live; with --json, one line a tick."""
    with Client(runtime_dir) as client:
        watch(client.telemetry(), as_json=json, ticks=ticks)


@app.command()
def activate(
    vr: Vr,
    setpoint: Setpoint,
    burst: Burst = None,
    ttl: Ttl = None,
    epoch: Epoch = 0,
    sequence: Sequence = 0,
    punish: Punish = False,
    runtime_dir: RuntimeDir = RUNTIME,
    json: Json = False,
) -> None:
    """Start holding a router at a setpoint."""
    _ask(_grant(Activate, vr, setpoint, burst, ttl, epoch, sequence, punish), runtime_dir, json)


@app.command()
def retune(
    vr: Vr,
    setpoint: Setpoint,
    burst: Burst = None,
    ttl: Ttl = None,
    epoch: Epoch = 0,
    sequence: Sequence = 0,
    punish: Punish = False,
    runtime_dir: RuntimeDir = RUNTIME,
    json: Json = False,
) -> None:
    """Give a controlled router another setpoint."""
    _ask(_grant(Retune, vr, setpoint, burst, ttl, epoch, sequence, punish), runtime_dir, json)


@app.command()
def pause(vr: Vr, runtime_dir: RuntimeDir = RUNTIME, json: Json = False) -> None:
    """Keep a router's cap as it is."""
    _ask(Pause(vr), runtime_dir, json)


@app.command()
def resume(vr: Vr, runtime_dir: RuntimeDir = RUNTIME, json: Json = False) -> None:
    """Resume control of a paused router."""
    _ask(Resume(vr), runtime_dir, json)


@app.command()
def observe(
    state: Annotated[
        Literal["on", "off"],
        typer.Argument(help="Switch observe mode: compute caps without writing them."),
    ],
    runtime_dir: RuntimeDir = RUNTIME,
    json: Json = False,
) -> None:
    """Show the cap of every router without writing it, or write caps again."""
    _ask(Observe(state == "on"), runtime_dir, json)


@app.command()
def limit(
    vr: Vr,
    rate: Annotated[str, typer.Option(help="A packet rate for each interface, or `none`.")],
    ttl: Ttl = None,
    runtime_dir: RuntimeDir = RUNTIME,
    json: Json = False,
) -> None:
    """Limit the traffic from the host into a router, or lift the limit."""
    value = None if rate == "none" else parse_rate(rate, field="--rate")
    if value is None and ttl is not None:
        raise typer.BadParameter("--ttl is how long a limit holds; leave it out to lift one")
    _ask(Limit(vr, value, _ttl(ttl)), runtime_dir, json)


@app.command()
def release(
    vr: Annotated[str | None, typer.Argument()] = None,
    every: Annotated[bool, typer.Option("--all", help="Release every router.")] = False,
    force: Annotated[
        bool,
        typer.Option(
            "--force", help="With --all: even if a daemon holds the state and does not answer."
        ),
    ] = False,
    runtime_dir: RuntimeDir = RUNTIME,
    state_dir: StateDir = STATE,
    json: Json = False,
) -> None:
    """Restore the original settings and stop control; --all works without a daemon, too."""
    if (vr is None) is not every:
        raise typer.BadParameter("name one router, or give --all")
    if force and not every:
        raise typer.BadParameter("--force goes with --all")
    if vr is not None:
        _release(vr, runtime_dir, json)
        return
    from xtc.daemon.build import release_all  # noqa: PLC0415  the daemon takes 0.2 s to load

    try:
        outcome = release_all(state_dir)
    except Busy:
        try:
            _release(None, runtime_dir, json)
        except Unreachable:
            _judge_holders(state_dir, runtime_dir, force=force)
            if not force:
                raise
        else:
            return
        outcome = release_all(state_dir, force=True)
    _print_released(outcome, json=json)
    if any(words != "released" for words in outcome.values()):
        raise typer.Exit(EXIT_FAILED)


def _release(vr: str | None, runtime_dir: Path, json: bool) -> None:
    """Ask the daemon, and retry while a hypervisor needs time."""
    until = time.monotonic() + RELEASE_S
    while True:
        try:
            _ask(Deactivate(vr), runtime_dir, json)
        except Refused as refused:
            if refused.code != "not_released" or time.monotonic() > until:
                raise
            time.sleep(ASK_AGAIN_S)
        else:
            return


def _judge_holders(state_dir: Path, runtime_dir: Path, *, force: bool) -> None:
    """Report which process holds the state directory without answering.

    Raises:
        Busy: it does not hang: it is another command, or has another runtime directory.
    """
    from xtc.daemon.holder import look, obstacle  # noqa: PLC0415  needed here alone

    found = look(state_dir)
    if problem := obstacle(found, runtime_dir):
        raise Busy(f"{state_dir} is held, and not taken: {problem}")
    who = ", ".join(map(str, found)) or "a process that cannot be seen from here"
    words = (FORCED if force else HUNG).format(state_dir)
    say(f"warning: {who} holds {state_dir} and does not answer; {words}", err=True)


def _print_released(outcome: dict[str, str], *, json: bool) -> None:
    if json:
        print_json(outcome)
        return
    if not outcome:
        say("nothing was capped")
    for name, words in outcome.items():
        say(f"{name}: {words}")


def _grant(
    order: type[Activate] | type[Retune],
    vr: str,
    setpoint: str,
    burst: str | None,
    ttl: str | None,
    epoch: int,
    sequence: int,
    punish: bool,
) -> Activate | Retune:
    asked = parse_setpoint(setpoint, field="--setpoint")
    kind = Kind.PUNISHMENT if punish else Kind.NORMAL
    beyond = None if burst is None else parse_burst(burst, asked, field="--burst")
    return order(vr, asked.pps, epoch, sequence, _ttl(ttl), kind, asked.bps, beyond)


def _ttl(text: str | None) -> float | None:
    return None if text is None else parse_duration(text, field="--ttl")


def _ask(request: Request, runtime_dir: Path, json: bool) -> None:
    with Client(runtime_dir) as client:
        answer = client.ask(request)
    if json:
        print_json(answer.routers)
    else:
        print_status(answer.routers, answer.drops)


def main() -> None:
    """Run the command line."""
    with report_errors("xtc", CODES):
        app()
