"""Who changes something: a name for people, an id that nobody else has, and an address."""

from typing import NamedTuple


class Actor(NamedTuple):
    """Who asks for a change; as text, all three."""

    name: str
    """For reading; others may have the same."""
    id: str = ""
    """A token's id, an issuer's subject, or a user of a machine; "" is not known."""
    address: str = ""
    """Where the request came from; "" where it came over no network."""

    def __str__(self) -> str:
        """Return name, id and address as one text."""
        where = f" from {self.address}" if self.address else ""
        return f"{self.name} ({self.id}{where})" if self.id else f"{self.name}{where}"


By = Actor | str
"""Who did it; a text alone is a name."""


def actor_of(by: By) -> Actor:
    """Return who did it."""
    return by if isinstance(by, Actor) else Actor(by)
