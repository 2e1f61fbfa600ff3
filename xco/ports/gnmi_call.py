"""One Subscribe call: a thread that takes its answers, so that waiting for them has an end."""

import threading
import time
from collections.abc import Iterator
from queue import Empty, SimpleQueue
from typing import Any, Final

from xco.ports.gnmi_library import gnmi_pb2_grpc, grpc
from xco.ports.gnmi_samples import Arrival

_WAITING_MAX: Final = 100_000
"""Answers that wait to be taken; with more, something floods the agent."""


class Updates:
    """The answers to a request, each with its arrival; the call ends with `close`."""

    def __init__(self, channel: Any, request: Any, metadata: list[tuple[str, str]]) -> None:
        """Start the call, and the thread."""
        self._closed = threading.Event()
        self._queue: SimpleQueue[tuple[Any, Arrival] | grpc.RpcError | None] = SimpleQueue()
        stub = gnmi_pb2_grpc.gNMIStub(channel)
        self._call = stub.Subscribe(self._requests(request), metadata=metadata)
        threading.Thread(target=self._take, daemon=True, name="gnmi").start()

    def next(self, timeout_ns: int) -> tuple[Any, Arrival] | None:
        """Return the next answer; None: there is none in time.

        Raises:
            grpc.RpcError: the call has failed.
            EOFError: it cannot go on, and why.
        """
        if self._queue.qsize() > _WAITING_MAX:
            raise EOFError("the switch sends more than the agent can read")
        try:
            found = (
                self._queue.get(timeout=timeout_ns / 1e9)
                if timeout_ns
                else self._queue.get_nowait()
            )
        except Empty:
            return None
        if isinstance(found, grpc.RpcError):
            raise found
        if found is None:
            raise EOFError("the switch ended the stream")
        return found

    def close(self) -> None:
        """Cancel the call; its thread ends by that."""
        self._closed.set()
        self._call.cancel()

    def _requests(self, request: Any) -> Iterator[Any]:
        """Yield the request; then keep this side open, as targets end a stream otherwise."""
        yield request
        self._closed.wait()

    def _take(self) -> None:
        try:
            for response in self._call:
                now_ns = time.monotonic_ns()
                age_ns = time.time_ns() - response.update.timestamp
                self._queue.put((response, Arrival(now_ns, age_ns)))
            self._queue.put(None)
        except grpc.RpcError as error:
            self._queue.put(error)
