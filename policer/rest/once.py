"""Carries a request with an Idempotency-Key out once, and answers its repetitions alike."""

import hashlib
from collections.abc import Callable
from typing import Any

import msgspec
from litestar import Response

from policer.errors import PolicerError, StoreError
from policer.rest.bodies import StrictRequest
from policer.rest.desk import Desk
from policer.rest.problems import from_policer

_MEDIA_TYPE = "Content-Type"


def once(
    desk: Desk,
    request: StrictRequest,
    key: str | None,
    data: msgspec.Struct,
    act: Callable[[], Response[Any]],
) -> Response[Any]:
    """Do it, or say again what was answered when it was done.

    A refusal is remembered too: the same request with the same key is refused alike. A store that
    failed is not: the client comes again, with the same key.

    Raises:
        KeyReused: the key came with another request before.
    """
    if key is None:
        return act()
    keys, asker = desk.store.idempotency, request.asker.id
    stored = keys.begin(key, asker, _fingerprint(request, data))
    if stored is not None:
        media_type = stored.headers.pop(_MEDIA_TYPE)
        return Response(
            stored.body, status_code=stored.status, headers=stored.headers, media_type=media_type
        )
    try:
        answer = act()
    except StoreError:
        keys.abandon(key, asker)
        raise
    except PolicerError as error:
        answer = from_policer(request, error)
    body = msgspec.json.encode(answer.content)
    media_type = str(answer.media_type or "application/json")
    headers = {**answer.headers, _MEDIA_TYPE: media_type}
    keys.finish(key, asker, answer.status_code or 201, headers, body)
    return answer


def _fingerprint(request: StrictRequest, data: msgspec.Struct) -> str:
    """Return what makes two requests the same."""
    text = f"{request.method} {request.scope['path']}\n".encode() + msgspec.json.encode(data)
    return hashlib.sha256(text).hexdigest()
