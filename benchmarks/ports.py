"""Free ports for programs that are about to start."""

import os
import socket
from contextlib import suppress
from itertools import count, islice
from typing import Final

FIRST: Final = 20_000
BEYOND: Final = 32_768
"""From here on, Linux gives ports to all that ask for any (ip_local_port_range): one of those may
be taken before its program listens."""
EACH: Final = 400
"""Ports of each process of a run of tests."""
_turns = count(os.getpid())
"""Runs at the same time begin with different ports."""


def free_port() -> int:
    """Return a TCP port of the loopback address that no process uses; each time another one."""
    number = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    first = FIRST + EACH * (number % ((BEYOND - FIRST) // EACH))
    for turn in islice(_turns, EACH):
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", first + turn % EACH))
            return first + turn % EACH
    raise RuntimeError(f"none of the ports {first} to {first + EACH - 1} is free")
