"""A switch that speaks as much OpenFlow 1.3 as its test says, on a Unix socket."""

import contextlib
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

from xco.ports.openflow_codec import Message, Part, Stream, Type, encoded

HELLO = encoded(Message(4, Type.HELLO, 1))
Answer = Callable[[Message], bytes]


def port_stats(port: int, packets: int, sent: int, dropped: int) -> bytes:
    """Return the entry of a port (struct ofp_port_stats)."""
    return struct.pack("!Ixxxx12QII", port, 1, packets, 2, sent, 3, dropped, *[4] * 6, 9, 9)


def queue_stats(port: int, queue: int, packets: int, sent: int, errors: int) -> bytes:
    """Return the entry of a queue (struct ofp_queue_stats)."""
    return struct.pack("!IIQQQII", port, queue, sent, packets, errors, 9, 9)


def reply(xid: int, part: Part, entries: bytes, *, more: bool = False) -> bytes:
    """Return a multipart reply."""
    body = struct.pack("!HHxxxx", part, int(more)) + entries
    return encoded(Message(4, Type.MULTIPART_REPLY, xid, body))


def refusal(xid: int, kind: int, code: int) -> bytes:
    """Return an error."""
    return encoded(Message(4, Type.ERROR, xid, struct.pack("!HH", kind, code)))


class FakeSwitch:
    """Listens until `close`; answers each message of a client as `answer` says."""

    def __init__(self, path: Path, answer: Answer, *, greeting: bytes = HELLO) -> None:
        self.answer, self._greeting = answer, greeting
        self.heard: list[Message] = []
        self._clients: list[socket.socket] = []
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(path))
        self._listener.listen()
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return  # closed
            self._clients.append(client)
            with contextlib.suppress(OSError), client:
                self._talk(client)

    def _talk(self, client: socket.socket) -> None:
        client.sendall(self._greeting)
        stream = Stream()
        while data := client.recv(65536):
            for message in stream.messages(data):
                self.heard.append(message)
                if message.type != Type.HELLO:
                    client.sendall(self.answer(message))

    def close(self) -> None:
        """End all connections."""
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for client in self._clients:
            with contextlib.suppress(OSError):  # closed by the other side
                client.shutdown(socket.SHUT_RDWR)
        self._thread.join()


@contextlib.contextmanager
def switch(path: Path, answer: Answer, *, greeting: bytes = HELLO) -> Iterator[FakeSwitch]:
    """Run a switch during a `with` block; its socket goes with it."""
    made = FakeSwitch(path, answer, greeting=greeting)
    try:
        yield made
    finally:
        made.close()
        path.unlink()
