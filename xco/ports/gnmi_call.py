"""One Subscribe call: a thread that takes its answers, so that waiting for them has an end."""

import threading
import time
from collections.abc import Iterator
from typing import Any, Final

from xco.ports.gnmi_library import gnmi_pb2_grpc, grpc
from xco.ports.gnmi_queue import Answer, Waiting
from xco.ports.gnmi_samples import Arrival

_END_S: Final = 5.0
"""Within this a cancelled call ends, also on a busy machine."""


class Updates:
    """The answers to a request, each with its arrival; the call ends with `close`."""

    def __init__(self, channel: Any, request: Any, metadata: list[tuple[str, str]]) -> None:
        """Start the call, and the thread."""
        self._closed = threading.Event()
        self._waiting = Waiting()
        self._taken_ns = time.monotonic_ns()
        stub = gnmi_pb2_grpc.gNMIStub(channel)
        self._call = stub.Subscribe(self._requests(request), metadata=metadata)
        self._thread = threading.Thread(target=self._take, daemon=True, name="gnmi")
        self._thread.start()

    def next(self, timeout_ns: int) -> Answer | None:
        """Return the next answer; None: there is none in time.

        Raises:
            grpc.RpcError: the call has failed.
            EOFError: it cannot go on; with the problem and a fix.
        """
        answer = self._waiting.get(timeout_ns)
        if answer is not None:
            self._taken_ns = answer[1].now_ns
        return answer

    def as_of_ns(self, now_ns: int) -> int:
        """Return up to when answers were taken: while some wait, a silence is not the switch's."""
        return now_ns if self._waiting.is_empty() else self._taken_ns

    def close(self) -> None:
        """Cancel the call, and wait for its thread to end by that: none may outlive the program."""
        self._closed.set()
        self._call.cancel()
        self._waiting.close()
        self._thread.join(_END_S)

    def _requests(self, request: Any) -> Iterator[Any]:
        """Yield the request; then keep this side open, as targets end a stream otherwise."""
        yield request
        self._closed.wait()

    def _take(self) -> None:
        try:
            for response in self._call:
                now_ns = time.monotonic_ns()
                age_ns = time.time_ns() - response.update.timestamp
                self._waiting.put((response, Arrival(now_ns, age_ns)), response.ByteSize())
            fix = "the agent opens it again; see the switch's log"
            self._waiting.end(EOFError("the switch ended the stream", fix))
        except grpc.RpcError as error:
            self._waiting.end(error)
