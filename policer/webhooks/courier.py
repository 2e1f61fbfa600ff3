"""Makes one attempt to deliver a message, within a bounded time; reads no body of an answer."""

import asyncio
import socket
import ssl
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

import httpx

from common import __version__
from policer.webhooks.guard import ALLOW, address_problem, url_problems
from policer.webhooks.outcomes import Outcome
from policer.webhooks.rules import Rules
from policer.webhooks.signing import signed

MOST_ADDRESSES: Final = 3
"""Of a name, that are tried one after the other."""
CONNECT_S: Final = 5.0
LONGEST_WORDS: Final = 200
PORTS: Final = {"http": 80, "https": 443}


class Letter(NamedTuple):
    """A message and where it goes."""

    url: str
    secret: str
    message: str
    """Its id."""
    body: bytes


class ForbiddenError(Exception):
    """An endpoint to which nothing may be sent."""


@cache
def _trust() -> ssl.SSLContext:
    """Return what the system trusts, or the file in SSL_CERT_FILE does."""
    return ssl.create_default_context()


class Courier:
    """Delivers; used by one loop."""

    def __init__(self, rules: Callable[[], Rules], wall: Callable[[], float] = time.time) -> None:
        """Take what may be done, and what tells the time of day."""
        self.rules, self._wall = rules, wall
        self._resolving: dict[tuple[str, int], asyncio.Future[Sequence[str]]] = {}

    async def attempt(self, letter: Letter, most_s: float = float("inf")) -> Outcome:
        """Try once to deliver a letter; never raises but for a bug.

        Args:
            letter: what goes where.
            most_s: seconds that it may take at most, where the rules allow more.
        """
        rules = self.rules()
        seconds = min(rules.timeout_s, most_s)
        try:
            async with asyncio.timeout(seconds):
                return await self._send(letter, rules)
        except TimeoutError:
            return Outcome("timeout", f"no answer within {seconds:g} s")
        except ForbiddenError as error:
            return Outcome("forbidden", str(error))
        except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError) as error:
            return Outcome("unreachable", _words(error))

    async def _send(self, letter: Letter, rules: Rules) -> Outcome:
        for problem in url_problems(letter.url, rules):
            raise ForbiddenError(f"{problem.problem} ({problem.fix})")
        parts = urlsplit(letter.url)
        host, port = parts.hostname or "", parts.port or PORTS[parts.scheme]
        addresses = await self._allowed(host, port, rules)
        for address in addresses[:-1]:
            with suppress(httpx.ConnectError, httpx.ConnectTimeout):
                return await self._post(letter, address, port)
        return await self._post(letter, addresses[-1], port)

    async def _allowed(self, host: str, port: int, rules: Rules) -> Sequence[str]:
        """Return the addresses of a host that may be connected to."""
        found = await self._addresses(host, port)
        problems = {address: address_problem(address, rules) for address in found}
        allowed = [address for address in found if not problems[address]]
        if not allowed:
            raise ForbiddenError(f"{problems[found[0]]} ({ALLOW})")
        return allowed[:MOST_ADDRESSES]

    async def _post(self, letter: Letter, address: str, port: int) -> Outcome:
        """Send to an address that was checked: no name is asked about again."""
        parts = urlsplit(letter.url)
        where = parts._replace(
            netloc=f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
        )
        headers = {
            "Host": parts.netloc,
            "Content-Type": "application/json",
            "User-Agent": f"xtc-policer/{__version__}",
            **signed(letter.secret, letter.message, int(self._wall()), letter.body),
        }
        async with httpx.AsyncClient(
            verify=_trust(),
            trust_env=False,
            follow_redirects=False,
            timeout=httpx.Timeout(None, connect=CONNECT_S),
            limits=httpx.Limits(max_keepalive_connections=0),
        ) as client:
            # The name is still what the certificate must be of.
            named: dict[str, Any] = {"sni_hostname": parts.hostname}
            async with client.stream(
                "POST", where.geturl(), content=letter.body, headers=headers, extensions=named
            ) as answer:
                return _outcome(answer)

    async def _addresses(self, host: str, port: int) -> Sequence[str]:
        """Return what a name stands for; a resolver that hangs has one thread for each name."""
        key, loop = (host, port), asyncio.get_running_loop()
        known = self._resolving.get(key)
        if known is None:
            known = self._resolving[key] = loop.create_future()
            known.add_done_callback(lambda _: self._resolving.pop(key, None))
            thread = threading.Thread(
                target=_resolve, args=(loop, known, host, port), daemon=True, name="resolver"
            )
            thread.start()
        return await asyncio.shield(known)


def _resolve(
    loop: asyncio.AbstractEventLoop, found: "asyncio.Future[Sequence[str]]", host: str, port: int
) -> None:
    """Look a name up, and tell the loop."""

    def tell(answer: Sequence[str] | OSError) -> None:
        if found.cancelled():
            return
        if isinstance(answer, OSError):
            found.set_exception(answer)
            found.exception()  # marks it as seen, where no attempt waits for it
        else:
            found.set_result(answer)

    try:
        infos = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        answer: Sequence[str] | OSError = list(dict.fromkeys(str(info[4][0]) for info in infos))
    except OSError as error:
        answer = error
    except UnicodeError as error:
        answer = OSError(f"{error}")
    with suppress(RuntimeError):  # the loop has ended
        loop.call_soon_threadsafe(tell, answer)


def _outcome(answer: httpx.Response) -> Outcome:
    if answer.is_success:
        return Outcome("delivered", status=answer.status_code)
    after = answer.headers.get("Retry-After", "")
    wait = float(after) if after.isascii() and after.isdigit() and len(after) < 9 else 0.0
    words = (
        "it answers with a redirect, which is not followed" if answer.is_redirect else "it answers"
    )
    return Outcome("refused", f"{words}: {answer.status_code}", answer.status_code, wait)


def _words(error: Exception) -> str:
    return (str(error) or type(error).__name__)[:LONGEST_WORDS]
