"""policer fit and what-if: which hosts have room, and what happens when some are lost."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from common.command import EXIT_FAILED
from common.output import print_json
from common.setpoint import parse_setpoint
from policer.cli.shared.places import place
from policer.cli.shared.remote import URL, Json, TokenFile, Url, reach
from policer.cli.shared.tables import host_state, rate, show
from policer.cli.shared.units import packets_of, reserve_pps
from policer.contracts.contract import PACKET_BYTES
from policer.contracts.placement import Guaranteed, Move, Room, fitting, moved, rooms_after
from policer.errors import SettingsError

if TYPE_CHECKING:
    from policer.cli.shared.client import Client

FIT_HEADINGS = ("host", ">capacity", ">promised", ">free", ">free then")
MOVE_HEADINGS = ("from", "router", ">takes", "to")
NO_ROOM = "no host has room"
UNTRUSTED = {"gone", "distrusted", "deaf", "refuses", "suspended"}
"""States of hosts to which nothing should move."""

Guarantee = Annotated[
    str,
    typer.Argument(
        metavar="RATE", help="The guarantee, such as 20kpps or 50Mb/s.", show_default=False
    ),
]
PacketBytes = Annotated[
    int,
    typer.Option(min=64, max=65_535, help="Mean packet size assumed for a rate in bits/s."),
]
Cost = Annotated[
    float,
    typer.Option(min=0.01, max=100, help="Cost of one packet relative to an ordinary one (1)."),
]
Lost = Annotated[
    list[str],
    typer.Option("--lose", metavar="HOST", help="A failed host; repeatable."),
]


def fit(
    guarantee: Guarantee,
    cost: Cost = 1.0,
    packet_bytes: PacketBytes = PACKET_BYTES,
    url: Url = URL,
    token_file: TokenFile = None,
    json: Json = False,
) -> None:
    """List the hosts with room for one more guarantee, the fullest first; exit code 1 if none.

    Hosts that are gone, suspended, distrusted or refuse orders are left out.
    """
    takes = cost * packets_of(parse_setpoint(guarantee, field="RATE"), packet_bytes)
    with reach(url, token_file) as client:
        found = fitting(_rooms(client), takes)
    if json:
        print_json({"takes_pps": takes, "hosts": [_room_json(one, takes) for one in found]})
    elif found:
        show(FIT_HEADINGS, [_fit_row(one, takes) for one in found])
    if not found:
        typer.echo(f"{NO_ROOM} for {rate(takes)}: add one, or lower a guarantee", err=True)
        raise typer.Exit(EXIT_FAILED)


def what_if(lose: Lost, url: Url = URL, token_file: TokenFile = None, json: Json = False) -> None:
    """Show where guaranteed routers of lost hosts could go; exit code 1 if some find no place.

    Nothing is moved. The largest guarantee goes first, each to the fullest host with room.
    """
    lost = set(lose)
    with reach(url, token_file) as client:
        for name in sorted(lost):
            client.get(place("hosts", name))
        rooms = [one for one in _rooms(client) if one.host not in lost]
        routers = [_guaranteed(item) for item in client.items(place("contracts"))]
    if not rooms:
        fix = "leave one that is heard out of --lose"
        raise SettingsError("--lose", "no host would be left to move routers to", fix)
    moves = moved(rooms, routers, lost)
    if json:
        print_json(_moves_json(moves, rooms_after(rooms, moves, lost)))
    else:
        _show_moves(moves, lost)
    if any(move.to is None for move in moves):
        raise typer.Exit(EXIT_FAILED)


def _rooms(client: "Client") -> list[Room]:
    """Return the hosts that can take routers; no simulated ones if there are real ones."""
    items = list(client.items(place("hosts")))
    real = [one for one in items if not one["live"].get("simulated")]
    return [_room(one) for one in real or items if host_state(one["live"]) not in UNTRUSTED]


def _room(item: Any) -> Room:
    entry = item["entry"]
    return Room(entry["name"], entry["capacity_pps"], item["live"]["promised_pps"])


def _guaranteed(item: Any) -> Guaranteed:
    """Return how much a contract takes on its router's host, by the terms that hold now."""
    terms = item["terms"] or item["contract"]
    return Guaranteed(item["host"] or item["seen_on"] or "", item["vr"], reserve_pps(terms))


def _fit_row(room: Room, takes: float) -> tuple[str, ...]:
    numbers = (room.capacity_pps, room.promised_pps, room.free_pps, room.free_pps - takes)
    return (room.host, *map(rate, (*numbers[:3], max(0.0, numbers[3]))))


def _room_json(room: Room, takes: float) -> dict[str, Any]:
    return {
        "host": room.host,
        "capacity_pps": room.capacity_pps,
        "promised_pps": room.promised_pps,
        "free_pps": room.free_pps,
        "free_then_pps": max(0.0, room.free_pps - takes),
    }


def _moves_json(moves: Sequence[Move], rooms: Sequence[Room]) -> dict[str, Any]:
    return {
        "moves": [{**move.router._asdict(), "to": move.to} for move in moves],
        "unplaced": sum(move.to is None for move in moves),
        "hosts": [_room_json(one, 0.0) for one in rooms],
    }


def _show_moves(moves: Sequence[Move], lost: set[str]) -> None:
    if not moves:
        typer.echo(f"nothing is guaranteed to routers of {', '.join(sorted(lost))}")
        return
    show(MOVE_HEADINGS, map(_move_row, moves))
    unplaced = [move.router.pps for move in moves if move.to is None]
    if unplaced:
        typer.echo(
            f"{len(unplaced)} of {len(moves)} routers find no place; they take"
            f" {rate(sum(unplaced))} in all",
            err=True,
        )


def _move_row(move: Move) -> tuple[str, ...]:
    one = move.router
    return one.host, one.vr, rate(one.pps), move.to or NO_ROOM
