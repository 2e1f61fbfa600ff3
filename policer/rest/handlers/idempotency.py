"""Carries a request with an Idempotency-Key out once, and answers its repetitions alike."""

import hashlib
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec
from litestar import Response

from policer.errors import PolicerError, StoreError
from policer.rest.access.context import Desk
from policer.rest.http.bodies import StrictRequest
from policer.rest.http.problems import from_policer
from policer.store import Answering, Claim, Stored, StoredAnswer

T = TypeVar("T")
Change = Callable[[Answering[T] | None], Stored[T]]
"""Changes the store; keeps its answer, where it is given how, in the same transaction."""
Answer = Callable[[Stored[T]], Response[Any]]
_MEDIA_TYPE = "Content-Type"


def once(
    desk: Desk,
    request: StrictRequest,
    key: str | None,
    data: msgspec.Struct,
    *,
    change: Change[T],
    answer: Answer[T],
) -> Response[Any]:
    """Do it, or say again what was answered when it was done.

    A refusal is remembered too: the same request with the same key is refused alike. A store that
    failed is not: the client comes again, with the same key.

    Raises:
        KeyReused: the key came with another request before.
    """
    if key is None:
        return answer(change(None))
    keys = desk.store.idempotency
    claim = keys.begin(key, request.asker.id, _fingerprint(request, data))
    if isinstance(claim, StoredAnswer):
        return _unpacked(claim)
    try:
        return _changed(claim, change, answer)
    except StoreError:
        # Of a change that was made after all, the answer is kept, and this frees nothing.
        keys.abandon(claim)
        raise
    except PolicerError as error:
        refusal = from_policer(request, error)
        keys.finish(claim, _packed(refusal))
        return refusal


def _changed(claim: Claim, change: Change[T], answer: Answer[T]) -> Response[Any]:
    """Do it; answer by the very bytes that are kept for its repetitions."""
    packed: list[StoredAnswer] = []

    def pack(stored: Stored[T]) -> StoredAnswer:
        packed.append(_packed(answer(stored)))
        return packed[-1]

    change(Answering(claim, pack))
    return _unpacked(packed[-1])


def _packed(answer: Response[Any]) -> StoredAnswer:
    media_type = str(answer.media_type or "application/json")
    headers = {**answer.headers, _MEDIA_TYPE: media_type}
    return StoredAnswer(answer.status_code or 201, headers, msgspec.json.encode(answer.content))


def _unpacked(kept: StoredAnswer) -> Response[bytes]:
    headers = {name: value for name, value in kept.headers.items() if name != _MEDIA_TYPE}
    media_type = kept.headers[_MEDIA_TYPE]
    return Response(kept.body, status_code=kept.status, headers=headers, media_type=media_type)


def _fingerprint(request: StrictRequest, data: msgspec.Struct) -> str:
    """Return what makes two requests the same."""
    # What it reaches is part of it: nobody is answered by what was answered to a wider reach.
    what = msgspec.json.encode((request.asker.reach, data))
    text = f"{request.method} {request.scope['path']}\n".encode() + what
    return hashlib.sha256(text).hexdigest()
