"""The manager's sockets with real peers: local ones, friends, strangers, and the malicious."""

import contextlib
import shutil
import socket as sockets
import stat
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog
import zmq
import zmq.auth
from zmq.utils.monitor import recv_monitor_message

from common.errors import Busy, ConfigError
from xtc.daemon.client import Client
from xtc.daemon.key_check import LINES_A_MINUTE, MAX_KEYS, Refusals
from xtc.daemon.server import REQUESTS, TELEMETRY, CurveKeys, Listen, Server, check_listen
from xtc.errors import Refused, Unreachable
from xtc.wire import (
    Answer,
    Envelope,
    Outcomes,
    Refusal,
    Reply,
    Status,
    Telemetry,
    decode_reply,
    decode_request,
    decode_telemetry,
    encode,
)

Socket = zmq.Socket[bytes]
WAIT_MS = 5000
STATUS = encode(Envelope(Status()))
TICK = Telemetry(1.0, 1, ())


def handle(raw: bytes) -> Reply:
    """Answer as a manager without routers would."""
    try:
        return Reply(Answer(()), id=decode_request(raw).id)
    except Refused as refused:
        return Reply(Refusal(refused.code, refused.field, refused.problem))


class Peers:
    """Sockets on the other side, closed when the test ends."""

    def __init__(self) -> None:
        self._context: zmq.Context[Socket] = zmq.Context()
        self._sockets: list[Socket] = []

    def socket(self, kind: int = zmq.DEALER) -> Socket:
        """Return a socket that is not connected yet."""
        self._sockets.append(self._context.socket(kind))
        return self._sockets[-1]

    def connected(self, address: str) -> Socket:
        """Return a socket that sends requests there."""
        socket = self.socket()
        socket.connect(address)
        return socket

    def close(self) -> None:
        """Hang up, everywhere."""
        for socket in self._sockets:
            socket.close(linger=0)
        self._context.term()

    def failure(self, socket: Socket, events: int) -> Socket:
        """Return a socket that hears when one of these events happens to another."""
        self._sockets.append(socket.get_monitor_socket(events))
        return self._sockets[-1]


@pytest.fixture
def peers() -> Iterator[Peers]:
    peers = Peers()
    yield peers
    peers.close()


@pytest.fixture
def local(tmp_path: Path) -> Iterator[Server]:
    with Server(Listen(tmp_path / "run"), handle) as server:
        yield server


def address(tmp_path: Path) -> str:
    return f"ipc://{tmp_path / 'run' / REQUESTS}"


def exchanged(server: Server, socket: Socket, *frames: bytes) -> Reply:
    """Send a message, let the server serve, and return its answer."""
    socket.send_multipart(frames)
    assert any(own.poll(WAIT_MS) for own in server.request_sockets)
    server.serve()
    assert socket.poll(WAIT_MS)
    return decode_reply(socket.recv_multipart()[-1])


def test_a_request_is_answered_to_whom_it_came_from(
    local: Server, peers: Peers, tmp_path: Path
) -> None:
    one, other = (peers.connected(address(tmp_path)) for _ in range(2))
    assert exchanged(local, one, encode(Envelope(Status(), id="one"))).id == "one"
    assert exchanged(local, other, encode(Envelope(Status(), id="other"))).id == "other"


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"not json",
        b"\xff" * 100,
        b"[" * 60000,
        b'{"version":7}',
        b'{"version":1,"request":{"type":"activate","vr":"a","setpoint_pps":NaN}}',
        b'{"version":1,"request":{"type":"status"},"x":%s}' % (b"9" * 60000),
        b'{"version":1,"request":{"type":"status","mystery":1}}',
    ],
    ids=["empty", "words", "bytes", "nested", "version", "nan", "huge int", "unknown field"],
)
def test_every_bad_message_gets_one_refusal_and_the_next_an_answer(
    local: Server, peers: Peers, tmp_path: Path, raw: bytes
) -> None:
    socket = peers.connected(address(tmp_path))
    assert isinstance(exchanged(local, socket, raw).result, Refusal)
    assert not socket.poll(0)
    assert isinstance(exchanged(local, socket, STATUS).result, Answer)


def test_a_megabyte_costs_its_sender_the_connection_and_nobody_else(
    local: Server, peers: Peers, tmp_path: Path
) -> None:
    rude = peers.connected(address(tmp_path))
    monitor = peers.failure(rude, zmq.EVENT_DISCONNECTED)
    rude.send(b"x" * (1 << 20))
    assert monitor.poll(WAIT_MS)
    assert local.serve() == 0
    polite = peers.connected(address(tmp_path))
    assert isinstance(exchanged(local, polite, STATUS).result, Answer)


def test_many_frames_are_one_message(local: Server, peers: Peers, tmp_path: Path) -> None:
    socket = peers.connected(address(tmp_path))
    assert isinstance(exchanged(local, socket, *[b""] * 50, STATUS).result, Answer)


def test_a_flood_is_answered_in_parts(local: Server, peers: Peers, tmp_path: Path) -> None:
    socket = peers.connected(address(tmp_path))
    for _ in range(600):
        socket.send(STATUS)
    (own,) = local.request_sockets
    served: list[int] = []
    while sum(served) < 600:
        assert own.poll(WAIT_MS)
        served.append(local.serve())
    assert max(served) <= 256


def test_a_request_that_waits_keeps_its_place(tmp_path: Path, peers: Peers) -> None:
    ready: list[bool] = []
    with Server(Listen(tmp_path / "run"), lambda raw: handle(raw) if ready else None) as server:
        peer = peers.connected(address(tmp_path))
        for number in "12":
            peer.send(encode(Envelope(Status(), id=number)))
        assert server.request_sockets[0].poll(WAIT_MS)
        assert (server.serve(), server.serve(), server.waiting) == (0, 0, True)
        ready.append(True)
        done = 0
        while done < 2:
            done += server.serve()
        assert not server.waiting
        assert [decode_reply(peer.recv()).id for _ in "12"] == ["1", "2"]


def test_a_flood_of_batches_is_answered_in_parts_by_what_they_hold(
    tmp_path: Path, peers: Peers
) -> None:
    def outcomes(_raw: bytes) -> Reply:
        return Reply(Outcomes((None,) * 100))

    with Server(Listen(tmp_path / "run"), outcomes) as server:
        socket = peers.connected(address(tmp_path))
        for _ in range(10):
            socket.send(STATUS)
        (own,) = server.request_sockets
        served: list[int] = []
        while sum(served) < 1000:
            assert own.poll(WAIT_MS)
            served.append(server.serve())
        assert max(served) < 256 + 100


def test_local_sockets_are_for_owner_and_group(local: Server, tmp_path: Path) -> None:
    assert local.request_sockets
    for name in (REQUESTS, TELEMETRY):
        mode = (tmp_path / "run" / name).stat().st_mode
        assert stat.S_IMODE(mode) == 0o660
    assert stat.S_IMODE((tmp_path / "run").stat().st_mode) == 0o750


def test_closing_leaves_no_socket_file(tmp_path: Path) -> None:
    with Server(Listen(tmp_path / "run"), handle):
        pass
    assert [file.name for file in (tmp_path / "run").iterdir()] == ["lock"]


def listening(peers: Peers, tmp_path: Path, prefix: bytes = b"") -> Socket:
    """Return a listener of the local stream."""
    listener = peers.socket(zmq.SUB)
    listener.connect(f"ipc://{tmp_path / 'run' / TELEMETRY}")
    listener.subscribe(prefix)
    return listener


def hears(server: Server, listener: Socket) -> bool:
    """Publish until a listener hears of it, or patience ends; its subscription may be under way."""
    for _ in range(WAIT_MS // 10):
        server.publish(TICK)
        if listener.poll(10):
            return decode_telemetry(listener.recv()) == TICK
    return False


def drained(listener: Socket) -> None:
    while listener.poll(100):
        listener.recv()


def test_telemetry_is_streamed_to_those_who_listen(
    local: Server, peers: Peers, tmp_path: Path
) -> None:
    assert hears(local, listening(peers, tmp_path))


def test_a_listener_that_leaves_silences_no_other(
    local: Server, peers: Peers, tmp_path: Path
) -> None:
    policer = listening(peers, tmp_path)
    other = listening(peers, tmp_path, prefix=encode(TICK)[:1])
    assert hears(local, policer)
    assert hears(local, other)
    monitor = peers.failure(other, zmq.EVENT_CLOSED | zmq.EVENT_MONITOR_STOPPED)
    other.unsubscribe(encode(TICK)[:1])
    other.close(linger=0)
    assert monitor.poll(WAIT_MS)
    drained(policer)
    assert hears(local, policer)


@pytest.mark.parametrize("junk", [b"hello", b"", b"\x00", b"\x01q", b"\x00" * 1000])
def test_bytes_sent_upstream_silence_no_listener(
    local: Server, peers: Peers, tmp_path: Path, junk: bytes
) -> None:
    policer = listening(peers, tmp_path)
    assert hears(local, policer)
    rude = peers.socket(zmq.XSUB)
    rude.connect(f"ipc://{tmp_path / 'run' / TELEMETRY}")
    rude.send(b"\x01")
    assert hears(local, rude)  # what it sends does arrive
    rude.send(junk)
    rude.send(b"\x01after")
    drained(policer)
    assert hears(local, policer)


def test_a_runtime_directory_that_is_none_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match=r"daemon\.runtime_dir"):
        Server(Listen(tmp_path / "file"), handle).open()


# The client


def test_a_client_without_a_daemon_says_so_in_time(tmp_path: Path) -> None:
    with Client(tmp_path, timeout=0.05) as client:
        with pytest.raises(Unreachable, match="xtc run"):
            client.call(Status())
        with pytest.raises(Unreachable):
            next(client.telemetry())


# TCP


class Keys:
    """Key files of a daemon, of a policer that it knows, and of one that it does not."""

    def __init__(self, directory: Path) -> None:
        self.authorised = directory / "authorised"
        self.authorised.mkdir()
        (directory / "own").mkdir()
        _, server = zmq.auth.create_certificates(directory / "own", "server")
        _, friend = zmq.auth.create_certificates(self.authorised, "friend")
        _, stranger = zmq.auth.create_certificates(directory / "own", "stranger")
        self.server, self.friend, self.stranger = map(Path, (server, friend, stranger))
        self.server.chmod(0o600)

    def listen(self, directory: Path) -> Listen:
        curve = CurveKeys(self.server, self.authorised)
        return Listen(directory / "run", "tcp://127.0.0.1:*", "tcp://127.0.0.1:*", curve)

    def dress(self, socket: Socket, own: Path) -> Socket:
        """Give a socket its own keys, and the server's public one."""
        public, secret = zmq.auth.load_certificate(own)
        assert secret is not None
        socket.curve_publickey, socket.curve_secretkey = public, secret
        socket.curve_serverkey = zmq.auth.load_certificate(self.server)[0]
        return socket


@pytest.fixture
def keys(tmp_path: Path) -> Keys:
    return Keys(tmp_path)


@pytest.fixture
def remote(keys: Keys, tmp_path: Path) -> Iterator[Server]:
    with Server(keys.listen(tmp_path), handle) as server:
        yield server


def endpoint(server: Server) -> str:
    return server.request_sockets[1].get_string(zmq.LAST_ENDPOINT)


def test_a_known_key_is_answered_over_tcp(remote: Server, keys: Keys, peers: Peers) -> None:
    socket = keys.dress(peers.socket(), keys.friend)
    socket.connect(endpoint(remote))
    socket.send(STATUS)
    assert remote.request_sockets[1].poll(WAIT_MS)
    remote.serve()
    assert socket.poll(WAIT_MS)


def test_an_unknown_key_is_turned_away(remote: Server, keys: Keys, peers: Peers) -> None:
    socket = keys.dress(peers.socket(), keys.stranger)
    monitor = peers.failure(socket, zmq.EVENT_HANDSHAKE_FAILED_AUTH)
    socket.connect(endpoint(remote))
    socket.send(STATUS)
    assert monitor.poll(WAIT_MS)
    assert recv_monitor_message(monitor)["event"] == zmq.EVENT_HANDSHAKE_FAILED_AUTH
    assert remote.serve() == 0


def test_speech_in_the_clear_is_not_heard(remote: Server, peers: Peers) -> None:
    socket = peers.socket()
    failed = zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL | zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL
    monitor = peers.failure(socket, failed | zmq.EVENT_DISCONNECTED)
    socket.connect(endpoint(remote))
    socket.send(STATUS)
    assert monitor.poll(WAIT_MS)
    assert remote.serve() == 0


# Other keys, without another daemon


def connected(server: Server, keys: Keys, peers: Peers, own: Path) -> Socket:
    """Return a socket that has asked over TCP; its request waits at the server, if it is let in."""
    socket = keys.dress(peers.socket(), own)
    socket.connect(endpoint(server))
    socket.send(STATUS)
    return socket


def answered(server: Server, socket: Socket) -> bool:
    """Whether a request gets its answer; libzmq connects again by itself."""
    for _ in range(WAIT_MS // 10):
        server.serve()
        if socket.poll(10):
            return isinstance(decode_reply(socket.recv()).result, Answer)
    return False


def happens(server: Server, monitor: Socket) -> bool:
    """Whether an event comes while the server serves, as its loop does."""
    for _ in range(WAIT_MS // 10):
        server.serve()
        if monitor.poll(10):
            return True
    return False


def test_a_key_that_is_added_is_admitted_and_no_connection_is_lost(
    remote: Server, keys: Keys, peers: Peers
) -> None:
    friend = connected(remote, keys, peers, keys.friend)
    assert answered(remote, friend)
    monitor = peers.failure(friend, zmq.EVENT_DISCONNECTED)
    shutil.copy(keys.stranger.with_suffix(".key"), keys.authorised)
    remote.reload_keys()
    assert answered(remote, connected(remote, keys, peers, keys.stranger))
    friend.send(STATUS)
    assert answered(remote, friend)
    assert not monitor.poll(0)


def test_a_key_that_is_removed_is_cut_off_and_the_others_come_back(
    remote: Server, keys: Keys, peers: Peers
) -> None:
    other = shutil.copy(keys.stranger.with_suffix(".key"), keys.authorised)
    remote.reload_keys()
    stranger = connected(remote, keys, peers, keys.stranger)
    friend = connected(remote, keys, peers, keys.friend)
    assert answered(remote, stranger)
    assert answered(remote, friend)
    refused = peers.failure(stranger, zmq.EVENT_HANDSHAKE_FAILED_AUTH)
    Path(other).unlink()
    remote.reload_keys()
    assert happens(remote, refused)
    with contextlib.suppress(zmq.Again):  # libzmq may have given up a peer that is refused
        stranger.send(STATUS, zmq.NOBLOCK)
    friend.send(STATUS)
    assert answered(remote, friend)
    assert not stranger.poll(100)


@contextlib.contextmanager
def taken(address: str, patch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let another process have an address as soon as it is free."""
    host, _, port = address.removeprefix("tcp://").rpartition(":")
    rivals: list[sockets.socket] = []
    unbind = zmq.Socket.unbind

    def beaten(self: Socket, endpoint: str) -> None:
        unbind(self, endpoint)
        if endpoint == address and not rivals:
            rivals.append(eventually_bound(host, int(port)))

    patch.setattr(zmq.Socket, "unbind", beaten)
    try:
        yield
    finally:
        for rival in rivals:
            rival.close()


def eventually_bound(host: str, port: int) -> sockets.socket:
    rival = sockets.socket()
    until = time.monotonic() + WAIT_MS / 1000
    while True:
        try:
            rival.bind((host, port))
        except OSError:
            assert time.monotonic() < until
        else:
            rival.listen()
            return rival


def test_an_address_that_is_taken_in_a_reload_is_tried_again(
    remote: Server, keys: Keys, peers: Peers, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = shutil.copy(keys.stranger.with_suffix(".key"), keys.authorised)
    remote.reload_keys()
    address = endpoint(remote)
    assert remote.listening[address]
    Path(other).unlink()
    with taken(address, monkeypatch), structlog.testing.capture_logs() as logs:
        remote.reload_keys()
        assert not remote.listening[address]
        remote.listen_again()
        assert not remote.listening[address]
    assert [(line["event"], line["address"]) for line in logs] == [("not_listening", address)]
    with structlog.testing.capture_logs() as logs:
        remote.listen_again()
        remote.listen_again()
    assert [line["event"] for line in logs] == ["listening"]
    assert remote.listening[address]
    assert answered(remote, connected(remote, keys, peers, keys.friend))


def test_another_key_of_its_own_is_shown_after_a_reload(
    remote: Server, keys: Keys, peers: Peers, tmp_path: Path
) -> None:
    (tmp_path / "other").mkdir()
    _, secret = zmq.auth.create_certificates(tmp_path / "other", "server")
    shutil.copy(secret, keys.server)
    keys.server.chmod(0o600)
    remote.reload_keys()
    assert answered(remote, connected(remote, keys, peers, keys.friend))


def test_keys_that_cannot_be_read_change_nothing(remote: Server, keys: Keys, peers: Peers) -> None:
    (keys.authorised / "bad.key").write_text("no key at all")
    with pytest.raises(ConfigError, match="authorised_keys_dir"):
        remote.reload_keys()
    assert answered(remote, connected(remote, keys, peers, keys.friend))


def test_a_refused_key_is_counted_always_and_logged_once_with_its_address(
    keys: Keys, tmp_path: Path, peers: Peers
) -> None:
    refused: list[None] = []
    with (
        structlog.testing.capture_logs() as logs,
        Server(
            keys.listen(tmp_path), handle, on_refused_key=lambda: refused.append(None)
        ) as server,
    ):
        for _ in range(3):
            socket = keys.dress(peers.socket(), keys.stranger)
            monitor = peers.failure(socket, zmq.EVENT_HANDSHAKE_FAILED_AUTH)
            socket.connect(endpoint(server))
            assert monitor.poll(WAIT_MS)
    assert len(refused) >= 3
    public, _ = zmq.auth.load_certificate(keys.stranger)
    said = [line for line in logs if line["event"] == "key_refused"]
    assert [(line["key"], line["address"]) for line in said] == [(public.decode(), "127.0.0.1")]


def test_refused_keys_are_logged_each_once_and_ten_a_minute() -> None:
    refusals = Refusals()
    assert refusals.is_news(b"a", 0.0)
    assert not refusals.is_news(b"a", 1000.0)
    news = [refusals.is_news(b"%d" % number, 1000.0 + number) for number in range(100)]
    assert sum(news[:60]) == LINES_A_MINUTE
    assert sum(news) == 2 * LINES_A_MINUTE


def test_a_stranger_with_many_keys_costs_no_memory() -> None:
    refusals = Refusals()
    for number in range(2 * MAX_KEYS):
        assert refusals.is_news(b"%d" % number, 60.0 * number)
    assert len(refusals._logged) == MAX_KEYS


def test_tcp_without_keys_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="xtc config keys"):
        check_listen(Listen(tmp_path, tcp_requests="tcp://127.0.0.1:*"))


def test_a_secret_that_others_can_read_is_refused(keys: Keys, tmp_path: Path) -> None:
    keys.server.chmod(0o640)
    with pytest.raises(ConfigError, match="chmod 600"):
        check_listen(keys.listen(tmp_path))


def test_a_secret_that_is_not_there_is_named(keys: Keys, tmp_path: Path) -> None:
    keys.server.unlink()
    with pytest.raises(ConfigError, match=r"server\.secret_key_file"):
        check_listen(keys.listen(tmp_path))


def test_keys_for_nobody_are_refused(keys: Keys, tmp_path: Path) -> None:
    for file in keys.authorised.iterdir():
        file.unlink()
    with pytest.raises(ConfigError, match="no client could connect"):
        check_listen(keys.listen(tmp_path))


@pytest.mark.parametrize("content", ["", "no key at all", 'curve\n    public-key = "abc"\n'])
def test_a_file_without_a_secret_is_named(keys: Keys, tmp_path: Path, content: str) -> None:
    keys.server.write_text(content)
    with pytest.raises(ConfigError, match=r"server\.secret_key_file"):
        Server(keys.listen(tmp_path), handle).open()


def test_an_address_that_is_taken_is_named_and_nothing_stays_open(
    remote: Server, keys: Keys, tmp_path: Path
) -> None:
    curve = CurveKeys(keys.server, keys.authorised)
    second = Server(Listen(tmp_path / "other", endpoint(remote), None, curve), handle)
    with pytest.raises(ConfigError, match=r"server\.tcp.*in use"):
        second.open()
    assert [file.name for file in (tmp_path / "other").iterdir()] == ["lock"]


def test_a_library_with_known_holes_is_refused(
    keys: Keys, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(zmq, "zmq_version_info", lambda: (4, 3, 4))
    with pytest.raises(ConfigError, match="known vulnerabilities"):
        check_listen(keys.listen(tmp_path))


def test_two_daemons_do_not_share_a_runtime_directory(tmp_path: Path) -> None:
    with Server(Listen(tmp_path), handle), pytest.raises(Busy, match="runtime_dir"):
        Server(Listen(tmp_path), handle).open()
    with Server(Listen(tmp_path), handle):
        assert (tmp_path / "manager.sock").exists()
