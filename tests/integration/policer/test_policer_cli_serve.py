"""policer serve as a process of its own: readiness, signals, TLS, and what keeps it from it."""

import asyncio
import os
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

import httpx
import pytest
from support.stalls import Stalls
from support.waiting import free_port

from policer.config.file import load_settings
from policer.daemon.serve import serve
from policer.daemon.worker import Worker
from policer.errors import PolicerError
from policer.service.service import Service

PATIENCE_S = 40.0


class RunningPolicer:
    """`python -m policer serve`, heard through the socket of sd_notify."""

    def __init__(self, folder: Path, database: Path | None = None) -> None:
        self.folder, self.port = folder, free_port()
        self._database = database or folder / "policer.db"
        self.settings, self.log = folder / "policer.toml", folder / "log"
        self.write()
        self._notices = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._notices.bind(str(folder / "notify"))
        self._notices.settimeout(PATIENCE_S)
        self.process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
        self._notices.close()

    def write(self, server: str = "", more: str = "") -> None:
        """Write the settings."""
        self.settings.write_text(
            f'[server]\nlisten = "127.0.0.1:{self.port}"\n{server}\n'
            f'[store]\nurl = "sqlite:///{self._database}"\n'
            f'[log]\nformat = "json"\n{more}\n'
        )

    def begin(self) -> None:
        """Start, and do not wait."""
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "policer", "serve", "--config", str(self.settings)],
                env=os.environ | {"NOTIFY_SOCKET": str(self.folder / "notify")},
                stderr=log,
            )

    def start(self) -> None:
        """Start, and wait until it says that it is ready."""
        self.begin()
        self.heard("READY=1")

    def heard(self, line: str) -> str:
        """Wait for a notice with this line and return it."""
        while True:
            notice = self._notices.recv(4096).decode()
            if any(said.startswith(line) for said in notice.splitlines()):
                return notice

    def logged(self, words: str) -> None:
        """Wait until the log has these words."""
        until = time.monotonic() + PATIENCE_S
        while words not in self.log.read_text():
            assert time.monotonic() < until, self.log.read_text()
            time.sleep(0.05)

    def signal(self, number: signal.Signals) -> None:
        """Send a signal."""
        assert self.process is not None
        self.process.send_signal(number)

    def ended(self) -> int:
        """Wait for the end and return the exit code."""
        assert self.process is not None
        return self.process.wait(PATIENCE_S)

    def token(self) -> dict[str, str]:
        """Make a token, and return what a request must carry."""
        made = subprocess.run(
            [
                sys.executable,
                "-m",
                "policer",
                "token",
                "add",
                "t",
                "--scope",
                "read",
                "--config",
                str(self.settings),
            ],
            capture_output=True,
            text=True,
            check=True,
        )
        return {"Authorization": f"Bearer {made.stdout.strip()}"}


@pytest.fixture
def policer(tmp_path: Path) -> Iterator[RunningPolicer]:
    with RunningPolicer(tmp_path) as policer:
        yield policer


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_policer_serves_until_it_is_told_to_stop(
    policer: RunningPolicer, number: signal.Signals
) -> None:
    policer.start()
    assert "leads in epoch" in policer.heard("STATUS=leads")
    address = f"http://127.0.0.1:{policer.port}"
    assert httpx.get(f"{address}/readyz").status_code == 200
    assert httpx.get(f"{address}/metrics").status_code == 401
    seen = httpx.get(f"{address}/metrics", headers=policer.token()).text
    assert "policer_leading 1.0" in seen
    assert "policer_store_up 1.0" in seen
    policer.signal(number)
    policer.heard("STOPPING=1")
    assert policer.ended() == 0


def test_a_stop_does_not_wait_for_those_who_listen(policer: RunningPolicer) -> None:
    policer.start()
    url = f"http://127.0.0.1:{policer.port}/v1/events/stream"
    with httpx.stream("GET", url, headers=policer.token(), timeout=PATIENCE_S) as stream:
        assert stream.status_code == 200
        next(stream.iter_raw())
        policer.signal(signal.SIGTERM)
        assert policer.ended() == 0  # within PATIENCE_S; the stream would last an hour


def test_a_second_policer_leads_when_the_first_is_lost(
    policer: RunningPolicer, tmp_path: Path, stalls: Stalls
) -> None:
    policer.start()
    epoch = int(policer.heard("STATUS=leads").partition("epoch ")[2].partition(";")[0])
    (tmp_path / "second").mkdir()
    with RunningPolicer(tmp_path / "second", tmp_path / "policer.db") as second:
        second.start()
        second.heard("STATUS=follows")
        policer.signal(signal.SIGKILL)
        lost = time.monotonic()
        said = second.heard("STATUS=leads")
        stalls.check_within(lost, time.monotonic(), 10.0)
        assert int(said.partition("epoch ")[2].partition(";")[0]) > epoch


def test_settings_are_read_anew(policer: RunningPolicer) -> None:
    policer.start()
    policer.write(more="[policy]\ndry_run = true")
    policer.signal(signal.SIGHUP)
    policer.logged('"reloaded"')
    policer.write(more="[policy]\ndry_runn = true")
    policer.signal(signal.SIGHUP)
    policer.logged("reload_refused")
    policer.logged("did you mean dry_run?")
    policer.write(server="behind_proxy = true")
    policer.signal(signal.SIGHUP)
    policer.logged('"restart_needed": ["server"]')


def test_an_address_that_is_taken_is_said_so(policer: RunningPolicer) -> None:
    with socket.create_server(("127.0.0.1", policer.port)):
        policer.begin()
        assert policer.ended() == 1  # which systemd starts again
    said = policer.log.read_text()
    assert said.startswith(f"policer: server.listen: 127.0.0.1:{policer.port}: Address already")
    assert "Traceback" not in said


def test_a_database_that_cannot_be_used_is_said_so(policer: RunningPolicer) -> None:
    (policer.folder / "policer.db").write_bytes(b"no database" * 1000)
    policer.begin()
    assert policer.ended() == 1
    said = policer.log.read_text()
    assert said.startswith("policer: ")
    assert "Traceback" not in said


def certificate(folder: Path) -> Path:
    """Make a key, and a certificate that it signed itself."""
    subprocess.run(
        [
            "openssl",
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:P-256",
            "-nodes",
            "-days",
            "1",
            "-subj",
            "/CN=localhost",
            "-addext",
            "subjectAltName=IP:127.0.0.1",
            "-keyout",
            str(folder / "key.pem"),
            "-out",
            str(folder / "cert.pem"),
        ],
        check=True,
        capture_output=True,
    )
    return folder / "cert.pem"


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl")
def test_https_is_served_with_a_certificate(policer: RunningPolicer) -> None:
    trusted = certificate(policer.folder)
    tls = f'tls_cert = "{trusted}"\ntls_key = "{policer.folder}/key.pem"'
    policer.write(server=tls)
    policer.start()
    context = ssl.create_default_context(cafile=str(trusted))
    address = f"https://127.0.0.1:{policer.port}/livez"
    assert httpx.get(address, verify=context).status_code == 200
    with pytest.raises(httpx.ConnectError, match="self-signed"):
        httpx.get(address)
    token = policer.token()["Authorization"].removeprefix("Bearer ")
    asked = [sys.executable, "-m", "policer", "host", "list", "--json"]
    places = {"POLICER_URL": f"https://127.0.0.1:{policer.port}", "POLICER_TOKEN": token}
    for more, code in (({"SSL_CERT_FILE": str(trusted)}, 0), ({}, 3)):
        done = subprocess.run(asked, env=os.environ | places | more, check=False, timeout=30)
        assert done.returncode == code


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl")
def test_a_renewed_certificate_is_taken_over_without_a_restart(policer: RunningPolicer) -> None:
    trusted = certificate(policer.folder)
    policer.write(server=f'tls_cert = "{trusted}"\ntls_key = "{policer.folder}/key.pem"')
    policer.start()
    address = f"https://127.0.0.1:{policer.port}/livez"
    first = ssl.create_default_context(cadata=trusted.read_text())
    answer = httpx.get(address, verify=first)
    assert answer.headers["strict-transport-security"] == "max-age=31536000"
    trusted.write_text("half written")
    policer.signal(signal.SIGHUP)
    policer.logged("reload_refused")
    assert httpx.get(address, verify=first).status_code == 200  # the old one goes on
    second = ssl.create_default_context(cadata=certificate(policer.folder).read_text())
    policer.signal(signal.SIGHUP)
    policer.logged('"reloaded"')
    assert reached(address, second)
    with pytest.raises(httpx.ConnectError):
        httpx.get(address, verify=first)


def reached(address: str, trusted: ssl.SSLContext) -> bool:
    """Whether a server is there whose certificate is trusted."""
    with suppress(httpx.ConnectError):
        return httpx.get(address, verify=trusted).status_code == 200
    return False


def test_a_certificate_that_is_none_is_said_so(policer: RunningPolicer) -> None:
    nonsense = policer.folder / "cert.pem"
    nonsense.write_text("nonsense")
    policer.write(server=f'tls_cert = "{nonsense}"\ntls_key = "{nonsense}"')
    policer.begin()
    assert policer.ended() == 2
    assert policer.log.read_text().startswith("policer: server.tls_cert: ")


# --- the service's thread


def test_a_service_that_died_is_told_with_its_reason() -> None:
    async def dies() -> None:
        raise ZeroDivisionError("a defect")

    worker = Worker(dies)
    worker.start()
    worker.stop()
    assert worker.problem == "ZeroDivisionError: a defect"


def test_a_service_that_was_stopped_has_no_problem() -> None:
    ended: list[bool] = []

    async def works() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(True)

    worker = Worker(works)
    worker.start()
    worker.stop()
    assert (ended, worker.problem) == ([True], "")


def test_a_loop_that_hangs_is_silent() -> None:
    hangs, go_on = threading.Event(), threading.Event()

    async def work() -> None:
        await asyncio.sleep(0)
        hangs.set()
        go_on.wait()

    worker = Worker(work)
    worker.start()
    hangs.wait()
    before = worker.silent_for()
    while worker.silent_for() < before + 0.6:  # longer than a beat
        threading.Event().wait(0.05)
    go_on.set()
    worker.stop()


def test_a_service_that_died_ends_the_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def dies(_self: Any) -> None:
        raise ZeroDivisionError("a defect")

    monkeypatch.setattr(Service, "run", dies)
    policer = RunningPolicer(tmp_path)
    settings = load_settings(policer.settings)
    previous = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        with policer, pytest.raises(PolicerError, match="ZeroDivisionError: a defect"):
            serve(settings, policer.settings)
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
