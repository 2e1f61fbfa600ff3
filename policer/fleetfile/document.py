"""The document: hosts, contracts, classes and tenants in one text; pure.

A host's table without an entry of its own leaves the current entry unchanged. So users who may not
set addresses of daemons can still write contracts.
"""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from functools import cache
from typing import Annotated, Any, Literal, NamedTuple

import msgspec

from policer.contracts.contract import Contract, Rate
from policer.contracts.host import Endpoint, Host, HostName, PublicKey
from policer.contracts.promised import ANYWHERE
from policer.contracts.reach import TenantName
from policer.contracts.schedule import ClassName
from policer.contracts.tenant import Tenant
from policer.errors import Problem
from xtc.wire import VrName

MOST_HOSTS, MOST_CONTRACTS, MOST_NAMED = 5_000, 50_000, 10_000
"""Limits of one document; the last is for classes and tenants."""
REQUIRED = ("requests", "telemetry", "capacity_pps")
"""Required fields of a host's entry."""

Key = tuple[str, str]
"""Host and router of a contract; the host is ANYWHERE if the contract follows its router."""
_Hosts = msgspec.Meta(max_length=MOST_HOSTS)
_Contracts = msgspec.Meta(max_length=MOST_CONTRACTS)
_Named = msgspec.Meta(max_length=MOST_NAMED)


class HostEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A host, and the contracts of this host alone."""

    requests: Endpoint | None = None
    """Where its manager accepts requests; without any field but contracts, the entry stays."""
    telemetry: Endpoint | None = None
    """Where it streams telemetry."""
    capacity_pps: Rate | None = None
    """Total throughput of its routers, packets/s."""
    server_key: PublicKey | None = None
    """The daemon's public CURVE key; TCP needs it."""
    overcommit: bool = False
    """Whether guarantees may exceed the capacity."""
    capacity_source: Literal["operator", "model"] = "operator"
    """Source of the capacity."""
    contracts: Annotated[dict[VrName, Contract], _Contracts] = {}
    """By the routers' names there."""


OF_HOST = tuple(name for name in HostEntry.__struct_fields__ if name != "contracts")
"""The fields of a host's own entry."""


class FleetFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Operators' entries: all of them, or a part."""

    version: Literal[1]
    """Of the format."""
    tenants: Annotated[dict[TenantName, Tenant], _Named] = {}
    classes: Annotated[dict[ClassName, Contract], _Named] = {}
    """Terms that contracts may name."""
    hosts: Annotated[dict[HostName, HostEntry], _Hosts] = {}
    contracts: Annotated[dict[VrName, Contract], _Contracts] = {}
    """Those that follow their routers, by UUID or a name that no other router of the fleet has."""


class Entered(NamedTuple):
    """Current or wanted entries."""

    tenants: Mapping[str, Tenant] = {}
    classes: Mapping[str, Contract] = {}
    hosts: Mapping[str, Host] = {}
    contracts: Mapping[Key, Contract] = {}


def file_of(entered: Entered) -> FleetFile:
    """Return a fleet as a document, in the order of names."""
    contracts: dict[str, dict[str, Contract]] = {}
    for (host, vr), contract in sorted(entered.contracts.items()):
        contracts.setdefault(host, {})[vr] = contract
    hosts = {
        name: HostEntry(**_own(host), contracts=contracts.get(name, {}))
        for name, host in sorted(entered.hosts.items())
    }
    return FleetFile(
        version=1,
        tenants=dict(sorted(entered.tenants.items())),
        classes=dict(sorted(entered.classes.items())),
        hosts=hosts,
        contracts=contracts.get(ANYWHERE, {}),
    )


def wanted(file: FleetFile, current: Entered, *, keep: bool) -> Entered:
    """Return what is to be entered.

    Args:
        file: the document.
        current: what is entered now.
        keep: whether what the document does not name stays; else it goes.
    """
    hosts = dict(_hosts(file, current))
    own = {
        (name, vr): one for name, entry in file.hosts.items() for vr, one in entry.contracts.items()
    }
    following = {(ANYWHERE, vr): contract for vr, contract in file.contracts.items()}
    named = Entered(file.tenants, file.classes, hosts, own | following)
    if not keep:
        return named
    return Entered(
        {**current.tenants, **named.tenants},
        {**current.classes, **named.classes},
        {**current.hosts, **named.hosts},
        {**current.contracts, **named.contracts},
    )


def incomplete(file: FleetFile, current: Entered) -> Iterator[Problem]:
    """Yield the hosts of a document without an entry in it or in the fleet."""
    for name, entry in file.hosts.items():
        missing = [field for field in REQUIRED if getattr(entry, field) is None]
        if _has_entry(entry):
            yield from (Problem(f"hosts.{name}.{field}", "missing", "add it") for field in missing)
        elif name not in current.hosts:
            fix = f"add {', '.join(REQUIRED)}"
            yield Problem(f"hosts.{name}", "there is no such host, and this is no entry", fix)


def size_problems(file: FleetFile) -> Iterator[Problem]:
    """Yield the problem of a document with too many contracts."""
    number = len(file.contracts) + sum(len(entry.contracts) for entry in file.hosts.values())
    if number > MOST_CONTRACTS:
        fix = f"give at most {MOST_CONTRACTS}, and the rest with `keep`"
        yield Problem("contracts", f"{number} in all", fix)


def bare(value: msgspec.Struct) -> dict[str, Any]:
    """Return the fields that differ from their defaults, as JSON and TOML have them."""
    found: dict[str, Any] = {}
    for field in fields_of(type(value)):
        given = getattr(value, field.name)
        if field.required or given != _default(field):
            found[field.encode_name] = _plain(given)
    return found


@cache
def fields_of(kind: type[msgspec.Struct]) -> tuple[msgspec.structs.FieldInfo, ...]:
    """Return the fields of a structure; cached, since msgspec is slow here."""
    return msgspec.structs.fields(kind)


def _default(field: msgspec.structs.FieldInfo) -> Any:
    made = field.default_factory
    return field.default if made is msgspec.NODEFAULT else made()


def _plain(value: Any) -> Any:
    if isinstance(value, msgspec.Struct):
        return bare(value)
    if isinstance(value, dict):
        return {name: _plain(inner) for name, inner in value.items()}
    if isinstance(value, Iterable) and not isinstance(value, str):
        return [_plain(inner) for inner in value]
    return msgspec.to_builtins(value, builtin_types=(datetime,))


def _hosts(file: FleetFile, current: Entered) -> Iterator[tuple[str, Host]]:
    for name, entry in file.hosts.items():
        if all(getattr(entry, field) is not None for field in REQUIRED):
            yield name, Host(name=name, **{field: getattr(entry, field) for field in OF_HOST})
        elif name in current.hosts:
            yield name, current.hosts[name]


def _own(host: Host) -> dict[str, Any]:
    return {field: getattr(host, field) for field in OF_HOST}


def _has_entry(entry: HostEntry) -> bool:
    plain = HostEntry()
    return any(getattr(entry, field) != getattr(plain, field) for field in OF_HOST)
