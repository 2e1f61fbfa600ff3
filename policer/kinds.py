"""The kinds of events that there are, and what each means."""

from collections.abc import Mapping
from typing import Final

KINDS: Final[Mapping[str, str]] = {
    "back": "a host that was gone is heard again",
    "behaves": "a router no longer misbehaves",
    "brake": "ladders are stopped, since too many routers would be punished at once",
    "brake_off": "ladders go on",
    "distrusted": "what a host says cannot be",
    "engaged": "a host is contended: its routers are held",
    "epoch_raised": "the leader took a higher epoch, since a host obeyed one above its own",
    "gone": "a host is no longer heard",
    "guarantee_missed": "a router has less than its guarantee, which it could use",
    "let_go": "a host is calm: its routers are no longer held",
    "link": "a host cannot be heard or understood",
    "misbehaves": "a router is sent far more than it is due",
    "not_starved": "a router has the CPU that its cap allows again",
    "overtaken": "a host obeys a policer of a higher epoch",
    "own_loss": "a router drops packets by itself",
    "pardoned": "a punishment was lifted, or is a step milder",
    "punished": "a step of a router's ladder was taken",
    "refused": "a daemon does not carry out an order",
    "shielded": "a host drops what is sent into a router beyond its setpoint",
    "starved": "a router with a guarantee lacks CPU that its cap allows",
    "unshielded": "a host passes on what is sent into a router",
}
"""By name; webhooks choose among them."""
