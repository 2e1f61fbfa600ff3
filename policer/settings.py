"""The policer's settings: these frozen structures are their schema, their defaults and their words.

An unknown key is an error: a typo that silently does nothing costs a night.
"""

from pathlib import Path
from typing import Annotated, Literal

import msgspec

from policer.engagement import Habits
from policer.evidence import Rules
from policer.ladder import Patience
from policer.state import Policy

DEFAULT_PATH = Path("/etc/xtc/policer.toml")
STATE = "/var/lib/xtc-policer"

Share = Annotated[float, msgspec.Meta(gt=0, le=1)]
Seconds = Annotated[float, msgspec.Meta(gt=0, le=86400)]
Rounds = Annotated[int, msgspec.Meta(ge=1, le=3600)]

# What an operator may set is a part of what the core knows; its defaults are the core's.
_HABITS, _RULES, _PATIENCE = Habits(), Rules(), Patience()


class Section(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A table of the settings."""


class ServerSection(Section, frozen=True):
    """Where REST, page and metrics are served."""

    name: Annotated[str, msgspec.Meta(min_length=1, max_length=64)] | None = None
    """Of this policer, among several; None is the name of its machine."""
    listen: str = "127.0.0.1:8420"
    """Address and port."""
    tls_cert: str | None = None
    """Certificate chain in PEM; with a key, HTTPS is served."""
    tls_key: str | None = None
    """Its private key in PEM."""
    behind_proxy: bool = False
    """Whether a proxy in front ends TLS: plain HTTP is then served beyond this machine."""
    open_metrics: bool = False
    """Whether /metrics takes no token."""
    max_connections: Annotated[int, msgspec.Meta(ge=10, le=50_000)] = 1000
    """Clients that are connected at once; beyond it, one that asks nothing is disconnected."""
    max_connections_each: Annotated[int, msgspec.Meta(ge=1, le=50_000)] = 100
    """The same of one address; raise it where a proxy stands in front."""
    max_streams: Annotated[int, msgspec.Meta(ge=1, le=10_000)] = 32
    """Clients that may stream at once; each open tab of the page is two."""
    max_streams_each: Annotated[int, msgspec.Meta(ge=1, le=10_000)] = 8
    """The same of one token."""
    requests_per_s: Annotated[float, msgspec.Meta(ge=1, le=100_000)] = 100.0
    """Requests that a token may make in the long run, and so may an address without one."""
    burst: Annotated[int, msgspec.Meta(ge=10, le=1_000_000)] = 500
    """Requests that they may make at once."""
    trusted_proxies: Annotated[tuple[str, ...], msgspec.Meta(max_length=64)] = ()
    """Networks of proxies that append their client's address to X-Forwarded-For."""


class StoreSection(Section, frozen=True):
    """Where contracts, events, tokens and punishments are kept."""

    url: str | None = None
    """Of the database; None is SQLite in the state directory."""
    url_file: str | None = None
    """A file that holds the URL instead, for one that has a password in it."""
    keep_days: Annotated[int, msgspec.Meta(ge=1, le=3660)] = 90
    """Events older than this are removed, once a day."""
    keep_audit_days: Annotated[int, msgspec.Meta(ge=1, le=36_600)] = 730
    """So are changes of the audit log, and tokens that were revoked or ended."""


class LinkSection(Section, frozen=True):
    """The way to the daemons."""

    secret_key_file: str | None = None
    """The policer's own `.key_secret`; daemons on TCP need it."""


class LeaseSection(Section, frozen=True):
    """What the orders to daemons are made of."""

    ttl_s: Annotated[float, msgspec.Meta(ge=6, le=3600)] = 15.0
    """Length of a lease in seconds: how long a daemon obeys a policer that is gone."""


class HabitsSection(Section, frozen=True):
    """When a host's routers are held, as shares of its capacity (`policer.engagement.Habits`)."""

    engage: Share = _HABITS.engage
    calm: Share = _HABITS.calm
    calm_rounds: Rounds = _HABITS.calm_rounds
    suffering: Share = _HABITS.suffering
    target: Share = _HABITS.target


class RulesSection(Section, frozen=True):
    """What counts as misbehaviour (`policer.evidence.Rules`)."""

    excess: Annotated[float, msgspec.Meta(gt=1, le=1000)] = _RULES.excess
    decent: Annotated[float, msgspec.Meta(gt=0, le=1000)] = _RULES.decent
    rounds: Rounds = _RULES.rounds
    needed: Rounds = _RULES.needed


class PatienceSection(Section, frozen=True):
    """How long each step of the ladder is given to work (`policer.ladder.Patience`)."""

    climb_s: Seconds = _PATIENCE.climb_s
    descend_s: Seconds = _PATIENCE.descend_s


class PolicySection(Section, frozen=True):
    """How eager, how patient, and by what evidence; the same for all hosts."""

    dry_run: bool = False
    """Whether misbehaviour is only reported, whatever contracts say."""
    habits: HabitsSection = HabitsSection()
    rules: RulesSection = RulesSection()
    patience: PatienceSection = PatienceSection()


class LogSection(Section, frozen=True):
    """Structured logs on standard error."""

    format: Literal["auto", "json", "console"] = "auto"
    level: Literal["debug", "info", "warning", "error"] = "info"


class Settings(Section, frozen=True):
    """All of it."""

    server: ServerSection = ServerSection()
    store: StoreSection = StoreSection()
    link: LinkSection = LinkSection()
    lease: LeaseSection = LeaseSection()
    policy: PolicySection = PolicySection()
    log: LogSection = LogSection()


SECTIONS: tuple[type[Section], ...] = (
    Settings,
    ServerSection,
    StoreSection,
    LinkSection,
    LeaseSection,
    PolicySection,
    HabitsSection,
    RulesSection,
    PatienceSection,
    LogSection,
)
"""Every table of the format."""


def policy_of(settings: Settings) -> Policy:
    """Return what rounds are played by."""
    policy = settings.policy
    return Policy(
        habits=Habits(**msgspec.structs.asdict(policy.habits)),
        rules=Rules(**msgspec.structs.asdict(policy.rules)),
        patience=Patience(**msgspec.structs.asdict(policy.patience)),
        dry_run=policy.dry_run,
    )
