"""Carries out a request with an Idempotency-Key once, and repeats its answer for repetitions."""

import hashlib
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec
from litestar import Response

from policer.errors import PolicerError, StoreError
from policer.rest.access.context import Context
from policer.rest.http.bodies import StrictRequest
from policer.rest.http.problems import from_policer
from policer.store import Answering, Claim, Stored, StoredAnswer

T = TypeVar("T")
Change = Callable[[Answering[T] | None], Stored[T]]
"""Changes the store; given an `Answering`, keeps its answer in the same transaction."""
Answer = Callable[[Stored[T]], Response[Any]]
_MEDIA_TYPE = "Content-Type"


def once(
    context: Context,
    request: StrictRequest,
    key: str | None,
    data: msgspec.Struct,
    *,
    change: Change[T],
    answer: Answer[T],
) -> Response[Any]:
    """Carry out the request, or repeat the answer of the first time.

    Refusals are kept too: the same request with the same key gets the same refusal. A store failure
    is not kept: the client retries with the same key.

    Raises:
        KeyReused: the key was used with another request.
    """
    if key is None:
        return answer(change(None))
    keys = context.store.idempotency
    claim = keys.begin(key, request.requester.id, _fingerprint(request, data))
    if isinstance(claim, StoredAnswer):
        return _unpacked(claim)
    try:
        return _changed(claim, change, answer)
    except StoreError:
        # If the change was made after all, its answer is kept, and this frees nothing.
        keys.abandon(claim)
        raise
    except PolicerError as error:
        refusal = from_policer(request, error)
        keys.finish(claim, _packed(refusal))
        return refusal


def _changed(claim: Claim, change: Change[T], answer: Answer[T]) -> Response[Any]:
    """Carry out the request; the answer is exactly the bytes kept for its repetitions."""
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
    """Return a fingerprint that is equal for equal requests."""
    # The reach is part of it: no token gets an answer that was made for a wider reach.
    what = msgspec.json.encode((request.requester.reach, data))
    text = f"{request.method} {request.scope['path']}\n".encode() + what
    return hashlib.sha256(text).hexdigest()
