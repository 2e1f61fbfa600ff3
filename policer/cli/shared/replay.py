"""policer plan --replay: effect of a plan on recorded traffic."""

from typing import Annotated, Any

import typer

from common.printable import say
from policer.cli.shared.tables import moment, rate, show
from policer.cli.shared.times import hours, seconds
from policer.errors import SettingsError
from policer.history.window import LONGEST_REPLAY_S

LEAST_S = 60
SHOWN = 20
"""Routers in the table; the answer has all."""
SOME = 5
HOSTS = ("host", ">capacity", ">most wanted", "at", ">overloaded", ">recorded")
ROUTERS = ("host", "router", ">held back", ">newly lost", ">time")

Replay = Annotated[
    str | None,
    typer.Option(
        metavar="TIME",
        help="Hold the contracts against recorded traffic of this time until now: 30m, 24h or 7d.",
        show_default=False,
    ),
]


def replay_s(text: str | None) -> int | None:
    """Return how many seconds to replay; None stays None.

    Raises:
        SettingsError: it is not a duration, or out of bounds.
    """
    if text is None:
        return None
    length, fix = seconds(text), "write 30m, 24h or 7d"
    if length is None:
        raise SettingsError("--replay", f"{text!r} is no length of time", fix)
    if not LEAST_S <= length <= LONGEST_REPLAY_S:
        raise SettingsError("--replay", f"{text} is not between 1m and 400d", fix)
    return length


def show_replay(found: Any) -> None:
    """Show the effect of contracts; nothing if it was not requested."""
    if found is None:
        return
    points = "minute" if found["span_s"] == 60 else "second"
    say(f"replay of {moment(found['begin'])} to {moment(found['end'])}, a point each {points}:")
    if found["hosts"]:
        show(HOSTS, map(_host_row, found["hosts"]))
    if found["routers"]:
        show(ROUTERS, map(_router_row, found["routers"][:SHOWN]))
    for line in _notes(found):
        say(line)


def _notes(found: Any) -> list[str]:
    """Return what the tables do not show."""
    hosts, routers, left_out = found["hosts"], found["routers"], found["left_out"]
    notes = []
    if not hosts and not left_out:
        notes.append("no host is concerned: there is nothing to replay")
    elif not routers and any(host["known_s"] for host in hosts):
        notes.append("no ceiling would have held anything back")
    if hosts and not any(host["known_s"] for host in hosts):
        notes.append("nothing is recorded of these hosts in this time")
    if len(routers) > SHOWN:
        notes.append(f"{len(routers) - SHOWN} more routers: --json has them")
    if left_out:
        some = ", ".join(left_out[:SOME]) + (", ..." if len(left_out) > SOME else "")
        notes.append(f"not replayed, too much to read: {some} (ask for less time)")
    return notes


def _host_row(host: Any) -> tuple[str, ...]:
    return (
        host["host"],
        rate(host["capacity_pps"]),
        rate(host["most_pps"] if host["known_s"] else None),
        "-" if host["most_at"] is None else moment(host["most_at"]),
        hours(host["overloaded_s"]),
        hours(host["known_s"]),
    )


def _router_row(router: Any) -> tuple[str, ...]:
    packets = (f"{router[f'{what}_packets']:.0f}" for what in ("held_back", "lost"))
    return router["host"], router["vr"], *packets, hours(router["held_back_s"])
