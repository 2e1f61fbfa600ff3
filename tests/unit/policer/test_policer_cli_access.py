"""Limits on the command line, whose token it is, and what `config check` says of an issuer."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from oidc_rig import issuing, published, rsa
from reach_rig import scene
from rest_rig import Rig, serving

from common.logs import set_up_logging
from policer.cli.token import reach_of
from policer.contracts.reach import MOST, Reach
from policer.errors import SettingsError
from policer.store import open_store

if TYPE_CHECKING:
    from policer_shell_rig import Shell

pytest_plugins = ["policer_shell_rig"]


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The settings of a policer with a database of its own."""
    path = tmp_path / "policer.toml"
    path.write_text(f'[store]\nurl = "sqlite:///{tmp_path}/policer.db"\n')
    monkeypatch.setenv("POLICER_CONFIG", str(path))
    return path


LIMITS = ("--host", "edge-*", "--host", "core-1", "--router", "*/acme-*", "--tenant", "acme")


def test_a_token_is_made_with_limits_and_shown_with_them(alone: "Shell", settings: Path) -> None:
    made = alone.json("token", "add", "ann", "--scope", "operate", *LIMITS)
    reach = {"hosts": ["edge-*", "core-1"], "routers": ["*/acme-*"], "tenants": ["acme"]}
    assert made["token"]["reach"] == reach
    alone("token", "add", "ben", "--scope", "read")
    _, ann, ben = alone("token", "list").splitlines()
    assert "hosts edge-*, core-1; routers */acme-*; tenants acme" in ann
    assert " all " in ben
    store = open_store(f"sqlite:///{settings.parent}/policer.db")
    known = store.tokens.by_secret(made["secret"])
    row = store.audit.page(None, 9)[-1]
    store.close()
    assert known is not None
    assert known.reach == Reach(("edge-*", "core-1"), ("*/acme-*",), ("acme",))
    assert "(command line)" in row.actor
    assert row.actor_id.startswith("uid-")


def test_limits_are_said_when_a_token_is_made(alone: "Shell", settings: Path) -> None:
    assert settings.exists()
    alone("token", "add", "ann", "--scope", "operate", "--tenant", "acme")
    assert "(operate, limited to tenants acme)" in alone.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--host", "edge/1"), "--host: 'edge/1' is none (write a host's name"),
        (("--router", "r1"), "--router: 'r1' is none (write HOST/VR"),
        (("--tenant", "acme*"), "--tenant: 'acme*' is none (write a tenant's name"),
        (("--host", "[a-z]*"), "--host: '[a-z]*' is none"),
    ],
)
def test_what_is_no_limit_is_refused_by_its_option(
    alone: "Shell", settings: Path, words: tuple[str, ...], said: str
) -> None:
    assert said in alone("token", "add", "ann", "--scope", "read", *words, code=2)
    assert not (settings.parent / "policer.db").exists()


def test_an_administrator_is_not_limited(alone: "Shell", settings: Path) -> None:
    assert settings.exists()
    words = alone("token", "add", "ann", "--scope", "admin", "--tenant", "acme", code=1)
    assert "give operate or read" in words


def test_limits_are_so_many_at_most() -> None:
    with pytest.raises(SettingsError, match=f"more than {MOST}"):
        reach_of([], [], [f"t{number}" for number in range(MOST + 1)])


@pytest.fixture
def limited(tmp_path: Path) -> Iterator[Rig]:
    with scene(tmp_path) as rig:
        yield rig


@pytest.fixture
def shell(limited: Rig, alone: "Shell", monkeypatch: pytest.MonkeyPatch) -> Iterator["Shell"]:
    """A shell with a tenant's token."""
    set_up_logging(json=False, level="error")
    with serving(limited.app) as address:
        monkeypatch.setenv("POLICER_URL", address)
        monkeypatch.setenv("POLICER_TOKEN", limited.secrets["tenant"])
        yield alone


def test_who_asks_is_shown(limited: Rig, shell: "Shell") -> None:
    lines = [line.split() for line in shell("whoami").splitlines() if line.strip()]
    rows = {line[0]: line[-1] for line in lines}
    assert rows["name"] == "tenant"
    assert rows["id"] == limited.secrets["tenant"].split("_")[1]
    assert (rows["scope"], rows["hosts"], rows["tenants"]) == ("operate", "all", "acme")
    assert rows["expires"] == "never"
    assert shell.json("whoami")["address"] == "127.0.0.1"


def test_a_limited_token_is_served_by_every_command_or_told_why_not(
    limited: Rig, shell: "Shell", monkeypatch: pytest.MonkeyPatch
) -> None:
    assert [row["vr"] for row in shell.json("router", "list")] == ["acme-1"]
    assert [row["vr"] for row in shell.json("contract", "list")] == ["acme-1"]
    assert "acme" in shell("contract", "get", "edge-1", "acme-1")
    assert shell.json("host", "list") == []
    assert len(shell.json("events")) == 3
    assert shell.json("top", "--ticks", "1")[0]["vr"] == "acme-1"
    assert "without limits" in shell("lead", code=1)
    assert "scope admin" in shell("audit", code=1)
    assert "no contract edge-1/beta-1" in shell("contract", "get", "edge-1", "beta-1", code=1)
    changed = shell.json("contract", "set", "edge-1", "acme-1", "--guarantee", "1kpps")
    assert changed[0]["contract"]["tenant"] == "acme"
    refused = shell("contract", "set", "edge-1", "acme-1", "--tenant", "beta", code=1)
    assert "the router is of tenant acme" in refused
    monkeypatch.setenv("POLICER_TOKEN", limited.secrets["router"])
    made = ("contract", "set", "edge-1", "acme-2", "--guarantee", "1kpps", "--tenant", "acme")
    assert shell.json(*made)[0]["version"] == 3  # it was removed before


def test_tenants_are_given_and_taken_away_by_who_is_not_limited(
    limited: Rig, shell: "Shell", monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POLICER_TOKEN", limited.secrets["admin"])
    moved = shell.json("contract", "set", "edge-1", "acme-1", "--tenant", "beta")
    assert moved[0]["contract"]["tenant"] == "beta"
    freed = shell.json("contract", "set", "edge-1", "acme-1", "--tenant", "none")
    assert freed[0]["contract"]["tenant"] is None
    assert "tenant" in shell("contract", "history", "edge-1", "acme-1").splitlines()[0]
    rows = shell("audit").splitlines()
    assert rows[0].split() == ["when", "who", "id", "from", "did", "what"]
    assert limited.secrets["admin"].split("_")[1] in rows[-1]
    assert "127.0.0.1" in rows[-1]


def with_issuer(settings: Path, issuer: str, more: str = "") -> None:
    oidc = f'[oidc]\nissuer = "{issuer}"\naudience = "policer"\n{more}'
    grants = '[[oidc.grants]]\nvalue = "a"\nscope = "read"\n'
    settings.write_text(f"{settings.read_text()}\n{oidc}\n{grants}")


def test_a_check_reads_the_issuers_keys_in_a_file(alone: "Shell", settings: Path) -> None:
    keys = settings.parent / "keys.json"
    with_issuer(settings, "https://id.example", f'jwks_file = "{keys}"')
    assert "keys.json: No such file" in alone("config", "check", code=2)
    keys.write_text("{}")
    assert "oidc.jwks_file" in alone("config", "check", code=2)
    keys.write_bytes(published(rsa("first")))
    assert "1 of the issuer's keys" in alone("config", "check")


def test_a_check_asks_the_issuer_where_that_is_wanted(alone: "Shell", settings: Path) -> None:
    with issuing() as issuer:
        with_issuer(settings, issuer.url)
        assert alone.json("config", "check")["issuer_keys"] is None
        assert issuer.asked == []
        assert alone.json("config", "check", "--ask-issuer")["issuer_keys"] == 1
        issuer.status = 500
        assert "answered 500" in alone("config", "check", "--ask-issuer", code=2)


def test_settings_with_an_issuer_are_shown(alone: "Shell", settings: Path) -> None:
    with_issuer(settings, "https://id.example")
    shown = json.loads(alone("config", "show"))["oidc"]
    assert shown["grants"][0]["value"] == "a"
    assert shown["leeway_s"] == 30
