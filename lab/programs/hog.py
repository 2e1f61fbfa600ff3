"""A CPU hog: burns a share of one CPU, to disturb the router in its control group."""

import argparse
import sys
import time
from typing import Final

from lab.programs.pacer import Pacer

PERIOD_S: Final = 0.02
MAX_LAG_S: Final = 0.5
"""Maximum CPU time to catch up: a quota may throttle the group for most of its period."""
_MICROSECONDS: Final = 1_000_000


def burn(seconds: float) -> None:
    """Use that much CPU time, by this process's own CPU clock (CLOCK_PROCESS_CPUTIME_ID)."""
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass


def run(share: float) -> None:
    """Burn the share in every period, without end."""
    pacer = Pacer(share * _MICROSECONDS, time.monotonic(), MAX_LAG_S)
    wake = time.monotonic()
    while True:
        burn(pacer.due(time.monotonic()) / _MICROSECONDS)
        wake = max(wake + PERIOD_S, time.monotonic())
        time.sleep(max(0.0, wake - time.monotonic()))


def main() -> None:
    """Burn the share of one CPU that the command line specifies."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("share", type=float, help="a fraction of one CPU, above 0 and at most 1")
    options = parser.parse_args()
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    run(options.share)


if __name__ == "__main__":
    main()
