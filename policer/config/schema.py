"""Schema of the policer's settings: frozen structures with defaults and descriptions.

An unknown key is an error, since a silently ignored typing error is hard to find.
"""

from pathlib import Path
from typing import Annotated, Literal

import msgspec

from policer.contracts.ladder import Escalation
from policer.contracts.reach import MOST, HostPattern, RouterPattern, TenantName
from policer.decide.engagement import EngagementRules
from policer.decide.evidence import Rules
from policer.decide.state import Policy
from policer.history.retention import Retention
from policer.webhooks.rules import Rules as WebhookRules
from policer.webhooks.rules import network_of

DEFAULT_PATH = Path("/etc/xtc/policer.toml")
STATE = "/var/lib/xtc-policer"

Share = Annotated[float, msgspec.Meta(gt=0, le=1)]
Seconds = Annotated[float, msgspec.Meta(gt=0, le=86400)]
Rounds = Annotated[int, msgspec.Meta(ge=1, le=3600)]

Algorithm = Literal[
    "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "Ed25519"
]
_LIMITS = msgspec.Meta(max_length=MOST)

# Operators' settings are part of the core's parameters; their defaults are the core's.
_ENGAGEMENT, _RULES, _ESCALATION = EngagementRules(), Rules(), Escalation()
_RETENTION, _RULES_OF_WEBHOOKS = Retention(), WebhookRules()


class Section(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A table of the settings."""


class ServerSection(Section, frozen=True):
    """Server of REST, page and metrics."""

    name: Annotated[str, msgspec.Meta(min_length=1, max_length=64)] | None = None
    """Name of this policer, among several; None is the name of its machine."""
    listen: str = "127.0.0.1:8420"
    """Address and port."""
    tls_cert: str | None = None
    """Certificate chain in PEM; with a key, HTTPS is served."""
    tls_key: str | None = None
    """Its private key in PEM."""
    behind_proxy: bool = False
    """Whether a proxy in front ends TLS: then plain HTTP is also served beyond this machine."""
    open_metrics: bool = False
    """Whether /metrics takes no token."""
    max_connections: Annotated[int, msgspec.Meta(ge=10, le=50_000)] = 1000
    """Connected clients; above this number, an idle one is disconnected."""
    max_connections_each: Annotated[int, msgspec.Meta(ge=1, le=50_000)] = 100
    """The same for one address; raise it behind a proxy."""
    max_streams: Annotated[int, msgspec.Meta(ge=1, le=10_000)] = 32
    """Clients that may stream at the same time; each open tab of the page counts as two."""
    max_streams_each: Annotated[int, msgspec.Meta(ge=1, le=10_000)] = 8
    """The same for one token."""
    requests_per_s: Annotated[float, msgspec.Meta(ge=1, le=100_000)] = 100.0
    """Requests per second of a token, or of an address without one, in the long run."""
    burst: Annotated[int, msgspec.Meta(ge=10, le=1_000_000)] = 500
    """Requests in a burst."""
    trusted_proxies: Annotated[tuple[str, ...], msgspec.Meta(max_length=64)] = ()
    """Networks of proxies that append their client's address to X-Forwarded-For."""


class GrantSection(Section, frozen=True):
    """Rights of the bearers of a value in the claim; of several grants, the first match applies."""

    value: Annotated[str, msgspec.Meta(min_length=1, max_length=256)]
    """Value of the claim: a group, a role or a scope."""
    scope: Literal["read", "operate", "admin"]
    """As a token of the policer's own."""
    hosts: Annotated[tuple[HostPattern, ...], _LIMITS] = ()
    """Limited to these hosts, names or patterns."""
    routers: Annotated[tuple[RouterPattern, ...], _LIMITS] = ()
    """Limited to these routers, HOST/VR."""
    tenants: Annotated[tuple[TenantName, ...], _LIMITS] = ()
    """Limited to the routers of these tenants."""


class OidcSection(Section, frozen=True):
    """An OpenID Connect issuer with tokens accepted besides the policer's own."""

    issuer: str | None = None
    """Its URL, as `iss` in its tokens; None accepts only the policer's own tokens."""
    audience: Annotated[str, msgspec.Meta(min_length=1, max_length=256)] | None = None
    """Value of `aud` in tokens for this policer."""
    jwks_url: str | None = None
    """URL of its keys; None takes it from its discovery document."""
    jwks_file: str | None = None
    """File with its keys, if the issuer cannot be reached."""
    claim: Annotated[str, msgspec.Meta(min_length=1, max_length=256)] = "groups"
    """The claim that grants refer to; dots lead into claims."""
    name_claim: Annotated[str, msgspec.Meta(min_length=1, max_length=256)] = "preferred_username"
    """The claim with a name to show; without it, the subject is shown."""
    leeway_s: Annotated[int, msgspec.Meta(ge=0, le=300)] = 30
    """Permitted difference of the clocks in seconds."""
    algorithms: Annotated[tuple[Algorithm, ...], msgspec.Meta(min_length=1)] = ("RS256", "ES256")
    """Accepted signature algorithms; all are asymmetric."""
    grants: Annotated[tuple[GrantSection, ...], msgspec.Meta(max_length=1000)] = ()
    """Rights of its people here."""


class StoreSection(Section, frozen=True):
    """Database of contracts, events, tokens and punishments."""

    url: str | None = None
    """URL of the database; None is SQLite in the state directory."""
    url_file: str | None = None
    """File with the URL instead, if that has a password."""
    keep_days: Annotated[int, msgspec.Meta(ge=1, le=3660)] = 90
    """Events older than this are removed, once a day."""
    keep_audit_days: Annotated[int, msgspec.Meta(ge=1, le=36_600)] = 730
    """The same for changes in the audit log, for revoked or expired tokens, and for superseded
    versions of contracts that no report needs."""


class LinkSection(Section, frozen=True):
    """Connection to the daemons."""

    secret_key_file: str | None = None
    """The policer's own `.key_secret`; daemons on TCP need it."""


class LeaseSection(Section, frozen=True):
    """Parameters of the orders to daemons."""

    ttl_s: Annotated[float, msgspec.Meta(ge=6, le=3600)] = 15.0
    """Length of a lease in seconds: how long a daemon obeys after a policer is gone."""


class EngagementSection(Section, frozen=True):
    """When a host's routers are held, as shares of its capacity (`policer.decide.engagement`)."""

    engage: Share = _ENGAGEMENT.engage
    calm: Share = _ENGAGEMENT.calm
    calm_rounds: Rounds = _ENGAGEMENT.calm_rounds
    suffering: Share = _ENGAGEMENT.suffering
    target: Share = _ENGAGEMENT.target


class RulesSection(Section, frozen=True):
    """What counts as misbehaviour (`policer.decide.evidence.Rules`)."""

    excess: Annotated[float, msgspec.Meta(gt=1, le=1000)] = _RULES.excess
    acceptable: Annotated[float, msgspec.Meta(gt=0, le=1000)] = _RULES.acceptable
    rounds: Rounds = _RULES.rounds
    needed: Rounds = _RULES.needed


class EscalationSection(Section, frozen=True):
    """Time that each step of the ladder gets to work (`policer.contracts.ladder.Patience`)."""

    climb_s: Seconds = _ESCALATION.climb_s
    descend_s: Seconds = _ESCALATION.descend_s


class PolicySection(Section, frozen=True):
    """Thresholds, escalation times and rules of evidence; the same for all hosts."""

    dry_run: bool = False
    """Whether misbehaviour is only reported, regardless of the contracts."""
    engagement: EngagementSection = EngagementSection()
    rules: RulesSection = RulesSection()
    escalation: EscalationSection = EscalationSection()


class HistorySection(Section, frozen=True):
    """How long the history of routers is kept (`policer.history.retention.Retention`)."""

    seconds_s: Annotated[int, msgspec.Meta(ge=0, le=86_400)] = _RETENTION.seconds_s
    """How long points of one second are kept, in seconds; 0 keeps none."""
    minutes_days: Annotated[int, msgspec.Meta(ge=0, le=400)] = _RETENTION.minutes_days
    """How long points of one minute are kept, in days; 0 keeps none."""
    report_months: Annotated[int, msgspec.Meta(ge=1, le=120)] = _RETENTION.report_months
    """Months with SLA reports, including the current one."""


class WebhooksSection(Section, frozen=True):
    """Permitted destinations of events, and delivery attempts (`policer.webhooks.rules.Rules`)."""

    allow_http: bool = _RULES_OF_WEBHOOKS.allow_http
    """Whether endpoints may be reached unencrypted."""
    allowed_networks: tuple[str, ...] = ()
    """Networks that are not public and may be reached."""
    timeout_s: Annotated[float, msgspec.Meta(ge=1, le=60)] = _RULES_OF_WEBHOOKS.timeout_s
    """Seconds that an attempt may take."""
    attempts: Annotated[int, msgspec.Meta(ge=1, le=20)] = _RULES_OF_WEBHOOKS.attempts
    """Attempts, over about a day, after which a message is dead."""


class LogSection(Section, frozen=True):
    """Structured logs on standard error."""

    format: Literal["auto", "json", "console"] = "auto"
    level: Literal["debug", "info", "warning", "error"] = "info"


class Settings(Section, frozen=True):
    """All settings."""

    server: ServerSection = ServerSection()
    oidc: OidcSection = OidcSection()
    store: StoreSection = StoreSection()
    link: LinkSection = LinkSection()
    lease: LeaseSection = LeaseSection()
    policy: PolicySection = PolicySection()
    log: LogSection = LogSection()
    history: HistorySection = HistorySection()
    webhooks: WebhooksSection = WebhooksSection()


SECTIONS: tuple[type[Section], ...] = (
    Settings,
    ServerSection,
    OidcSection,
    GrantSection,
    StoreSection,
    LinkSection,
    LeaseSection,
    PolicySection,
    EngagementSection,
    RulesSection,
    EscalationSection,
    LogSection,
    HistorySection,
    WebhooksSection,
)
"""Every table of the format."""


def policy_of(settings: Settings) -> Policy:
    """Return the policy of the rounds."""
    policy = settings.policy
    return Policy(
        engagement=EngagementRules(**msgspec.structs.asdict(policy.engagement)),
        rules=Rules(**msgspec.structs.asdict(policy.rules)),
        escalation=Escalation(**msgspec.structs.asdict(policy.escalation)),
        dry_run=policy.dry_run,
    )


def retention_of(settings: Settings) -> Retention:
    """Return how long history is kept."""
    return Retention(**msgspec.structs.asdict(settings.history))


def webhook_rules_of(settings: Settings) -> WebhookRules:
    """Return the rules of webhooks; raises ValueError for an invalid network."""
    section = settings.webhooks
    networks = tuple(map(network_of, section.allowed_networks))
    return WebhookRules(section.allow_http, networks, section.timeout_s, section.attempts)
