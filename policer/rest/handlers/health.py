"""/livez, /readyz and /metrics: for monitoring the service."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from litestar import Response, get
from litestar.concurrency import sync_to_thread
from litestar.exceptions import HTTPException
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

from policer.errors import StoreGone
from policer.rest.access.context import Context, GivenDesk, GivenGate
from policer.rest.access.gate import OPEN, address_of, authorization_of, check
from policer.rest.answers.entities import Health
from policer.rest.http.bodies import StrictRequest

TAGS = ["health"]
_SCRAPES: Final = ThreadPoolExecutor(1, "metrics")
"""A thread for metrics alone: requests that wait for a hanging store occupy all the others."""


@get("/livez", operation_id="live", tags=TAGS, scope=OPEN, sync_to_thread=False)
def livez() -> Health:
    """Return that the service answers; `/readyz` covers its dependencies."""
    return Health("alive")


@get("/readyz", operation_id="ready", tags=TAGS, scope=OPEN)
async def readyz(context: GivenDesk) -> Health:
    """Return that the store can be read and the policer's loop runs; 503 if not."""
    await _check_store(context)
    silent = context.settings.heartbeat()
    if silent > context.settings.dead_after_s:
        raise HTTPException(f"the policer's loop is silent for {silent:.0f} s", status_code=503)
    return Health("ready")


async def _check_store(context: Context) -> None:
    """Raise StoreError if the store cannot be used; does not wait for one that hangs."""
    wait_s = context.settings.store_wait_s
    try:
        await asyncio.wait_for(sync_to_thread(context.store.check), wait_s)
    except TimeoutError as error:
        raise StoreGone(f"the database did not answer within {wait_s:g} s") from error


@get(
    "/metrics",
    operation_id="readMetrics",
    tags=TAGS,
    scope=OPEN,
    media_type="text/plain",
)
async def metrics(context: GivenDesk, gate: GivenGate, request: StrictRequest) -> Response[str]:
    """Read the metrics in Prometheus' text format; takes the scope read if so configured.

    They cover the whole fleet. If they take a token, limited tokens are refused.
    """
    header, address = authorization_of(request), address_of(request)
    if not context.settings.metrics_open:
        check(await gate.known(header, address), "read")
    registry = context.settings.registry or CollectorRegistry()
    scrape = asyncio.get_running_loop().run_in_executor(_SCRAPES, generate_latest, registry)
    text = (await scrape).decode()
    return Response(text, media_type=CONTENT_TYPE_PLAIN_0_0_4)


HANDLERS = [livez, readyz, metrics]
