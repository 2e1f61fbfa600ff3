"""The link to the daemons: requests to each host and telemetry from it, over ZeroMQ."""

from policer.link.connection import Link
from policer.link.keys import Keys, load_keys

__all__ = ["Keys", "Link", "load_keys"]
