"""zovn exporter: the switch's counters for Prometheus."""

import signal
import threading
from typing import Annotated

import typer

from common.printable import say
from zovn.cli.command import CONTROL, Control
from zovn.switch.metrics import DEFAULT_LISTEN, served


def exporter(
    listen: Annotated[
        str, typer.Option(envvar="ZOVN_EXPORTER", help="Address to serve /metrics at.")
    ] = DEFAULT_LISTEN,
    socket: Control = CONTROL,
) -> None:
    """Serve the switch's counters to Prometheus until SIGTERM or SIGINT.

    It asks the switch at each scrape; while none answers, zovn_up is 0.
    """
    ended = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ended.set())
    with served(socket, listen) as url:
        say(f"zovn: serving {url}", err=True)
        ended.wait()
