"""Versions as entity tags: "v3" is version 3 of what was read."""

import http
import re
from collections.abc import Callable

from litestar.exceptions import HTTPException

from policer.errors import Invalid, Problem

ANY = "*"
_TAG = re.compile(r'"v([1-9][0-9]{0,17})"')


def tag(version: int) -> str:
    """Return the entity tag of a version."""
    return f'"v{version}"'


def version_of(if_match: str) -> int:
    """Return the version that a precondition names.

    Raises:
        HTTPException: it is no tag that this service ever gave, so that it fits nothing (412).
    """
    found = _TAG.fullmatch(if_match.strip())
    if found is None:
        problem = 'If-Match: send the ETag that you read, with its quotes, for example "v3"'
        raise HTTPException(problem, status_code=http.HTTPStatus.PRECONDITION_FAILED)
    return int(found.group(1))


def required(if_match: str | None, current: Callable[[], int]) -> int:
    """Return the version of a precondition that must be there.

    Args:
        if_match: the header; ``*`` is whatever version there is (RFC 9110, section 13.1.1).
        current: asks the store for that version.

    Raises:
        HTTPException: it is not there (428), or it fits nothing (412).
        Unknown: there is nothing of any version.
    """
    if if_match is None:
        problem = 'send If-Match with the ETag that you read, for example If-Match: "v3"'
        raise HTTPException(problem, status_code=428)
    return current() if if_match.strip() == ANY else version_of(if_match)


def create_or_replace(
    if_match: str | None, if_none_match: str | None, current: Callable[[], int]
) -> int | None:
    """Return the version to be replaced; None where a new one is to be made.

    Raises:
        HTTPException: it was not said which (428), or what fits nothing (412).
        Invalid: it was said unclearly.
    """
    if if_none_match is None and if_match is None:
        problem = "send If-None-Match: * to make one, or If-Match with the ETag that you read"
        raise HTTPException(problem, status_code=http.HTTPStatus.PRECONDITION_REQUIRED)
    if if_none_match is None:
        return required(if_match, current)
    if if_match is not None or if_none_match.strip() != ANY:
        fix = "If-None-Match: * makes a new contract, If-Match replaces one"
        raise Invalid([Problem("If-None-Match", "only * is understood, and no If-Match", fix)])
    return None
