"""Reads the settings; every mistake is named by file and field, with the fix."""

import ipaddress
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec

from common.errors import ConfigError
from common.suggest import did_you_mean
from common.toml_explain import Words, choices_of, mistakes, plain
from common.toml_tables import Limits, parse_tables
from policer.config.fixes import OTHERS, READABLE, exposed, made_empty, unread
from policer.config.schema import (
    SECTIONS,
    STATE,
    GrantSection,
    OidcSection,
    Settings,
    StoreSection,
)
from policer.errors import SettingsError, SettingsErrors
from policer.webhooks.rules import network_of

LIMITS = Limits(1 << 20, "keep to one line a key")
MAX_PORT = 65535
SCHEMES = ("sqlite", "postgresql", "postgres")
HIDDEN = "***"

_PATTERN = "matching regex"
"""In msgspec's words of a text that does not fit its pattern."""
_FORMS = {
    "hosts": "names of hosts, with * and ? for other characters",
    "routers": "HOST/VR, with * and ? for other characters but /",
    "tenants": "names of tenants: letters, digits and . _ -",
}


def load_settings(path: Path) -> Settings:
    """Read a file.

    Raises:
        SettingsError: names the file, the field, what is wrong, and what to do.
    """
    try:
        text = path.read_bytes().decode()
    except OSError as error:
        missing = f"make an empty one, which takes all defaults: {made_empty(path)}"
        problem, fix = unread(path, error, missing, own=False)
        fix += ", or name another with --config"
        raise SettingsError(str(path), problem.removeprefix(str(path)).lstrip(": "), fix) from error
    except UnicodeDecodeError as error:
        raise SettingsError(str(path), "not UTF-8 text", "save it as UTF-8") from error
    return parse_settings(text, path)


def parse_settings(text: str, source: Path = Path("settings")) -> Settings:
    """Read one text, for tests and for tools.

    Raises:
        SettingsError: as `load_settings`.
    """
    try:
        tables = parse_tables(source, text, LIMITS)
    except ConfigError as error:
        raise SettingsError(error.where, error.problem, error.fix) from error
    _check(source, mistakes(tables, Settings, _SettingsWords()))
    settings = msgspec.convert(tables, Settings)
    _check(source, contradictions(settings))
    return settings


def _check(source: Path, found: Iterable[tuple[str, str, str]]) -> None:
    """Raise a SettingsError that names all mistakes, if there are any."""
    errors = [
        SettingsError(f"{source}: {where}" if where else str(source), problem, fix)
        for where, problem, fix in found
    ]
    if errors:
        raise errors[0] if len(errors) == 1 else SettingsErrors(errors)


def contradictions(settings: Settings) -> Iterator[tuple[str, str, str]]:
    """Yield what contradicts itself: field, problem, fix."""
    yield from _of_server(settings)
    yield from _of_oidc(settings.oidc)
    store, rules, engagement = settings.store, settings.policy.rules, settings.policy.engagement
    if store.url is not None and store.url_file is not None:
        yield "store.url_file", "there is store.url as well", "give one of the two"
    if store.url is not None:
        yield from _of_url("store.url", store.url)
    if rules.acceptable > rules.excess:
        yield "policy.rules.acceptable", "above policy.rules.excess", "lower it, or raise that"
    if rules.needed > rules.rounds:
        yield "policy.rules.needed", "more than policy.rules.rounds", "lower it, or raise that"
    if rules.needed * 2 <= rules.rounds:
        yield (
            "policy.rules.needed",
            "half of policy.rules.rounds or less: a router could be both guilty and not",
            "give more than half of them",
        )
    for network in settings.webhooks.allowed_networks:
        try:
            network_of(network)
        except ValueError as error:
            yield "webhooks.allowed_networks", str(error), "write 10.0.0.0/8 or fd00::/8"
    if engagement.calm >= engagement.engage:
        yield (
            "policy.engagement.calm",
            "not below policy.engagement.engage",
            "lower it, or raise that",
        )


def _of_server(settings: Settings) -> Iterator[tuple[str, str, str]]:
    server = settings.server
    yield from _of_proxies(server.trusted_proxies)
    try:
        host, _ = listen_address(server.listen)
    except ValueError as error:
        yield "server.listen", str(error), "write 127.0.0.1:8420"
        return
    if (server.tls_cert is None) is not (server.tls_key is None):
        missing = "tls_cert" if server.tls_cert is None else "tls_key"
        yield f"server.{missing}", "missing: HTTPS takes a certificate and its key", "give both"
    elif server.tls_cert is None and not server.behind_proxy and not is_local(host):
        yield (
            "server.listen",
            f"{server.listen} is reached from other machines, and tokens would travel unencrypted",
            "give tls_cert and tls_key, or behind_proxy = true where a proxy ends TLS",
        )


def _of_proxies(networks: Iterable[str]) -> Iterator[tuple[str, str, str]]:
    where = "server.trusted_proxies"
    for text in networks:
        try:
            network = ipaddress.ip_network(text)
        except ValueError as error:
            yield where, str(error), "write networks or addresses, such as 10.0.0.0/28"
            continue
        if network.prefixlen == 0:
            problem = f"{text} matches every address: clients could choose their own address"
            yield where, problem, "name the proxies alone"


def _of_oidc(oidc: OidcSection) -> Iterator[tuple[str, str, str]]:
    if oidc.issuer is None:
        if oidc != OidcSection():
            fix = "give the issuer's URL, or remove the table"
            yield "oidc.issuer", "missing; the other keys need it", fix
        return
    for key in ("issuer", "jwks_url"):
        url = getattr(oidc, key)
        if url is not None and not is_safe_url(url):
            yield f"oidc.{key}", f"{url[:200]!r} is no address of HTTPS", "write https://..."
    if oidc.audience is None:
        fix = "give what `aud` in tokens for this policer has"
        yield "oidc.audience", "missing: tokens for other services would be taken", fix
    if oidc.jwks_url is not None and oidc.jwks_file is not None:
        yield "oidc.jwks_file", "there is oidc.jwks_url as well", "give one of the two"
    if not oidc.grants:
        yield "oidc.grants", "missing: no user has access", "add [[oidc.grants]]"
    yield from _of_grants(oidc.grants)


def _of_grants(grants: Iterable[GrantSection]) -> Iterator[tuple[str, str, str]]:
    for number, one in enumerate(grants):
        if one.scope == "admin" and (one.hosts or one.routers or one.tenants):
            where, problem = f"oidc.grants[{number}].scope", "an administrator cannot be limited"
            yield where, problem, "write operate or read, or remove the limits"


def is_safe_url(url: str) -> bool:
    """Whether an address is of HTTPS, or on this machine, and holds no password."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname or "", parts.port
    except ValueError:
        return False
    if parts.username is not None or not host or not url.isprintable() or parts.fragment:
        return False
    return parts.scheme == "https" or (parts.scheme == "http" and is_local(host))


def _of_url(where: str, url: str) -> Iterator[tuple[str, str, str]]:
    if urlsplit(url).scheme.partition("+")[0] not in SCHEMES:
        yield (
            where,
            "no database that is known here",
            f"write sqlite:///{STATE}/policer.db or postgresql://USER@HOST/NAME",
        )


def listen_address(text: str) -> tuple[str, int]:
    """Return host and port; an IPv6 address stands in brackets.

    Raises:
        ValueError: the text is no address.
    """
    host, _, port = text.rpartition(":")
    if not host or not (port.isascii() and port.isdigit() and int(port) <= MAX_PORT):
        raise ValueError(f"{text!r} is no host:port")
    return host.strip("[]"), int(port)


def is_local(host: str) -> bool:
    """Whether an address is reached from this machine alone."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def store_url(section: StoreSection) -> str:
    """Return the database's URL, from its file where there is one.

    Raises:
        SettingsError: the file cannot be read, others can read it, or it holds no URL.
    """
    if section.url_file is None:
        return section.url or f"sqlite:///{STATE}/policer.db"
    url = secret_text("store.url_file", Path(section.url_file)).strip()
    for where, problem, fix in _of_url("store.url_file", url):
        raise SettingsError(where, f"{section.url_file}: {problem}", fix)
    return url


def sqlite_file(url: str) -> Path | None:
    """Return SQLite's file by the database's URL; None for other databases."""
    scheme, _, path = url.partition("://")
    return Path(path.removeprefix("/")) if scheme.partition("+")[0] == "sqlite" else None


def secret_text(where: str, path: Path) -> str:
    """Return what is in a file that only its owner may read.

    Raises:
        SettingsError: it cannot be read, or others can.
    """
    try:
        found = None if path.is_dir() else exposed(path, OTHERS, READABLE)
        if found is not None:
            raise SettingsError(where, *found)
        return path.read_text()
    except OSError as error:
        missing = f"make it for its owner alone: install -m 600 /dev/null {path}"
        raise SettingsError(where, *unread(path, error, missing)) from error
    except UnicodeDecodeError as error:
        raise SettingsError(where, f"{path}: not text", "name another file") from error


def redacted(url: str) -> str:
    """Return a URL without its password, and without the values of its query."""
    scheme, mark, rest = url.partition("://")
    user, at, host = rest.rpartition("@")  # a password may hold any of the other marks
    name, colon, _ = user.partition(":")
    place, ask, query = host.partition("?")
    hidden = re.sub(r"=[^&]*", f"={HIDDEN}", query)
    return f"{scheme}{mark}{name}{colon and f':{HIDDEN}'}{at}{place}{ask}{hidden}"


def shown(settings: Settings) -> Settings:
    """Return the settings as they may be shown."""
    if settings.store.url is None:
        return settings
    store = msgspec.structs.replace(settings.store, url=redacted(settings.store.url))
    return msgspec.structs.replace(settings, store=store)


class _SettingsWords(Words):
    """How mistakes in the settings are described."""

    def unknown(self, key: str, fields: Mapping[str, Any], where: str) -> str:
        del where
        return did_you_mean(key, sorted(fields), did_you_mean(key, sorted(KEYS), "remove it"))

    def wrong(self, key: str, kind: Any, value: object, problem: str) -> tuple[str, str]:
        del value
        if _PATTERN in problem and key in _FORMS:
            return "it has the wrong form", f"write {_FORMS[key]}"
        choices = choices_of(kind)
        if choices:
            return plain(problem), f"write one of {', '.join(choices)}"
        return plain(problem), "see policer.toml in docs/howto/policer.md"


KEYS = frozenset(key for section in SECTIONS for key in section.__struct_fields__)
"""Every key of the format."""
