"""Notifies systemd: sd_notify(3), one datagram per message."""

import os
import socket

from common.units import Seconds

PATIENCE_S = 0.05
"""How long a message may wait for room in the service manager's queue."""


def notify(*lines: str) -> bool:
    """Send state lines such as READY=1; return whether a service manager received them.

    If the service manager is gone or does not listen, the message is lost, and routing continues.
    """
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address:
        return False
    name = "\0" + address[1:] if address.startswith("@") else address
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sender:
        sender.settimeout(PATIENCE_S)  # otherwise a full queue would stop every loop of the host
        try:
            sender.sendto("\n".join(lines).encode(), name)
        except OSError:
            return False
    return True


def watchdog_timeout() -> Seconds | None:
    """Return how long systemd's watchdog waits, None if there is no watchdog."""
    text = os.environ.get("WATCHDOG_USEC", "")
    return Seconds(int(text) / 1e6) if text.isdigit() else None
