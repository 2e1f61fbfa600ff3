"""How the threads of this process share the interpreter, which runs one of them at a time.

REST answers in threads beside the service's, which computes rounds most of the time. A thread that
comes back from the network or the database waits for its turn, many times in one request.
"""

import gc
import sys
from typing import Final

TURN_S: Final = 0.0005
"""A thread that computes makes room for one that waits after so long (Python's default: 5 ms)."""
YOUNG: Final = 20_000
"""So many new containers are looked through for garbage at a time (Python's default: 700).

Almost everything is freed without that, when the last reference goes: each round replaces what the
round before made of its host. Of what is not, closed connections are most.
"""
OLDER: Final = 5
"""After so many times, what survived is looked through again (Python's default: 10)."""


def share_interpreter() -> None:
    """Let threads take short turns, and keep the garbage collector's pauses short.

    It stops all threads and looks through all that is alive, which took 200 ms with 10,000 routers.
    What is there now stays until the process ends, so that it never looks at it again.
    """
    sys.setswitchinterval(TURN_S)
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG, OLDER, OLDER)
