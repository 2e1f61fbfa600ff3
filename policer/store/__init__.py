"""The store: hosts, contracts, events, punishments, tokens, and who leads; for use from threads."""

from policer.store.asker import Asking
from policer.store.audit import AuditRow
from policer.store.changes import Entered
from policer.store.contracts import Revision
from policer.store.events import Event, EventRow
from policer.store.history import ChunkRow
from policer.store.idempotency import Answering, Claim, StoredAnswer
from policer.store.leadership import Holder, Leadership
from policer.store.letters import LetterRow, Resent, Tried
from policer.store.overriderows import OverrideKey
from policer.store.punishments import PunishmentRow
from policer.store.reached import ReachedStore
from policer.store.records import Stored, Version
from policer.store.sla import Change, ContractDays, DayRow, Kept
from policer.store.store import Store, open_store
from policer.store.tokens import SCOPES, Scope, TokenRow
from policer.store.webhooks import Endpoint, WebhookRow

__all__ = [
    "SCOPES",
    "Answering",
    "Asking",
    "AuditRow",
    "Change",
    "ChunkRow",
    "Claim",
    "ContractDays",
    "DayRow",
    "Endpoint",
    "Entered",
    "Event",
    "EventRow",
    "Holder",
    "Kept",
    "Leadership",
    "LetterRow",
    "OverrideKey",
    "PunishmentRow",
    "ReachedStore",
    "Resent",
    "Revision",
    "Scope",
    "Store",
    "Stored",
    "StoredAnswer",
    "TokenRow",
    "Tried",
    "Version",
    "WebhookRow",
    "open_store",
]
