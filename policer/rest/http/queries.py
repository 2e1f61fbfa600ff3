"""Refuses unknown query parameters: a misspelt filter would show the whole fleet."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from litestar.connection import ASGIConnection

from common.suggest import did_you_mean
from policer.errors import Invalid, Problem

Known = Mapping[str, Mapping[str, Any]]
"""Schema of each query parameter of an operation."""


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
        Invalid: names every parameter that is unknown, given twice, or neither true nor false.
    """
    given = connection.query_params.dict()
    problems = [problem for name in given for problem in _problems(name, given[name], known)]
    if problems:
        raise Invalid(problems)


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
