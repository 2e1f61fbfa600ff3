"""The policer's settings: mistakes named by field, secrets never shown, defaults as in the code."""

import dataclasses
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from policer.config.file import (
    is_local,
    listen_address,
    load_settings,
    parse_settings,
    redacted,
    secret_text,
    shown,
    store_url,
)
from policer.config.schema import (
    EngagementSection,
    EscalationSection,
    RulesSection,
    Settings,
    StoreSection,
    policy_of,
)
from policer.contracts.ladder import Escalation
from policer.decide.engagement import EngagementRules
from policer.decide.evidence import Rules
from policer.decide.state import Policy
from policer.errors import SettingsError

TLS = 'tls_cert = "/c.pem"\ntls_key = "/k.pem"\n'


def mistake(text: str) -> SettingsError:
    with pytest.raises(SettingsError) as caught:
        parse_settings(text, Path("policer.toml"))
    return caught.value


OIDC = "[oidc]\nissuer = 'https://id.example'\naudience = 'policer'\n"
GRANT = f"{OIDC}[[oidc.grants]]\nvalue = 'acme'\n"


def test_nothing_need_be_set() -> None:
    assert parse_settings("") == Settings()
    assert policy_of(Settings()) == Policy()


@pytest.mark.parametrize(
    ("section", "core"),
    [(EngagementSection, EngagementRules), (RulesSection, Rules), (EscalationSection, Escalation)],
)
def test_what_can_be_set_is_what_the_core_knows(section: type[msgspec.Struct], core: Any) -> None:
    known = {field.name: field.default for field in dataclasses.fields(core)}
    set_here = {field.name: field.default for field in msgspec.structs.fields(section)}
    assert set_here.items() <= known.items()


def test_what_is_set_reaches_the_core() -> None:
    text = (
        "[policy]\ndry_run = true\n[policy.engagement]\nengage = 0.9\n"
        "[policy.rules]\nexcess = 3\n[policy.escalation]\nclimb_s = 20"
    )
    policy = policy_of(parse_settings(text))
    assert policy == Policy(
        EngagementRules(engage=0.9), Rules(excess=3), Escalation(climb_s=20), dry_run=True
    )


@pytest.mark.parametrize(
    ("text", "where", "word"),
    [
        ("[serve]", "serve", "did you mean server?"),
        ("[server]\nlissten = 'a:1'", "server.lissten", "did you mean listen?"),
        ("[policy.engagement]\nclam = 0.5", "policy.engagement.clam", "did you mean calm?"),
        ("[log]\nlevel = 'loud'", "log.level", "debug, info, warning, error"),
        ("[server]\ntrusted_proxies = ['10.0.0.1/8']", "server.trusted_proxies", "10.0.0.0/28"),
        ("[server]\ntrusted_proxies = ['proxy']", "server.trusted_proxies", "10.0.0.0/28"),
        ("[server]\ntrusted_proxies = ['0.0.0.0/0']", "server.trusted_proxies", "every address"),
        ("[server]\ntrusted_proxies = ['::/0']", "server.trusted_proxies", "every address"),
        ("[server]\nrequests_per_s = 0", "server.requests_per_s", ">= 1"),
        ("[oidc]\naudience = 'x'", "oidc.issuer", "issuer's URL"),
        ("[oidc]\nissuer = 'http://id.example'", "oidc.issuer", "no address of HTTPS"),
        ("[oidc]\nissuer = 'https://a:b@id.example'", "oidc.issuer", "no address of HTTPS"),
        ("[oidc]\nissuer = 'https://id.example'", "oidc.audience", "other services"),
        (f"{OIDC}algorithms = ['none']", "oidc.algorithms[0]", "RS256"),
        (f"{OIDC}algorithms = ['HS256']", "oidc.algorithms[0]", "RS256"),
        (f"{OIDC}algorithms = []", "oidc.algorithms", "length >= 1"),
        (f"{OIDC}leeway_s = 3600", "oidc.leeway_s", "<= 300"),
        (f"{OIDC}jwks_url = 'http://id.example/keys'", "oidc.jwks_url", "HTTPS"),
        (f"{OIDC}jwks_url = 'https://a/b'\njwks_file = 'c'", "oidc.jwks_file", "one of the two"),
        (OIDC, "oidc.grants", "no user has access"),
        (f"{GRANT}scope = 'king'", "oidc.grants[0].scope", "read, operate, admin"),
        (f"{GRANT}", "oidc.grants[0].scope", "missing (add it: read, operate or admin)"),
        (f"{GRANT}scope = 'admin'\ntenants = ['a']", "oidc.grants[0].scope", "cannot be limited"),
        (f"{GRANT}scope = 'read'\nhosts = ['[ab]']", "oidc.grants[0].hosts[0]", "with * and ?"),
        (f"{GRANT}scope = 'read'\nrouters = ['a']", "oidc.grants[0].routers[0]", "HOST/VR"),
        (f"{GRANT}scope = 'read'\ntenant = 'a'", "oidc.grants[0].tenant", "tenants?"),
        ("[server]\nlisten = 8420", "server.listen", "str"),
        ("[lease]\nttl_s = 1", "lease.ttl_s", ">= 6"),
        ("[lease]\nttl_s = nan", "lease.ttl_s", ""),
        ("[policy.rules]\nneeded = 6", "policy.rules.needed", "more than policy.rules.rounds"),
        ("[policy.rules]\nneeded = 2", "policy.rules.needed", "both guilty and not"),
        ("[policy.rules]\nacceptable = 9", "policy.rules.acceptable", "above policy.rules.excess"),
        (
            "[policy.engagement]\ncalm = 0.9",
            "policy.engagement.calm",
            "not below policy.engagement.engage",
        ),
        ("[store]\nurl = 'mysql://a/b'", "store.url", "sqlite:///"),
        ("[store]\nurl = 'sqlite:////a'\nurl_file = '/b'", "store.url_file", "one of the two"),
        ("[server]\nlisten = 'localhost'", "server.listen", "no host:port"),
        ("[server]\nlisten = '127.0.0.1:99999'", "server.listen", "no host:port"),
        ("[server]\ntls_cert = '/c'", "server.tls_key", "give both"),
        ("[server]\ntls_key = '/c'", "server.tls_cert", "give both"),
        ("[server", "policer.toml", "not TOML"),
        ("a." * 5000 + "b = 1", "policer.toml", "longer than 4096"),
    ],
)
def test_a_mistake_is_named_by_field_and_fix(text: str, where: str, word: str) -> None:
    error = mistake(text)
    assert error.where == ("policer.toml" if where == "policer.toml" else f"policer.toml: {where}")
    assert word in str(error)
    assert error.fix


@pytest.mark.parametrize("listen", ["0.0.0.0:8420", "10.0.0.7:8420", "[::]:8420", "policer:8420"])
def test_tokens_do_not_travel_unencrypted_beyond_this_machine(listen: str) -> None:
    server = f'[server]\nlisten = "{listen}"\n'
    assert mistake(server).where == "policer.toml: server.listen"
    assert parse_settings(server + TLS).server.listen == listen
    assert parse_settings(server + "behind_proxy = true").server.behind_proxy


@pytest.mark.parametrize("listen", ["127.0.0.1:1", "127.8.9.1:1", "[::1]:1", "localhost:1"])
def test_this_machine_needs_no_tls(listen: str) -> None:
    assert is_local(
        listen_address(parse_settings(f'[server]\nlisten = "{listen}"').server.listen)[0]
    )


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"no\.toml: No such file.*--config"):
        load_settings(tmp_path / "no.toml")
    (tmp_path / "latin.toml").write_bytes(b"\xe9")
    with pytest.raises(SettingsError, match="UTF-8"):
        load_settings(tmp_path / "latin.toml")


# --- secrets


@given(st.text(min_size=1), st.sampled_from(["?sslmode=require", "", "?password=x"]))
def test_a_password_is_never_shown(password: str, query: str) -> None:
    marked = f"SECRET{password}SECRET"
    seen = redacted(f"postgresql://policer:{marked}@db.example:5432/policer{query}")
    assert "SECRET" not in seen
    assert seen.startswith("postgresql://policer:***@")


def test_a_password_in_the_query_is_never_shown() -> None:
    seen = redacted("postgresql:///policer?host=/run&password=SECRET")
    assert seen == "postgresql:///policer?host=***&password=***"


def test_a_url_without_secrets_is_shown_as_it_is() -> None:
    for url in ("sqlite:////var/lib/xtc-policer/policer.db", "postgresql://policer@db/policer"):
        assert redacted(url) == url


def test_settings_are_shown_without_the_password() -> None:
    settings = parse_settings("[store]\nurl = 'postgresql://a:SECRET@b/c'")
    assert "SECRET" not in msgspec.json.encode(shown(settings)).decode()
    assert shown(Settings()) == Settings()


def test_the_url_comes_from_a_file_that_nobody_else_can_read(tmp_path: Path) -> None:
    file = tmp_path / "database"
    section = StoreSection(url_file=str(file))
    with pytest.raises(SettingsError, match="No such file"):
        store_url(section)
    file.write_text("postgresql://a:b@c/d\n")
    file.chmod(0o640)
    with pytest.raises(SettingsError, match=f"chmod 600 {file}"):
        store_url(section)
    file.chmod(0o600)
    assert store_url(section) == "postgresql://a:b@c/d"
    file.write_text("a:SECRET@c")
    with pytest.raises(SettingsError, match="no database that is known") as caught:
        store_url(section)
    assert "SECRET" not in str(caught.value)


def test_a_secret_that_is_no_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "token").write_bytes(b"\xff")
    (tmp_path / "token").chmod(0o600)
    with pytest.raises(SettingsError, match="not text"):
        secret_text("--token-file", tmp_path / "token")


def test_all_mistakes_are_named_each_on_its_own_line() -> None:
    text = '[server]\nlisen = "x"\nburst = "y"\n[policy]\ndry_run = 1'
    with pytest.raises(SettingsError) as raised:
        parse_settings(text, Path("p.toml"))
    lines = str(raised.value).split("\n")
    keys = [line.partition(": ")[2].partition(":")[0] for line in lines]
    assert keys == ["server.lisen", "server.burst", "policy.dry_run"]
    assert raised.value.where == "p.toml: server.lisen"
