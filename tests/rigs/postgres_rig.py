"""A PostgreSQL server for tests.

For tests that say `pytest_plugins = ["postgres_rig"]`, or "store_rig", which stands on it.
"""

import os
import pwd
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.policer.postgres import USER, PostgresServer, programs


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A server for all tests; skips where PostgreSQL is not installed."""
    found = programs()
    if found is None:
        pytest.skip("PostgreSQL's server is not installed (apt install postgresql)")
    if shutil.which("setpriv") is None:
        pytest.skip("setpriv (util-linux) is not installed")
    # Not pytest's own folder, which the other user cannot enter; short, for the socket's name.
    folder = Path(tempfile.mkdtemp(prefix="xtcpg"))
    try:
        if os.geteuid() == 0:
            user = pwd.getpwnam(USER)
            os.chown(folder, user.pw_uid, user.pw_gid)
        server = PostgresServer(found, folder)
        server.make()
        server.start()
        yield server
        server.stop()
    finally:
        shutil.rmtree(folder)
