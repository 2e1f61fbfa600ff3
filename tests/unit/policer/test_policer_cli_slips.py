"""What somebody gets to read who mistypes a command: what is wrong, and what to do."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from httpx_sse import ServerSentEvent

from policer.cli import watch as cli_watch
from policer.cli.shared.client import Client
from policer.cli.watch import following

if TYPE_CHECKING:
    from policer_shell_rig import Shell
    from rest_rig import Rig

pytest_plugins = ["policer_shell_rig"]

ELSE = ("--telemetry", "ipc:///run/b", "--capacity", "1kpps")


def test_a_contract_of_a_router_that_its_host_has_not_is_made_and_said(shell: "Shell") -> None:
    shell("contract", "set", "gold", "r11", "--guarantee", "1kpps")
    assert shell.err == "policer: gold reports no router r11 so far; it has r1, r2\n"
    assert shell.json("contract", "get", "gold", "r11")["version"] == 1
    shell("contract", "set", "gold", "r2", "--guarantee", "1kpps")
    assert not shell.err
    shell("contract", "set", "gold", "r11", "--guarantee", "2kpps")
    assert not shell.err


def test_of_a_host_that_is_gone_no_router_is_said_to_be_missing(rig: "Rig", shell: "Shell") -> None:
    rig.wait(60.0)
    shell("contract", "set", "gold", "r11", "--guarantee", "1kpps")
    assert not shell.err


def test_a_change_of_nothing_makes_no_version(rig: "Rig", shell: "Shell") -> None:
    assert "nothing is to be changed" in shell("contract", "set", "gold", "r1", code=2)
    assert rig.store.contracts.get("gold", "r1").version.number == 1


@pytest.mark.parametrize("what", ["contract", "router"])
def test_a_host_that_is_not_there_has_no_empty_list(shell: "Shell", what: str) -> None:
    assert "no host glod" in shell(what, "list", "--host", "glod", code=1)


def test_a_host_without_contracts_has_an_empty_list(rig: "Rig", shell: "Shell") -> None:
    rig.store.contracts.remove("silver", "r1", 1, "test")
    assert shell.json("contract", "list", "--host", "silver") == []


def test_a_host_that_is_there_is_changed_by_another_command(shell: "Shell") -> None:
    said = shell("host", "add", "gold", "--requests", "ipc:///run/a", *ELSE, code=1)
    assert "host gold already exists (change it with `policer host set`)" in said


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("contract", "set", "gold", "a b", "--guarantee", "1"), "vr: it has the wrong form"),
        (
            ("host", "add", "h", "--requests", "10.0.0.7:7077", *ELSE),
            "requests: it has the wrong form (write tcp://10.0.0.7:7077 or",
        ),
    ],
)
def test_what_does_not_fit_its_form_is_shown_one_that_does(
    shell: "Shell", words: tuple[str, ...], said: str
) -> None:
    answer = shell(*words, code=1)
    assert said in answer
    assert "regex" not in answer


def test_a_table_in_a_pipe_has_a_line_a_row(
    shell: "Shell", monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS")
    shell("contract", "set", "gold", "r1", "--measures", "warn,lower,limit,pause,stop")
    heading, *rows = shell("contract", "list").splitlines()
    assert heading.split()[-2:] == ["version", "by"]
    assert len(rows) == 2
    assert "warn, lower, limit, pause, stop" in rows[0]
    assert "  admin (" in rows[0]
    assert rows[0].endswith(" from 127.0.0.1)")


def test_who_follows_events_is_told_of_a_gap(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(cli_watch, "RETRY_S", 0.0)
    asked: list[str] = []

    class Restored(Client):
        """A service whose database was put back to event 3, and then has another."""

        def stream(self, path: str, last_id: str = "", **_: str) -> Iterator[ServerSentEvent]:
            asked.append(last_id)
            assert path.endswith("/events/stream")
            yield ServerSentEvent("gap", "event 900 is later than the latest, 3", id="3")
            if len(asked) == 2:
                yield ServerSentEvent("event", '{"id": 4}', id="4")

    with Restored("http://127.0.0.1:1", "xtcp_none") as client:
        waits = following(client, "900", {})
        assert next(waits) == {"id": 4}
    assert asked == ["900", "3"]
    assert "policer: event 900 is later than the latest, 3\n" in capsys.readouterr().err
