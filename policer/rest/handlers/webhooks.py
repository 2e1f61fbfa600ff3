"""/v1/webhooks: endpoints that events are sent to; only for administrators."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Annotated

import msgspec
from litestar import Response, delete, get, post
from litestar.concurrency import sync_to_thread
from litestar.params import JSONBody, PathParameter

from common.suggest import did_you_mean
from policer.errors import Invalid, Problem
from policer.event_kinds import KINDS
from policer.rest.access.context import GivenDesk
from policer.rest.http.bodies import StrictRequest
from policer.rest.http.cursor import After, Limit, RowId, cut, page_of, unpack
from policer.rest.http.exchange import exchange_of
from policer.store import LetterRow, WebhookRow
from policer.store.service.webhooks import ALL
from policer.webhooks.courier import Letter
from policer.webhooks.guard import LONGEST_URL, url_problems
from policer.webhooks.message import test_message
from policer.webhooks.outcomes import Outcomes
from policer.webhooks.rules import Rules
from policer.webhooks.signing import key_of, new_secret

TAGS = ["webhooks"]
TEST_S = 8.0
"""Maximum duration of a test in seconds: a person waits for it."""
MOST_IDS = 1000
WebhookPath = Annotated[
    str, PathParameter(pattern=r"^[A-Za-z0-9_-]{1,64}$(?!\n)", description="The webhook's id.")
]
Name = Annotated[
    str, msgspec.Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$(?!\n)", description="its name")
]
Kind = Annotated[str, msgspec.Meta(extra_json_schema={"enum": [ALL, *KINDS]})]


class NewWebhook(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A new webhook."""

    name: Name
    url: Annotated[str, msgspec.Meta(min_length=1, max_length=LONGEST_URL)]
    """Destination of the messages: https, at a public address."""
    kinds: Annotated[list[Kind], msgspec.Meta(min_length=1, max_length=100)]
    """Kinds of events; * is every kind."""
    secret: Annotated[str, msgspec.Meta(max_length=200)] | None = None
    """`whsec_` and 24 to 64 bytes in base64; None generates one."""


class MadeWebhook(msgspec.Struct, frozen=True):
    """A created webhook."""

    webhook: WebhookRow
    secret: str
    """Shown only this once; it cannot be read again."""


class WebhookPage(msgspec.Struct, frozen=True):
    """Webhooks, by name."""

    items: list[WebhookRow]
    next: str | None = None


class LetterPage(msgspec.Struct, frozen=True):
    """Messages that are no longer retried automatically, the latest first."""

    items: list[LetterRow]
    next: str | None = None


class TestAnswer(msgspec.Struct, frozen=True):
    """Result of a test."""

    delivered: bool
    outcome: Outcomes
    problem: str
    status: int | None
    """Of the endpoint's answer; None if there was none."""
    message: str
    """Id of the message."""


class Again(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Dead messages to send again."""

    ids: Annotated[list[RowId], msgspec.Meta(min_length=1, max_length=MOST_IDS)] | None = None
    """None is all, the oldest first, as far as the queue has room."""


class AgainAnswer(msgspec.Struct, frozen=True):
    """Messages that are sent again."""

    redelivered: int
    left: int
    """Number of messages that are still dead."""


@get("/webhooks", operation_id="listWebhooks", tags=TAGS, scope="admin", sync_to_thread=True)
def list_webhooks(context: GivenDesk, limit: Limit = 100, after: After = None) -> WebhookPage:
    """List the webhooks and their state, by name; no secrets."""
    rows = context.store.webhooks.all()
    page, following = page_of(rows, limit, unpack(after, str), lambda row: row.name)
    return WebhookPage(page, following)


@post("/webhooks", operation_id="addWebhook", tags=TAGS, scope="admin", sync_to_thread=True)
def add_webhook(
    data: JSONBody[NewWebhook], context: GivenDesk, request: StrictRequest
) -> Response[MadeWebhook]:
    """Create a webhook; its secret is only in this answer."""
    problems = [*_problems(data, context.settings.courier.rules())]
    if problems:
        raise Invalid(problems)
    secret = data.secret or new_secret()
    row = context.store.webhooks.add(data.name, data.url, data.kinds, secret, request.actor)
    location = {"Location": f"/v1/webhooks/{row.id}"}
    return Response(MadeWebhook(row, secret), status_code=201, headers=location)


@get(
    "/webhooks/{webhook:str}",
    operation_id="readWebhook",
    tags=TAGS,
    scope="admin",
    sync_to_thread=True,
)
def read_webhook(webhook: WebhookPath, context: GivenDesk) -> WebhookRow:
    """Read one webhook and its state; no secret."""
    return context.store.webhooks.get(webhook)


@delete(
    "/webhooks/{webhook:str}",
    operation_id="removeWebhook",
    tags=TAGS,
    scope="admin",
    sync_to_thread=True,
)
def remove_webhook(webhook: WebhookPath, context: GivenDesk, request: StrictRequest) -> None:
    """Stop sending to a webhook, and drop what waits for it."""
    context.store.webhooks.remove(webhook, request.actor)


@post(
    "/webhooks/{webhook:str}/test",
    operation_id="testWebhook",
    tags=TAGS,
    scope="admin",
    status_code=200,
)
async def test_webhook(
    webhook: WebhookPath, context: GivenDesk, request: StrictRequest
) -> TestAnswer:
    """Send one test message about no event immediately, and return the result."""
    exchange_of(request.scope).ends.append(context.streams.take(request.requester.id))
    endpoint = await sync_to_thread(context.store.webhooks.endpoint, webhook)
    message = test_message(request.actor.name, datetime.now(UTC))
    letter = Letter(endpoint.url, endpoint.secret, message.id, message.body.encode())
    outcome = await context.settings.courier.attempt(letter, TEST_S)
    return TestAnswer(outcome.delivered, outcome.kind, outcome.words, outcome.status, message.id)


@get(
    "/webhooks/{webhook:str}/dead",
    operation_id="listDeadLetters",
    tags=TAGS,
    scope="admin",
    sync_to_thread=True,
)
def list_dead_letters(
    webhook: WebhookPath, context: GivenDesk, limit: Limit = 100, after: After = None
) -> LetterPage:
    """List undelivered messages that are no longer retried automatically, the latest first."""
    rows = context.store.letters.dead(webhook, unpack(after, RowId), limit + 1)
    page, following = cut(rows, limit, lambda row: row.id)
    return LetterPage(page, following)


@post(
    "/webhooks/{webhook:str}/redeliver",
    operation_id="redeliverLetters",
    tags=TAGS,
    scope="admin",
    status_code=200,
    sync_to_thread=True,
)
def redeliver_letters(
    webhook: WebhookPath, data: JSONBody[Again], context: GivenDesk, request: StrictRequest
) -> AgainAnswer:
    """Send dead messages again: the named ones, or as many as the queue has room for."""
    count = context.store.letters.redeliver(webhook, data.ids, request.actor)
    return AgainAnswer(count, context.store.webhooks.get(webhook).dead)


def _problems(data: NewWebhook, rules: Rules) -> Iterator[Problem]:
    yield from url_problems(data.url, rules)
    for place, kind in enumerate(data.kinds):
        if kind != ALL and kind not in KINDS:
            fix = did_you_mean(kind, KINDS, f"give * or some of {', '.join(KINDS)}")
            yield Problem(f"kinds[{place}]", f"{kind[:64]!r} is no kind of event", fix)
    if data.secret is not None:
        try:
            key_of(data.secret)
        except ValueError as error:
            yield Problem("secret", f"it is {error}", "leave it out, and one is made")


HANDLERS = [
    list_webhooks,
    add_webhook,
    read_webhook,
    remove_webhook,
    test_webhook,
    list_dead_letters,
    redeliver_letters,
]
