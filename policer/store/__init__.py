"""The store: hosts, contracts, events, punishments, tokens and leadership; for use from threads."""

from policer.store.database.records import Stored, Version
from policer.store.history.audit import AuditRow
from policer.store.history.chunks import ChunkRow
from policer.store.history.events import Event, EventRow
from policer.store.history.punishments import PunishmentRow
from policer.store.history.sla import Change, ContractDays, DayRow, Kept
from policer.store.inventory.changes import Entered
from policer.store.inventory.contracts import Revision
from policer.store.inventory.override_rows import OverrideKey
from policer.store.inventory.plans import PlanRow
from policer.store.limited.requester import Requester
from policer.store.limited.store import ReachedStore
from policer.store.service.deliveries import LetterRow, Resent, Tried
from policer.store.service.idempotency import Answering, Claim, StoredAnswer
from policer.store.service.leadership import Holder, Leadership
from policer.store.service.tokens import SCOPES, Scope, TokenRow
from policer.store.service.webhooks import Endpoint, WebhookRow
from policer.store.store import Store, open_store

__all__ = [
    "SCOPES",
    "Answering",
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
    "PlanRow",
    "PunishmentRow",
    "ReachedStore",
    "Requester",
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
