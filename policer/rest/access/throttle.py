"""Rate limits of clients: each token or person, and each address without either."""

import math
from collections.abc import Callable

from litestar.exceptions import HTTPException

from policer.rest.access.settings import RestSettings
from policer.rest.http.clients import group_of
from policer.token_bucket import Buckets

UNMETERED = frozenset({"/livez", "/readyz"})
"""Paths of probes: a flood from a prober's address must not make the probes fail."""


class Throttle:
    """Counts requests; used by the event loop alone."""

    def __init__(self, settings: RestSettings) -> None:
        self._clock: Callable[[], float] = settings.clock
        self._throttled = settings.throttled
        self._tokens = Buckets(settings.rate_per_s, settings.rate_burst)
        self._addresses = Buckets(settings.rate_per_s, settings.rate_burst)

    def count_token(self, token: str) -> None:
        """Count a request of a token, by its id; raises HTTPException (429)."""
        wait = self._tokens.wait(self._clock(), token)
        if wait > 0:
            self._throttled("token")
            raise too_often("this token asks too often", wait)

    def count_address(self, address: str) -> None:
        """Count a request without a known token; raises HTTPException (429)."""
        wait = self._addresses.wait(self._clock(), group_of(address))
        if wait > 0:
            self._throttled("address")
            raise too_often("this address asks too often", wait)


def too_often(problem: str, wait: float) -> HTTPException:
    """Return the refusal of a client that must wait for some seconds."""
    headers = {"Retry-After": str(math.ceil(wait))}
    return HTTPException(f"{problem}; wait {wait:.2g} s", status_code=429, headers=headers)
