"""policer lead, capacity and audit: the fleet as a whole, and its changes."""

from itertools import islice
from typing import Any

from common.output import print_json
from policer.cli.shared.export import FEW, LINES, Jsonl, Latest, between, copied, whole
from policer.cli.shared.places import PAGE, place
from policer.cli.shared.remote import URL, Json, TokenFile, Url, reach
from policer.cli.shared.tables import moment, rate, show
from policer.cli.shared.times import Since, Until

CAPACITY_HEADINGS = (
    "host",
    ">capacity",
    ">promised",
    ">free",
    ">forwarded",
    "overcommit",
    "source",
)
_OVERRIDDEN = dict.fromkeys(("on", "off"), ", by an operator (`policer brake`)")
AUDIT_HEADINGS = ("when", "who", "id", "from", "did", "what")


def lead(url: Url = URL, token_file: TokenFile = None, json: Json = False) -> None:
    """Show which policer leads, in which epoch, and which brakes are on."""
    with reach(url, token_file) as client:
        known = client.get(place("leadership")).body
    if json:
        print_json(known)
    else:
        show(("", ""), _lead_rows(known))


def _lead_rows(known: Any) -> list[tuple[str, str]]:
    leads = "yes" if known["leading"] else "no"
    hosts = ", ".join(known["braked_hosts"])
    return [
        ("this policer leads", leads if not known["problem"] else f"not known: {known['problem']}"),
        ("who leads", known["holder"] or "no leader known"),
        ("epoch", str(known["epoch"])),
        ("brake", "on: escalation is stopped" if known["braked"] else "off"),
        ("brakes of hosts", f"on: {hosts}" if hosts else "off"),
        ("brake mode", f"{known['brake']}{_OVERRIDDEN.get(known['brake'], '')}"),
    ]


def capacity(url: Url = URL, token_file: TokenFile = None, json: Json = False) -> None:
    """Show each host's capacity, how much of it is promised, and what is left."""
    with reach(url, token_file) as client:
        found = client.get(place("capacity")).body
    if json:
        print_json(found)
    else:
        show(CAPACITY_HEADINGS, [*map(_capacity_row, found["hosts"]), _capacity_row(found)])


def _capacity_row(item: Any) -> tuple[str, ...]:
    rates = (rate(item[f"{name}_pps"]) for name in ("capacity", "promised", "free", "forwarded"))
    overcommit = {True: "yes", False: "no", None: ""}[item.get("overcommit")]
    return (item.get("host", "all"), *rates, overcommit, item.get("source", ""))


def audit(
    limit: Latest = None,
    since: Since = None,
    until: Until = None,
    jsonl: Jsonl = False,
    url: Url = URL,
    token_file: TokenFile = None,
    json: Json = False,
) -> None:
    """Show changes and their actors, the latest last; takes a token of scope admin."""
    times = between(since, until)
    if jsonl:
        whole(limit, "--json" if json else "")
    with reach(url, token_file) as client:
        if jsonl:
            copied(client.export(place("audit"), LINES, **times))
            return
        most = limit or FEW
        found = list(islice(client.items(place("audit"), page=min(most, PAGE), **times), most))
    found.reverse()
    if json:
        print_json(found)
    else:
        show(AUDIT_HEADINGS, map(_audit_row, found))


def _audit_row(item: Any) -> tuple[str, ...]:
    who = (item["actor"], item["actor_id"] or "-", item["address"] or "-")
    return moment(item["at"]), *who, item["action"], item["target"]
