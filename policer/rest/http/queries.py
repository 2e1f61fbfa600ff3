"""Refuses unknown query parameters: a misspelt filter would show the whole fleet."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final

from litestar.connection import ASGIConnection

from common.suggest import did_you_mean
from policer.errors import Invalid, Problem

Known = Mapping[str, Mapping[str, Any]]
"""Schema of each query parameter of an operation."""
LONGEST_QUERY: Final = 8 * 1024
"""Bytes of a query; the longest that an operation takes, with 50 hosts, has 3,500."""
MOST_PARAMETERS: Final = 100
MOST_PROBLEMS: Final = 20
"""Problems in an answer: a misspelt name is compared with all that there are."""


def known_queries(document: Mapping[str, Any]) -> Mapping[str, Known]:
    """Read the parameters of each operation from the OpenAPI document."""
    return {
        operation["operationId"]: {
            parameter["name"]: parameter["schema"]
            for parameter in operation.get("parameters", ())
            if parameter["in"] == "query"
        }
        for path in document["paths"].values()
        for operation in path.values()
    }


def check_query(connection: ASGIConnection[Any, Any, Any, Any], known: Known) -> None:
    """Refuse parameters that an operation does not take.

    Raises:
        Invalid: names parameters that are unknown, given twice, or neither true nor false; or the
            query is too long.
    """
    _check_size(connection.scope.get("query_string", b""))
    given = connection.query_params.dict()
    found = (problem for name in given for problem in _problems(name, given[name], known))
    if problems := list(islice(found, MOST_PROBLEMS)):
        raise Invalid(problems)


def _check_size(query: bytes) -> None:
    """Refuse a query that takes long to read: all other requests would wait meanwhile."""
    if len(query) > LONGEST_QUERY or query.count(b"&") >= MOST_PARAMETERS:
        problem = f"it has more than {LONGEST_QUERY:,} bytes or {MOST_PARAMETERS} parameters"
        raise Invalid([Problem("query", problem, "give fewer or shorter parameters")])


def _problems(name: str, values: Sequence[str], known: Known) -> Iterator[Problem]:
    if name not in known:
        fix = did_you_mean(name, known, "leave it out")
        yield Problem(name, "there is no such parameter", fix)
        return
    kind = known[name]["type"]
    if values[0].lower() == "null" and (kind == "integer" or "enum" in known[name]):
        # msgspec would treat it as an absent parameter.
        yield Problem(name, f"{values[0]!r} is none", "leave it out")
    if len(values) > 1 and kind != "array":
        yield Problem(name, "it is given more than once", "give it once")
    if kind == "boolean" and not {"true", "false"}.issuperset(values):
        yield Problem(name, f"{values[0]!r} is neither true nor false", "say true or false")
