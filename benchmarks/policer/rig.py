"""A policer as a separate process: its settings, database, client, and resource use.

The process is `policer serve` with an additional listener, which records the duration of each
round: `python -m benchmarks.policer.rig SETTINGS ROUNDS` writes them to the file ROUNDS when it
ends.
"""

import asyncio
import os
import signal
import subprocess
import sys
import time
from array import array
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import httpx

from benchmarks.ports import free_port
from benchmarks.rig import cpu_seconds
from policer.config.file import load_settings, store_url
from policer.contracts.contract import Contract
from policer.contracts.host import Host
from policer.daemon.connections import allow_files
from policer.daemon.serve import Serving, bound, keys_of, log_as
from policer.store import open_store

ACTOR: Final = "benchmark"
READY_S: Final = 90.0


@dataclass(frozen=True)
class Played:
    """One round of a policer."""

    at: float
    """When it ended, by the kernel's monotonic clock."""
    seconds: float


def enter(
    url: str,
    hosts: Iterable[Host],
    contracts: Mapping[str, Mapping[str, Contract]],
    classes: Mapping[str, Contract] | None = None,
) -> str:
    """Make a database with hosts and their contracts; return the secret of a token that reads."""
    store = open_store(url)
    for name, terms in (classes or {}).items():
        store.classes.put(name, terms, None, ACTOR)
    for host in hosts:
        store.hosts.add(host, ACTOR)
        for vr, contract in contracts.get(host.name, {}).items():
            store.contracts.put(host.name, vr, contract, None, ACTOR)
    _, secret = store.tokens.add(ACTOR, ["admin"], None, ACTOR)
    store.close()
    return secret


class Policer:
    """A running policer; leaving it ends it."""

    def __init__(  # noqa: PLR0917  each is one line of its settings
        self,
        folder: Path,
        url: str,
        secret: str,
        name: str = "one",
        keys: Path | None = None,
        more: str = "",
    ) -> None:
        """Start one; `more` are further tables of its settings."""
        folder.mkdir(parents=True, exist_ok=True)
        self._folder, self._secret = folder, secret
        self._port = free_port()
        settings = folder / "policer.toml"
        settings.write_text(_settings(name, self._port, url, keys) + more)
        settings.chmod(0o600)
        command = [sys.executable, "-m", "benchmarks.policer.rig", str(settings)]
        with (folder / "log").open("wb") as log:
            self._process = subprocess.Popen([*command, str(folder / "rounds")], stderr=log)
        # The policer may close a kept connection just as the next question is sent.
        self._client, self._kept = self.client(kept=0), self.client()

    def __enter__(self) -> Self:
        deadline = time.monotonic() + READY_S
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.kill()  # __exit__ does not run: it was never entered
                self._close_clients()
                raise RuntimeError(f"the policer did not start:\n{self.log}")
            time.sleep(0.1)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._close_clients()
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(20)
            except subprocess.TimeoutExpired:
                self.kill()

    def _close_clients(self) -> None:
        self._client.close()
        self._kept.close()

    def _answers(self) -> bool:
        try:
            return self._client.get("/livez").is_success
        except httpx.TransportError:
            return False

    def client(self, *, kept: int = 1) -> httpx.Client:
        """Return another client of its REST interface, with a number of open connections."""
        headers = {"Authorization": f"Bearer {self._secret}"}
        limits = httpx.Limits(max_keepalive_connections=kept)
        return httpx.Client(base_url=self.url, headers=headers, timeout=10.0, limits=limits)

    @property
    def url(self) -> str:
        """Base URL of page and REST."""
        return f"http://127.0.0.1:{self._port}"

    @property
    def address(self) -> tuple[str, int]:
        """Its listening address."""
        return "127.0.0.1", self._port

    @property
    def folder(self) -> Path:
        """Folder of its settings and its log."""
        return self._folder

    @property
    def pid(self) -> int:
        """Its process."""
        return self._process.pid

    @property
    def log(self) -> str:
        """Its log."""
        return (self._folder / "log").read_text()

    def kill(self) -> None:
        """Kill it as a loss of power would."""
        self._process.kill()
        self._process.wait(10)

    def get(self, path: str) -> Any:
        """Return REST's answer; raises httpx.HTTPError unless it is a success."""
        return self._client.get(path).raise_for_status().json()

    def timed(self, path: str) -> float:
        """Return the seconds that a read took."""
        start = time.perf_counter()
        self._kept.get(path).raise_for_status()
        return time.perf_counter() - start

    def cpu_seconds(self) -> float:
        """Return the CPU time that it has used."""
        return cpu_seconds(self.pid)

    def rss_mib(self) -> float:
        """Return its memory (proc(5), /proc/PID/statm)."""
        pages = int(Path(f"/proc/{self.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / (1 << 20)

    def rounds(self) -> list[Played]:
        """Return its rounds; known once it has ended."""
        numbers = array("d", (self._folder / "rounds").read_bytes())
        return [Played(at, seconds) for at, seconds in zip(*[iter(numbers)] * 2, strict=True)]


def _settings(name: str, port: int, url: str, keys: Path | None) -> str:
    link = "" if keys is None else f'secret_key_file = "{keys}"'
    return (
        f'[server]\nname = "{name}"\nlisten = "127.0.0.1:{port}"\n[store]\nurl = "{url}"\n'
        f'[link]\n{link}\n[log]\nformat = "json"\n'
    )


def main() -> None:
    """Run a policer that records the duration of its rounds."""
    path, rounds = Path(sys.argv[1]), Path(sys.argv[2])
    settings = load_settings(path)
    log_as(settings)
    allow_files()
    keys = None if settings.link.secret_key_file is None else keys_of(settings.link.secret_key_file)
    # Written immediately: records kept in memory would count as the policer's own.
    with bound(settings.server) as listening, rounds.open("wb", buffering=1 << 16) as kept:
        serving = Serving(settings, path, open_store(store_url(settings.store)), keys, listening)

        def keep(took: float) -> None:
            kept.write(array("d", (time.monotonic(), took)).tobytes())

        serving.service.rounds.append(keep)
        asyncio.run(serving.run())


if __name__ == "__main__":
    main()
