"""Kinds of events and their meanings."""

from collections.abc import Mapping
from typing import Final

KINDS: Final[Mapping[str, str]] = {
    "back": "a host that was gone is heard again",
    "behaves": "a router no longer misbehaves",
    "brake": "escalation is stopped: too many routers would be punished at the same time",
    "brake_off": "escalation continues",
    "distrusted": "a host's telemetry is impossible",
    "engaged": "a host is contended: its routers are held",
    "entered_twice": "a host's daemon obeys leases that were not sent to it",
    "epoch_raised": "the leader took a higher epoch, since a host obeyed one above its own",
    "events_left_out": "a host causes too many events of a kind: most are not stored",
    "gone": "a host is no longer heard",
    "guarantee_missed": "a router gets less than its guarantee and could use it",
    "released": "a host is calm: its routers are no longer held",
    "link": "a host cannot be heard or understood",
    "misbehaves": "a router's load far exceeds its setpoint",
    "moved": "a router came to a host, and its contract with it",
    "not_starved": "a router has the CPU that its cap allows again",
    "overpromised": "a host has promised more than it can forward",
    "override_cleared": "an operator ended an override",
    "override_expired": "an override expired",
    "override_set": "an operator set an override",
    "overtaken": "a host obeys a policer of a higher epoch",
    "self_inflicted_loss": "a router drops packets by itself",
    "pardoned": "a punishment was lifted, or is a step milder",
    "punished": "a measure was taken against a router",
    "refused": "a daemon does not carry out an order",
    "shielded": "a host drops traffic above a router's setpoint",
    "starved": "a router with a guarantee lacks CPU that its cap allows",
    "twice": "a router that a contract follows is on two hosts",
    "unknown_zone": "a contract's hours use a time zone unknown to this machine",
    "unshielded": "a host no longer drops traffic above a router's setpoint",
}
"""By name; webhooks select from them."""
