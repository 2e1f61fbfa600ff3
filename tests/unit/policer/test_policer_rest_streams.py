"""Streams over a real socket: resumed without loss, bounded in number and memory, ended."""

import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from rest_rig import GOLD, Rig, filled, opened, report, serving
from structlog.testing import capture_logs

from policer.errors import StoreGone
from policer.rest.handlers import streams
from policer.store import Event

WAIT_S = 10.0
EVENTS = "/v1/events/stream"


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    with opened(
        tmp_path, stream_tick_s=0.02, stream_heartbeat_s=1.0, max_streams=2, send_s=0.5
    ) as rig:
        filled(rig)
        yield rig


@pytest.fixture
def address(rig: Rig) -> Iterator[str]:
    with serving(rig.app) as address:
        yield address


class Listener:
    """A client that streams: each call of `next` returns one message as its fields."""

    def __init__(self, client: httpx.Client, url: str, headers: dict[str, str]) -> None:
        self._context = client.stream("GET", url, headers=headers)
        self.answer = self._context.__enter__()
        self._lines = self.answer.iter_lines()

    def next(self) -> dict[str, str]:
        """Return the next message; a comment has the field ""."""
        fields: dict[str, str] = {}
        for line in self._lines:
            if not line and fields:
                return fields
            if line:
                name, _, value = line.partition(":")
                fields[name] = value.strip()
        return fields

    def event(self) -> Any:
        """Return the data of the next message that has some."""
        while "data" not in (message := self.next()):
            assert message, "the stream has ended"
        return json.loads(message["data"])

    def drain(self) -> None:
        """Read on until the stream ends."""
        while self.next():
            pass

    def close(self) -> None:
        """Hang up."""
        self._context.__exit__(None, None, None)


@pytest.fixture
def client(address: str) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=address, timeout=WAIT_S) as client:
        yield client


def test_no_token_takes_all_streams(tmp_path: Path) -> None:
    with (
        opened(tmp_path, stream_tick_s=0.02, max_streams_each=2) as rig,
        serving(rig.app) as address,
        httpx.Client(base_url=address, timeout=WAIT_S) as client,
    ):
        listeners = [Listener(client, EVENTS, rig.headers("read")) for _ in range(2)]
        refused = client.get(EVENTS, headers=rig.headers("read"))
        assert refused.status_code == 429
        assert "this token streams 2 times already" in refused.json()["detail"]
        listeners.append(Listener(client, EVENTS, rig.headers("operate")))
        for listener in listeners:
            assert listener.answer.status_code == 200
            listener.close()


def test_a_filter_that_nothing_fits_is_not_looked_for_again_and_again(
    rig: Rig, client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig.note(500)
    asked, since = list[int](), rig.store.events.since
    monkeypatch.setattr(
        rig.store.events, "since", lambda last, *rest: asked.append(last) or since(last, *rest)
    )
    headers = rig.headers("read") | {"Last-Event-ID": "0"}
    listener = Listener(client, f"{EVENTS}?kind=never", headers)
    for _ in range(2):
        rig.note(1, "never")
        assert listener.event()["kind"] == "never"
    listener.close()
    assert asked[0] == 0
    assert min(asked[1:]) >= 500  # what was looked through once is behind


def test_events_come_as_they_happen_and_are_resumed_where_they_were_left(
    rig: Rig, client: httpx.Client
) -> None:
    rig.note(3)
    listener = Listener(client, EVENTS, rig.headers("read"))
    assert listener.answer.headers["content-type"].startswith("text/event-stream")
    assert listener.next()[""] == "from here on"
    rig.note(2)
    first = listener.event()
    assert first["words"] == "words 0"
    listener.close()
    rig.note(250)
    last = {"Last-Event-ID": str(first["id"])}
    listener = Listener(client, EVENTS, rig.headers("read") | last)
    ids = [listener.event()["id"] for _ in range(251)]
    assert ids == list(range(first["id"] + 1, first["id"] + 252))
    listener.close()


@pytest.mark.parametrize("count", [0, 3])
def test_a_client_that_saw_later_events_is_told_and_given_what_comes(
    rig: Rig, client: httpx.Client, count: int
) -> None:
    """As after a backup was restored: its event 900 would else be waited for in silence."""
    rig.note(count)
    listener = Listener(client, EVENTS, rig.headers("read") | {"Last-Event-ID": "900"})
    listener.next()
    told = listener.next()
    assert (told["event"], told["id"]) == ("gap", str(count))
    assert f"event 900 is later than the latest, {count}" in told["data"]
    rig.note(1)
    assert listener.event()["id"] == count + 1
    listener.close()


def test_a_client_that_saw_the_latest_event_is_told_of_no_gap(
    rig: Rig, client: httpx.Client
) -> None:
    rig.note(3)
    listener = Listener(client, EVENTS, rig.headers("read") | {"Last-Event-ID": "3"})
    listener.next()
    rig.note(1)
    assert listener.next()["event"] == "event"
    listener.close()


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("kind=released", ["b"]),
        ("host=silver", ["c", "d"]),
        ("vr=r1", ["b", "c"]),
        ("host=silver&vr=r1&kind=engaged", ["c"]),
    ],
)
def test_events_are_filtered(rig: Rig, client: httpx.Client, query: str, words: list[str]) -> None:
    listener = Listener(client, f"{EVENTS}?{query}", rig.headers("read"))
    listener.next()
    rig.store.events.add(
        [
            Event("gold", "engaged", "a"),
            Event("gold", "released", "b", "r1"),
            Event("silver", "engaged", "c", "r1"),
            Event("silver", "engaged", "d", "r2"),
        ]
    )
    assert [listener.event()["words"] for _ in words] == words
    listener.close()


def test_a_filter_that_cannot_be_is_refused(rig: Rig, client: httpx.Client) -> None:
    answer = client.get(f"{EVENTS}?vr=%20", headers=rig.headers("read"))
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["field"] == "vr"


def test_a_silent_stream_says_that_it_is_alive(rig: Rig, client: httpx.Client) -> None:
    listener = Listener(client, EVENTS, rig.headers("read"))
    listener.next()
    rig.wait(1.0)
    assert listener.next() == {"": "alive"}
    listener.close()


@pytest.mark.parametrize("last", ["x", "-1", "1.5", "9" * 25, "\N{ARABIC-INDIC DIGIT ONE}"])
def test_an_id_that_cannot_be_is_refused(rig: Rig, client: httpx.Client, last: str) -> None:
    headers = rig.headers("read") | {"Last-Event-ID": last}
    raw = {name: value.encode() for name, value in headers.items()}
    answer = client.get(EVENTS, headers=raw)  # type: ignore[arg-type]  # bytes are headers too
    assert answer.status_code == 422


def test_telemetry_shows_what_the_fleet_shows(rig: Rig, client: httpx.Client) -> None:
    listener = Listener(client, "/v1/stream?host=gold", rig.headers("read"))
    first = listener.event()
    assert list(first["hosts"]) == ["gold"]
    assert first["hosts"]["gold"]["routers"]["r1"] == {
        "throughput_pps": 30_000.0,
        "offered_pps": 30_000.0,
        "setpoint_pps": 20_000.0,
        "cap": 0.4,
        "mode": "closed_loop",
        "finding": "none",
        "throughput_bps": None,
        "offered_bps": None,
        "setpoint_bps": None,
    }
    rig.show(GOLD, report("r1", 25_000.0))
    for _ in range(100):
        routers = listener.event()["hosts"]["gold"]["routers"]
        if routers["r1"]["throughput_pps"] == 25_000.0:
            break
    else:
        raise AssertionError("the change never showed")
    listener.close()


def test_only_so_many_stream_and_a_place_that_is_left_is_free(
    rig: Rig, client: httpx.Client
) -> None:
    first, second = (Listener(client, "/v1/stream", rig.headers("read")) for _ in range(2))
    refused = client.get("/v1/stream", headers=rig.headers("read"))
    assert refused.status_code == 503
    assert refused.headers["retry-after"]
    first.close()
    for _ in range(1000):
        third = Listener(client, "/v1/stream", rig.headers("read"))
        if third.answer.status_code == 200:
            break
        third.close()
        rig.wait(1.0)  # or the token would ask too often
    assert third.event()["hosts"]
    third.close()
    second.close()


def test_a_stream_ends_when_its_token_is_revoked(rig: Rig, client: httpx.Client) -> None:
    row, secret = rig.store.tokens.add("brief", ["read"], None, "test")
    listener = Listener(client, EVENTS, {"Authorization": f"Bearer {secret}"})
    listener.next()
    answer = client.delete(f"/v1/tokens/{row.id}", headers=rig.headers("admin"))
    assert answer.status_code == 204
    listener.drain()
    listener.close()


def test_a_stream_ends_after_its_life(tmp_path: Path) -> None:
    with opened(tmp_path, stream_tick_s=0.01, stream_life_s=5.0) as rig:
        filled(rig)
        with serving(rig.app) as address, httpx.Client(base_url=address, timeout=WAIT_S) as client:
            listener = Listener(client, "/v1/stream", rig.headers("read"))
            listener.event()
            rig.wait(5.0)
            listener.drain()
            listener.close()


def test_a_stream_of_events_says_why_it_ends_when_the_store_is_away(
    rig: Rig, client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(*_: object) -> None:
        raise StoreGone("the database cannot be reached")

    listener = Listener(client, EVENTS, rig.headers("read"))
    listener.next()
    monkeypatch.setattr(rig.store.events, "since", gone)
    assert listener.next() == {"event": "problem", "data": "the database cannot be reached"}
    assert listener.next() == {}
    listener.close()


def test_a_stream_that_fails_breaks_off_and_is_logged_once(
    rig: Rig, client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("the secret reason")

    with capture_logs() as logs:
        listener = Listener(client, "/v1/stream", rig.headers("read"))
        listener.event()
        monkeypatch.setattr(streams, "telemetry", broken)
        with pytest.raises(httpx.RemoteProtocolError):
            listener.drain()
        listener.close()
    errors = [entry for entry in logs if entry["log_level"] == "error"]
    assert [entry["event"] for entry in errors] == ["answer_interrupted"]
    assert errors[0]["id"] == listener.answer.headers["x-request-id"]


def test_a_client_that_reads_nothing_is_hung_up_on_and_its_place_is_free(
    rig: Rig, address: str
) -> None:
    rig.show(GOLD, *(report(f"router-{i:04}", float(i)) for i in range(1500)))
    host, _, port = address.removeprefix("http://").partition(":")
    with slow_socket(host, int(port), rig.headers("read")) as sock:
        assert sock.recv(12) == b"HTTP/1.1 200"
        for _ in range(2000):
            if rig.app.state.context.streams.taken == 0:
                break
            httpx.get(f"{address}/livez")
        assert rig.app.state.context.streams.taken == 0


def slow_socket(host: str, port: int, headers: dict[str, str]) -> socket.socket:
    """Ask for telemetry over a socket with hardly a buffer."""
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
    sock.settimeout(WAIT_S)
    sock.connect((host, port))
    lines = ["GET /v1/stream HTTP/1.1", f"Host: {host}", *(f"{k}: {v}" for k, v in headers.items())]
    sock.sendall("\r\n".join([*lines, "", ""]).encode())
    return sock
