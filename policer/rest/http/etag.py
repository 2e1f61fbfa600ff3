"""Versions as entity tags: "v3" is version 3 of an entry."""

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
        HTTPException: it is not a tag of this service, so it matches nothing (412).
    """
    found = _TAG.fullmatch(if_match.strip())
    if found is None:
        problem = 'If-Match: send the ETag that you read, with its quotes, for example "v3"'
        raise HTTPException(problem, status_code=http.HTTPStatus.PRECONDITION_FAILED)
    return int(found.group(1))


def required(if_match: str | None, current: Callable[[], int]) -> int:
    """Return the version of a required precondition.

    Args:
        if_match: the header; ``*`` is any version (RFC 9110, section 13.1.1).
        current: reads the current version from the store.

    Raises:
        HTTPException: it is missing (428), or it matches nothing (412).
        Unknown: the entry does not exist.
    """
    if if_match is None:
        problem = 'send If-Match with the ETag that you read, for example If-Match: "v3"'
        raise HTTPException(problem, status_code=428)
    return current() if if_match.strip() == ANY else version_of(if_match)


def create_or_replace(
    if_match: str | None, if_none_match: str | None, current: Callable[[], int]
) -> int | None:
    """Return the version to replace; None to create a new entry.

    Raises:
        HTTPException: the precondition is missing (428), or it matches nothing (412).
        Invalid: both preconditions are given, or one is invalid.
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
