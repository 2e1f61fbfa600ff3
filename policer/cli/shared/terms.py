"""Options of commands that set terms, and the terms that they stand for."""

import inspect
import math
import re
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import partial
from typing import Annotated, Any, get_args, get_type_hints

import typer

from policer.cli.shared.units import given_rate
from policer.contracts.contract import Punish
from policer.contracts.ladder import Step
from policer.contracts.schedule import DAYS
from policer.errors import SettingsError

NONE = "none"
"""Value that removes a term."""

Guarantee = Annotated[
    str | None,
    typer.Option(help="Guaranteed throughput, e.g. 20kpps or 50Mb/s."),
]
Ceiling = Annotated[str | None, typer.Option(help="Maximum throughput; `none` removes it.")]
PacketBytes = Annotated[
    int | None,
    typer.Option(min=64, max=65_535, help="Mean packet size assumed for rates in bits/s."),
]
Weight = Annotated[
    float | None,
    typer.Option(help="Its share of the capacity left, relative to other routers' weights."),
]
Burst = Annotated[
    str | None,
    typer.Option(
        help="Packets that its setpoint allows beyond its rate over any window; "
        "`none` is 0.2 s of the setpoint."
    ),
]
SavedBurst = Annotated[
    float | None,
    typer.Option(help="Packets that it may forward above its ceiling after using less."),
]
Measures = Annotated[
    str | None,
    typer.Option(
        help=f"Measures against misbehaviour, mildest first, of {','.join(Step)}; or `none`."
    ),
]
DryRun = Annotated[
    bool | None,
    typer.Option("--dry-run/--no-dry-run", help="Only report misbehaviour; do not punish."),
]
PunishWhen = Annotated[
    str | None,
    typer.Option(
        "--punish",
        help="When it may be punished: never, when_harming (its host is contended), or always.",
    ),
]
Cost = Annotated[
    float | None, typer.Option(help="Cost of one of its packets relative to an ordinary one (1).")
]


ClassOf = Annotated[
    str | None,
    typer.Option("--class", help="Service class that sets its terms; `none`: its own terms."),
]
ValidFrom = Annotated[
    str | None,
    typer.Option("--from", help="Start, e.g. 2027-01-01T00:00Z; `none` is immediately."),
]
ValidUntil = Annotated[
    str | None, typer.Option("--until", help="End, written alike; `none` is never.")
]
HoursOf = Annotated[
    list[str] | None,
    typer.Option(
        "--hours",
        help="When it holds, such as `mon-fri 08:00-18:00` or, by the terms of a class, "
        "`22:00-06:00=night`; may be given again; `none` is always.",
    ),
]
ZoneOf = Annotated[
    str | None, typer.Option("--zone", help="The time zone of the hours, such as Europe/Berlin.")
]
Tenant = Annotated[
    str | None,
    typer.Option(help="Tenant of the router, for tokens limited to tenants; `none`: no tenant."),
]

_HOURS = re.compile(
    r"(?:(?P<days>[a-z,-]+) +)?(?P<start>\d\d:\d\d)-(?P<end>\d\d:\d\d)(?:=(?P<name>\S+))?"
)


def _terms(
    *,
    guarantee: Guarantee = None,
    ceiling: Ceiling = None,
    weight: Weight = None,
    burst: Burst = None,
    saved_burst: SavedBurst = None,
    measures: Measures = None,
    dry_run: DryRun = None,
    punish: PunishWhen = None,
    cost: Cost = None,
    packet_bytes: PacketBytes = None,
) -> dict[str, Any]:
    """Return the given terms."""
    given: dict[str, Any] = {
        "weight": weight,
        "burst_packets": saved_burst,
        "dry_run": dry_run,
        "punish": None if punish is None else _one_of("--punish", punish, get_args(Punish)),
        "cost": cost,
        "measures": None if measures is None else steps(measures),
        "packet_bytes": packet_bytes,
    }
    kept = {name: value for name, value in given.items() if value is not None}
    if guarantee is not None:
        nothing = guarantee.strip() in {"0", NONE}
        some = {} if nothing else given_rate("guarantee", guarantee, "--guarantee")
        kept |= some or {"guarantee_pps": 0.0}
    if ceiling is not None:
        lifted = ceiling.strip() == NONE
        kept |= {"ceiling_pps": None} if lifted else given_rate("ceiling", ceiling, "--ceiling")
    if burst is not None:
        kept["burst"] = _unless_none(burst, packets)
    return kept


def _schedule(
    *,
    of_class: ClassOf = None,
    valid_from: ValidFrom = None,
    valid_until: ValidUntil = None,
    hours: HoursOf = None,
    zone: ZoneOf = None,
    tenant: Tenant = None,
) -> dict[str, Any]:
    """Return the given class, dates, hours and tenant."""
    given: dict[str, Any] = {}
    if of_class is not None:
        given["class"] = _unless_none(of_class, str)
    for name, option, text in (
        ("valid_from", "--from", valid_from),
        ("valid_until", "--until", valid_until),
    ):
        if text is not None:
            given[name] = _unless_none(text, partial(instant, option))
    if hours:
        given["hours"] = [] if hours == [NONE] else [window(text) for text in hours]
    if zone is not None:
        given["zone"] = zone
    if tenant is not None:
        given["tenant"] = _unless_none(tenant, str.strip)
    return given


def takes_terms(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options of a class's terms to a command, which gets them as `given`."""
    return _with_options(command, _terms)


def takes_contract(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options of all terms of a contract to a command, which gets them as `given`."""
    return _with_options(command, _terms, _schedule)


def _with_options(
    command: Callable[..., None], *parts: Callable[..., dict[str, Any]]
) -> Callable[..., None]:
    """Return a command with the parameters of parts instead of `given`."""
    added = {part: inspect.signature(part).parameters for part in parts}

    def wrapped(**values: Any) -> None:
        given: dict[str, Any] = {}
        for part, names in added.items():
            given |= part(**{name: values.pop(name) for name in names})
        command(given=given, **values)

    own = dict(inspect.signature(command).parameters)
    del own["given"]
    arguments = [p for p in own.values() if p.default is inspect.Parameter.empty]
    options = [p for names in added.values() for p in names.values()]
    rest = [p for p in own.values() if p.default is not inspect.Parameter.empty]
    every = [p.replace(kind=p.KEYWORD_ONLY) for p in (*arguments, *options, *rest)]
    wrapped.__signature__ = inspect.Signature(every)  # type: ignore[attr-defined]
    hints = [get_type_hints(one, include_extras=True) for one in (*parts, command)]
    known = {name: hint for some in hints for name, hint in some.items()}
    wrapped.__annotations__ = {p.name: known[p.name] for p in every}
    wrapped.__doc__, wrapped.__name__ = command.__doc__, command.__name__
    return wrapped


def packets(text: str) -> float:
    """Return a number of packets.

    Raises:
        SettingsError: it is not a number of packets.
    """
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        fix = f"write digits, such as 4000, or {NONE}"
        raise SettingsError("--burst", f"{text!r} is no number of packets", fix)
    return number


def steps(text: str) -> list[str]:
    """Return the measures of a comma-separated list.

    Raises:
        SettingsError: there is no such measure.
    """
    names = [name.strip() for name in text.split(",")] if text.strip() != NONE else []
    for name in names:
        if name not in list(Step):
            fix = f"write some of {','.join(Step)}, or {NONE}"
            raise SettingsError("--measures", f"there is no measure {name!r}", fix)
    return names


def instant(option: str, text: str) -> str:
    """Return a date and time with its zone, as RFC 3339 writes it.

    Raises:
        SettingsError: it is no time, or it has no zone.
    """
    try:
        at = datetime.fromisoformat(text.strip())
    except ValueError:
        at = None
    if at is None or at.tzinfo is None:
        problem = f"{text!r} is no date with a time and a zone"
        raise SettingsError(option, problem, "write one such as 2027-01-01T00:00Z")
    return at.isoformat()


def window(text: str) -> dict[str, Any]:
    """Return a window of the week.

    Raises:
        SettingsError: it is not a window.
    """
    found = _HOURS.fullmatch(text.strip().lower() if "=" not in text else text.strip())
    if found is None:
        fix = "write `mon-fri 08:00-18:00`, `sat,sun 00:00-00:00` or `22:00-06:00=night`"
        raise SettingsError("--hours", f"{text!r} is no window of the week", fix)
    made: dict[str, Any] = {"start": found["start"], "end": found["end"]}
    if found["days"] is not None:
        made["days"] = [day for part in found["days"].split(",") for day in _days(part)]
    if found["name"] is not None:
        made["class"] = found["name"]
    return made


def schedule_words(contract: Mapping[str, Any]) -> str:
    """Describe when a contract holds, in the syntax of its options; empty if always."""
    words = [f"from {contract['valid_from']}" if contract["valid_from"] else ""]
    words += [f"until {contract['valid_until']}" if contract["valid_until"] else ""]
    words += [_window_words(one) for one in contract["hours"]]
    words += [contract["zone"] if contract["hours"] else ""]
    return ", ".join(word for word in words if word)


def _window_words(window: Mapping[str, Any]) -> str:
    days = "" if len(window["days"]) == len(DAYS) else _days_words(window["days"]) + " "
    by = f"={window['class']}" if window["class"] else ""
    return f"{days}{window['start']}-{window['end']}{by}"


def _days_words(days: list[str]) -> str:
    """Return days as they are written: three or more in a row as a range."""
    begin = DAYS.index(days[0])
    in_a_row = days == [DAYS[(begin + n) % 7] for n in range(len(days))]
    return f"{days[0]}-{days[-1]}" if in_a_row and len(days) > 2 else ",".join(days)


def _days(part: str) -> list[str]:
    first, dash, last = part.partition("-")
    for day in (first, last if dash else first):
        _one_of("--hours", day, DAYS)
    begin = DAYS.index(first)
    end = DAYS.index(last) if dash else begin
    return [DAYS[n % 7] for n in range(begin, end + (1 if end >= begin else 8))]


def _one_of(option: str, text: str, known: tuple[str, ...]) -> str:
    if text not in known:
        raise SettingsError(option, f"{text!r} is none", f"give one of {', '.join(known)}")
    return text


def _unless_none(text: str, parse: Callable[[str], Any]) -> Any:
    return None if text.strip() == NONE else parse(text)
