"""Webhooks over REST and on the command line: made once, tested, listed without secrets."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from rest_rig import Rig, opened
from webhook_rig import TRUSTING, endpoint, verify

from policer.store import Tried
from policer.webhooks.courier import Courier
from policer.webhooks.rules import Rules
from policer.webhooks.signing import new_secret

if TYPE_CHECKING:
    from policer_shell_rig import Shell

pytest_plugins = ["policer_shell_rig"]

URL = "https://hooks.example/policer"
NEW = {"name": "pager", "url": URL, "kinds": ["punished", "brake"]}


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    with opened(tmp_path, rate_burst=1e6, courier=Courier(lambda: TRUSTING)) as rig:
        yield rig


def made(rig: Rig, **fields: Any) -> Any:
    answer = rig.client().post("/v1/webhooks", json=NEW | fields)
    assert answer.status_code == 201, answer.text
    assert answer.headers["location"] == f"/v1/webhooks/{answer.json()['webhook']['id']}"
    return answer.json()


def die(rig: Rig, webhook: str, count: int) -> None:
    """Let messages be dead."""
    leadership = rig.store.leadership("test")
    epoch = leadership.acquire()
    leadership.release()
    assert epoch is not None
    tried = [Tried(f"evt_{n}", "punished", "{}", 10, "it answers: 500") for n in range(count)]
    rig.store.letters.settle(webhook, tried, count, epoch)


def test_a_secret_is_shown_once(rig: Rig) -> None:
    answer = made(rig)
    secret, row = answer["secret"], answer["webhook"]
    assert secret.startswith("whsec_")
    assert (row["name"], row["url"], row["kinds"]) == ("pager", URL, ["brake", "punished"])
    client = rig.client()
    (listed,) = client.get("/v1/webhooks").json()["items"]
    assert listed == client.get(f"/v1/webhooks/{row['id']}").json() == row
    shown = client.get("/v1/webhooks").text + client.get("/v1/audit").text
    assert secret not in shown
    assert secret.removeprefix("whsec_")[:20] not in shown


def test_a_secret_may_be_given(rig: Rig) -> None:
    secret = new_secret()
    assert made(rig, secret=secret)["secret"] == secret


@pytest.mark.parametrize(
    ("fields", "field", "fix"),
    [
        ({"url": "http://hooks.example/"}, "url", "allow_http"),
        ({"url": "https://127.0.0.1/"}, "url", ""),
        ({"url": "nonsense"}, "url", "https://"),
        ({"kinds": ["punish"]}, "kinds[0]", "did you mean punished?"),
        ({"kinds": []}, "kinds", ""),
        ({"kinds": ["punished", "zzz"]}, "kinds[1]", "guarantee_missed"),
        ({"secret": "hunter2"}, "secret", "leave it out"),
        ({"name": "=1+1"}, "name", ""),
        ({"more": 1}, "body", ""),
    ],
)
def test_what_cannot_be_is_refused_in_words(
    tmp_path: Path, fields: dict[str, Any], field: str, fix: str
) -> None:
    with opened(tmp_path, courier=Courier(Rules)) as rig:
        answer = rig.client().post("/v1/webhooks", json=NEW | fields)
        assert answer.status_code == 422
        error = answer.json()["errors"][0]
        assert error["field"] == field
        assert fix in error["fix"]
        assert rig.store.webhooks.all() == []


def test_a_name_is_there_once(rig: Rig) -> None:
    made(rig)
    assert rig.client().post("/v1/webhooks", json=NEW).status_code == 409


def test_webhooks_are_administrators_alone(rig: Rig) -> None:
    webhook = made(rig)["webhook"]["id"]
    for path in ("", f"/{webhook}", f"/{webhook}/dead"):
        assert rig.client("operate").get(f"/v1/webhooks{path}").status_code == 403
    assert rig.client("operate").post(f"/v1/webhooks/{webhook}/test").status_code == 403


def test_a_test_says_what_came_of_it(rig: Rig) -> None:
    with endpoint() as here:
        answer = made(rig, url=here.url())
        path = f"/v1/webhooks/{answer['webhook']['id']}/test"
        tested = rig.client().post(path).json()
        (got,) = here.got
        here.answer = lambda exchange: exchange.say(503)
        refused = rig.client().post(path).json()
    assert (tested["delivered"], tested["status"], tested["message"]) == (True, 204, got.message)
    body = verify(answer["secret"], got)
    assert (body["type"], body["data"]["words"]) == ("policer.test", "a test of this webhook")
    assert (refused["delivered"], refused["outcome"], refused["status"]) == (False, "refused", 503)


def test_a_test_goes_by_the_guard_of_this_moment(tmp_path: Path) -> None:
    rules = [TRUSTING]
    with opened(tmp_path, courier=Courier(lambda: rules[0])) as rig, endpoint() as here:
        webhook = made(rig, url=here.url())["webhook"]["id"]
        rules[0] = Rules(allow_http=True)
        answer = rig.client().post(f"/v1/webhooks/{webhook}/test").json()
    assert (answer["outcome"], answer["status"]) == ("forbidden", None)
    assert "allowed_networks" in answer["problem"]
    assert here.got == []


def test_dead_letters_are_listed_and_sent_again(rig: Rig) -> None:
    webhook = made(rig)["webhook"]["id"]
    die(rig, webhook, 5)
    client, path = rig.client(), f"/v1/webhooks/{webhook}"
    first = client.get(f"{path}/dead", params={"limit": 3}).json()
    rest = client.get(f"{path}/dead", params={"after": first["next"]}).json()
    letters = first["items"] + rest["items"]
    assert [letter["message"] for letter in letters] == [f"evt_{n}" for n in (4, 3, 2, 1, 0)]
    assert rest["next"] is None
    ids = [letters[0]["id"], letters[1]["id"]]
    answer = client.post(f"{path}/redeliver", json={"ids": ids}).json()
    assert answer == {"redelivered": 2, "left": 3}
    assert client.post(f"{path}/redeliver", json={}).json() == {"redelivered": 3, "left": 0}


def test_a_webhook_is_removed(rig: Rig) -> None:
    webhook = made(rig)["webhook"]["id"]
    assert rig.client().delete(f"/v1/webhooks/{webhook}").status_code == 204
    assert rig.client().delete(f"/v1/webhooks/{webhook}").status_code == 404
    assert rig.client().get("/v1/webhooks").json()["items"] == []


# --- the command line


def test_the_life_of_a_webhook(rig: Rig, shell: "Shell") -> None:
    with endpoint() as here:
        kinds = ("--kind", "punished", "--kind", "brake")
        secret = shell("webhook", "add", "pager", here.url(), *kinds).strip()
        assert "its secret cannot be read again" in shell.err
        assert secret not in shell.err
        assert "taken, with 204" in shell("webhook", "test", "pager")
        verify(secret, here.got[0])
        here.answer = lambda exchange: exchange.say(500)
        assert "it answers: 500" in shell("webhook", "test", "pager", code=1)
    (row,) = shell.json("webhook", "list")
    assert row["kinds"] == ["brake", "punished"]
    assert here.url() in shell("webhook", "list")
    die(rig, row["id"], 3)
    dead = shell.json("webhook", "dead", "pager")
    assert "it answers: 500" in shell("webhook", "dead", row["id"])
    assert "1 are sent again, 2 are left" in shell(
        "webhook", "redeliver", "pager", str(dead[0]["id"])
    )
    assert shell.json("webhook", "redeliver", "pager", "--all") == {"redelivered": 2, "left": 0}
    assert shell.json("webhook", "remove", "pager") == {"removed": "pager"}
    assert "no webhook pager" in shell("webhook", "remove", "pager", code=1)


def test_every_kind_is_sent_where_none_is_named(rig: Rig, shell: "Shell", tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text(new_secret())
    secret.chmod(0o600)
    made = shell.json("webhook", "add", "all", URL, "--secret-file", str(secret))
    assert (made["webhook"]["kinds"], made["secret"]) == (["*"], secret.read_text())
    assert [row.kinds for row in rig.store.webhooks.all()] == [("*",)]


def test_kinds_are_listed_without_a_policer(alone: "Shell") -> None:
    assert "punished" in alone("webhook", "kinds")
    assert "brake" in json.loads(alone("webhook", "kinds", "--json"))


@pytest.mark.parametrize("words", [(), ("1", "--all")])
def test_what_is_sent_again_must_be_said(alone: "Shell", words: tuple[str, ...]) -> None:
    assert "--all" in alone("webhook", "redeliver", "pager", *words, code=2)


def test_a_mistake_is_said_as_the_service_says_it(shell: "Shell") -> None:
    said = shell("webhook", "add", "pager", URL, "--kind", "punish", code=1)
    assert "did you mean punished?" in said
