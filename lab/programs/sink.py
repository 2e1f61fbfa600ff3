"""TCP sink: accepts any number of connections and throws away what they carry."""

import argparse
import selectors
import socket
import sys
from typing import Final

BUFFER_BYTES: Final = 1 << 18


def run(listener: socket.socket) -> None:
    """Serve for ever."""
    buffer = bytearray(BUFFER_BYTES)
    selector = selectors.DefaultSelector()
    selector.register(listener, selectors.EVENT_READ)
    while True:
        for key, _ in selector.select():
            if key.fileobj is listener:
                selector.register(listener.accept()[0], selectors.EVENT_READ)
            elif isinstance(key.fileobj, socket.socket) and not _drain(key.fileobj, buffer):
                selector.unregister(key.fileobj)
                key.fileobj.close()


def _drain(connection: socket.socket, buffer: bytearray) -> bool:
    try:
        return connection.recv_into(buffer) > 0
    except ConnectionError:  # the source was killed; the next one may come
        return False


def main() -> None:
    """Listen where the command line says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("address", help="an IPv4 address of this host")
    parser.add_argument("port", type=int)
    options = parser.parse_args()
    listener = socket.create_server((options.address, options.port))
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    run(listener)


if __name__ == "__main__":
    main()
