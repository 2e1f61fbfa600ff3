"""TCP sink: accepts any number of connections and discards their data."""

import argparse
import selectors
import socket
import sys
from typing import Final

BUFFER_BYTES: Final = 1 << 18


def run(listener: socket.socket) -> None:
    """Serve without end."""
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
    except ConnectionError:  # the source was killed; the next one may connect
        return False


def main() -> None:
    """Listen on the address from the command line."""
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
