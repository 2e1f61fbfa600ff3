"""Kinds of events and their meanings."""

from collections.abc import Mapping
from typing import Final

KINDS: Final[Mapping[str, str]] = {
    "back": "a host that was gone is heard again",
    "behaves": "a router no longer misbehaves",
    "brake": "ladders are stopped, since too many routers would be punished at the same time",
    "brake_off": "ladders go on",
    "distrusted": "what a host says cannot be",
    "engaged": "a host is contended: its routers are held",
    "entered_twice": "a host's daemon obeys leases that were not sent to it",
    "epoch_raised": "the leader took a higher epoch, since a host obeyed one above its own",
    "events_left_out": "a host causes too many events of a kind: most are not noted",
    "gone": "a host is no longer heard",
    "guarantee_missed": "a router has less than its guarantee, which it could use",
    "released": "a host is calm: its routers are no longer held",
    "link": "a host cannot be heard or understood",
    "misbehaves": "a router is sent far more than it is due",
    "moved": "a router came to a host, and its contract with it",
    "not_starved": "a router has the CPU that its cap allows again",
    "overpromised": "a host has promised more than it can forward",
    "override_cleared": "an operator ended an override",
    "override_expired": "an override is over",
    "override_set": "an operator set an override",
    "overtaken": "a host obeys a policer of a higher epoch",
    "self_inflicted_loss": "a router drops packets by itself",
    "pardoned": "a punishment was lifted, or is a step milder",
    "punished": "a step of a router's ladder was taken",
    "refused": "a daemon does not carry out an order",
    "shielded": "a host drops what is sent into a router beyond its setpoint",
    "starved": "a router with a guarantee lacks CPU that its cap allows",
    "twice": "a router that a contract follows is on two hosts",
    "unknown_zone": "the hours of a contract are in a time zone that is not known here",
    "unshielded": "a host passes on what is sent into a router",
}
"""By name; webhooks select from them."""
