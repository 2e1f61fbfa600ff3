"""Actor of a change: a name for people, a unique id, and an address."""

from typing import NamedTuple


class Actor(NamedTuple):
    """Actor of a change; its text has all three."""

    name: str
    """For reading; not unique."""
    id: str = ""
    """A token's id, an issuer's subject, or a user of a machine; "" is unknown."""
    address: str = ""
    """Source of the request; "" if it came over no network."""

    def __str__(self) -> str:
        """Return name, id and address as one text."""
        where = f" from {self.address}" if self.address else ""
        return f"{self.name} ({self.id}{where})" if self.id else f"{self.name}{where}"


By = Actor | str
"""Actor of a change; a text alone is a name."""


def actor_of(by: By) -> Actor:
    """Return the actor."""
    return by if isinstance(by, Actor) else Actor(by)
