"""The store: hosts, contracts, events, punishments, tokens, and who leads; for use from threads."""

from policer.store.asker import Asking
from policer.store.audit import AuditRow
from policer.store.changes import Entered
from policer.store.contracts import Revision
from policer.store.events import Event, EventRow
from policer.store.idempotency import Answering, Claim, StoredAnswer
from policer.store.leadership import Holder, Leadership
from policer.store.overriderows import OverrideKey
from policer.store.punishments import PunishmentRow
from policer.store.reached import ReachedStore
from policer.store.records import Stored, Version
from policer.store.store import Store, open_store
from policer.store.tokens import SCOPES, Scope, TokenRow

__all__ = [
    "SCOPES",
    "Answering",
    "Asking",
    "AuditRow",
    "Claim",
    "Entered",
    "Event",
    "EventRow",
    "Holder",
    "Leadership",
    "OverrideKey",
    "PunishmentRow",
    "ReachedStore",
    "Revision",
    "Scope",
    "Store",
    "Stored",
    "StoredAnswer",
    "TokenRow",
    "Version",
    "open_store",
]
