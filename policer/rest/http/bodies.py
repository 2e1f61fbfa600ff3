"""Reads request bodies: only JSON, exactly of the handler's type, or a typed refusal.

Litestar would accept "12" for 12, which is too lenient for a contract.
"""

from typing import Any

import msgspec
from litestar import Request
from litestar.exceptions import HTTPException

from policer.actor import Actor
from policer.errors import Invalid, Problem
from policer.rest.http.problems import plain
from policer.store import TokenRow

JSON = "application/json"


class StrictRequest(Request[Any, Any, Any]):
    """A request whose body is decoded strictly into the type of the handler's `data`."""

    @property
    def requester(self) -> TokenRow:
        """Return the token of the request, as set by the guard."""
        requester = self.scope["user"]
        assert isinstance(requester, TokenRow)
        return requester

    @property
    def actor(self) -> Actor:
        """Return the actor for the audit log: names are not unique, ids are."""
        requester, client = self.requester, self.client
        return Actor(requester.name, requester.id, client.host if client else "")

    async def json(self) -> Any:
        """Return the body.

        Raises:
            HTTPException: it is no JSON (400), or not declared as JSON (415).
            Invalid: a field is missing, unknown, of another type or out of range.
        """
        media_type = self.headers.get("content-type", "").partition(";")[0].strip().lower()
        if media_type != JSON:
            problem = f"a body must be {JSON}, not {media_type or 'without a Content-Type'}"
            raise HTTPException(problem, status_code=415)
        kind = self.route_handler.parsed_fn_signature.parameters["data"].annotation
        return decode(await self.body(), kind)


def decode(raw: bytes, kind: Any) -> Any:
    """Decode JSON as a type.

    Raises:
        HTTPException: it is no JSON (400).
        Invalid: it is, but not of that type.
    """
    try:
        return msgspec.json.decode(raw, type=kind)
    except msgspec.ValidationError as error:
        problem, _, where = str(error).partition(" - at ")
        field = where.strip("`").removeprefix("$").removeprefix(".") or "body"
        wrong = plain(field, problem, "see /v1/openapi.json")
        raise Invalid([Problem(wrong.field, wrong.problem, wrong.fix)]) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, OverflowError) as error:
        raise HTTPException(f"the body is no JSON: {error}", status_code=400) from None
