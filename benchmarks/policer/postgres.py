"""A private PostgreSQL server in a temporary folder, reachable only by a Unix socket."""

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from urllib.parse import urlsplit

import psycopg

USER = "nobody"
"""User of the server if the tests run as root, which PostgreSQL refuses."""
START_S = 60.0
SETTINGS = {
    "listen_addresses": "",
    "fsync": "off",
    "full_page_writes": "off",
    "max_connections": "60",
    "shared_buffers": "16MB",
    "autovacuum": "off",
}


class PostgresServer:
    """One server; every test gets a database of its own."""

    def __init__(self, programs: Path, folder: Path) -> None:
        self._programs, self._folder = programs, folder
        self._data = folder / "data"
        self._numbers = count(1)
        self._process: subprocess.Popen[bytes] | None = None

    def make(self) -> None:
        """Make the cluster of databases."""
        options = ["--username=postgres", "--auth=trust", "--encoding=UTF8", "--locale=C.UTF-8"]
        command = [str(self._programs / "initdb"), "-D", str(self._data), "--no-sync", *options]
        subprocess.run(
            [*_as_somebody(), *command], cwd=self._folder, check=True, capture_output=True
        )

    def start(self) -> None:
        """Start the server, and wait until it answers."""
        settings = [f"--{name}={value}" for name, value in SETTINGS.items()]
        program = [str(self._programs / "postgres"), "-D", str(self._data), "-k", str(self._folder)]
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [*_as_somebody(), *program, *settings], cwd=self._folder, stdout=log, stderr=log
            )
        deadline = time.monotonic() + START_S
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(
                    f"PostgreSQL did not start:\n{(self._folder / 'log').read_text()}"
                )
            time.sleep(0.05)

    def stop(self) -> None:
        """Stop the server immediately, as a power cut would stop it for its clients."""
        if self._process is not None:
            self._process.send_signal(signal.SIGQUIT)
            self._process.wait(START_S)
            self._process = None

    @contextmanager
    def database(self, like: str | None = None) -> Iterator[str]:
        """Yield the URL of a new database, which is removed with all its sessions at the end.

        It is empty, or a copy of the one of another URL, which must have no connections.
        """
        name = f"policer{next(self._numbers)}"
        with self.connect() as connection:
            template = "template1" if like is None else urlsplit(like).path[1:]
            connection.execute(f"CREATE DATABASE {name} TEMPLATE {template}")
        yield f"postgresql://postgres@/{name}?host={self._folder}"
        with self.connect() as connection:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)")

    def connect(self, url: str | None = None) -> "psycopg.Connection[tuple[object, ...]]":
        """Connect from outside the program under test; every statement is its own transaction."""
        where = url or f"postgresql://postgres@/postgres?host={self._folder}"
        return psycopg.connect(where, autocommit=True)

    def _answers(self) -> bool:
        try:
            self.connect().close()
        except psycopg.OperationalError:
            return False
        return True


def programs() -> Path | None:
    """Return the folder of the newest server's programs; None if there is none."""
    in_path = shutil.which("postgres")
    found = [Path(in_path).parent] if in_path else []
    found += Path("/usr/lib/postgresql").glob("*/bin")
    whole = [folder for folder in found if (folder / "postgres").exists()]
    return max(whole, key=lambda folder: (len(str(folder)), str(folder)), default=None)


def _as_somebody() -> list[str]:
    """Return a command prefix that runs a program as another user, and ends it with the tests."""
    dies = ["setpriv", "--pdeathsig", "QUIT"]
    if os.geteuid() != 0:
        return dies
    user = pwd.getpwnam(USER)
    return [*dies, f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"]


@contextmanager
def own_server() -> Iterator[PostgresServer | None]:
    """Run a server in a folder that its user may enter; None if none is installed."""
    found = programs()
    if found is None:
        yield None
        return
    folder = Path(tempfile.mkdtemp(prefix="xtcpg"))
    try:
        if os.geteuid() == 0:
            user = pwd.getpwnam(USER)
            os.chown(folder, user.pw_uid, user.pw_gid)
        server = PostgresServer(found, folder)
        server.make()
        server.start()
        try:
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(folder)
