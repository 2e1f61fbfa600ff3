"""The main thread of a traffic program in Python: it reports while another thread works."""

import os
import sys
import threading
import time
import traceback
from collections.abc import Callable
from typing import Final, NoReturn

import msgspec

from lab.errors import LabError
from lab.traffic.counts import Report

FAILED: Final = 1


def serve(work: Callable[[], None], report: Callable[[], Report]) -> None:
    """Run the work in a thread, and answer each line of the standard input with a report.

    At the end of the input, write a last report and return. An error of the work ends the program.
    """
    threading.Thread(target=_guarded, args=(work,), daemon=True).start()
    _say("ready")
    for _ in sys.stdin:
        _say(msgspec.json.encode(report()).decode())
    _say(msgspec.json.encode(report()).decode())


def now_ns() -> int:
    """Return CLOCK_MONOTONIC, which all programs share."""
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)


def _guarded(work: Callable[[], None]) -> None:
    try:
        work()
    except (LabError, OSError) as error:
        _end(str(error))
    except Exception:  # noqa: BLE001  the firewall: whatever it is, the owner must learn of it
        _end(traceback.format_exc())


def _end(reason: str) -> NoReturn:
    """End the program, of which the main thread waits for its input."""
    sys.stderr.write(reason + "\n")
    sys.stderr.flush()
    os._exit(FAILED)


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()
