"""What is sent of an event: a body, and an id that every attempt has; pure."""

import secrets
from datetime import datetime
from typing import Final, NamedTuple

import msgspec

from policer.store import EventRow

GROUP: Final = "policer"
TEST: Final = "test"
"""The kind of a message that someone asked for."""


class Message(NamedTuple):
    """What is sent."""

    id: str
    kind: str
    body: str
    """JSON."""


class Body(msgspec.Struct, frozen=True):
    """A message as its receiver reads it."""

    type: str
    """`policer.` and the kind of the event."""
    timestamp: datetime
    """When it happened, UTC."""
    data: "EventData"


class EventData(msgspec.Struct, frozen=True):
    """The event."""

    id: int
    """As /v1/events has it; 0 of a test."""
    kind: str
    host: str
    """"" where it is about no host in particular."""
    vr: str | None
    words: str
    actor: str


def message_of(event: EventRow) -> Message:
    """Return the message of an event.

    Its id has the time as well: a database that was restored may give an event's number again.
    """
    data = EventData(event.id, event.kind, event.host, event.vr, event.words, event.actor)
    return _message(f"evt_{event.id}_{int(1e3 * event.at.timestamp())}", event.at, data)


def test_message(actor: str, at: datetime) -> Message:
    """Return a message that tells of nothing, to see whether it comes through."""
    data = EventData(0, TEST, "", None, "a test of this webhook", actor)
    return _message(f"test_{secrets.token_hex(8)}", at, data)


def _message(name: str, at: datetime, data: EventData) -> Message:
    body = msgspec.json.encode(Body(f"{GROUP}.{data.kind}", at, data)).decode()
    return Message(name, data.kind, body)
