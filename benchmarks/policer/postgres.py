"""A PostgreSQL server of a benchmark's own, as the tests have it."""

import os
import pwd
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.postgres_rig import USER, PostgresServer, programs


@contextmanager
def own_server() -> Iterator[PostgresServer | None]:
    """Run a server in a folder that its user may enter; None where none is installed."""
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
