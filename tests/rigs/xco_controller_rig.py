"""The compiled controller without its sockets, for tests: datagrams and instants in and out."""

import ctypes
import functools
import subprocess
import tempfile
from pathlib import Path

from xco.protocol.keys import derive
from xco.protocol.wire import CONTROLLER, Message, decode, encode

MASTER = bytes(range(32))
KEY = derive(MASTER, 0).up
"""Any key, where but one is needed."""
DATAGRAM_MAX = 1360
CORE = Path(__file__).parents[2] / "xco" / "core"
SHIM = Path(__file__).parent / "xco_node_shim.c"
# Not optimised: the tests wait for the compiler longer than for what it makes.
FLAGS = ("-std=c17", "-Wall", "-Wextra", "-Werror", "-O0", "-D_GNU_SOURCE", "-fPIC", "-shared")
FOLDERS = ("controller", "controller/engine", "scheduler", "common")


@functools.cache
def node_library() -> ctypes.CDLL:
    """Compile the controller's pure part with the shim, once a test process."""
    sources = [
        path
        for folder in FOLDERS
        for path in sorted((CORE / folder).glob("*.c"))
        if path != CORE / "controller" / "main.c"
    ]
    with tempfile.TemporaryDirectory(prefix="xco-shim-") as folder:
        library = Path(folder) / "shim.so"
        command = ["cc", *FLAGS, f"-I{CORE}", "-o", library, SHIM, *sources, "-lsodium", "-lm"]
        subprocess.run(command, check=True)
        loaded = ctypes.CDLL(str(library))
    loaded.shim_open.restype = ctypes.c_void_p
    loaded.shim_shell_open.restype = ctypes.c_void_p
    loaded.shim_shell_turn.restype = ctypes.c_uint64
    loaded.shim_deadline.restype = loaded.shim_granted_ns.restype = ctypes.c_uint64
    loaded.shim_schedule_bytes.restype = ctypes.c_size_t
    loaded.shim_take.restype = ctypes.c_size_t
    loaded.shim_counters.restype = ctypes.c_size_t
    loaded.shim_counter_names.restype = ctypes.c_char_p
    return loaded


def again(datagram: bytes, key: bytes = KEY) -> bytes | int:
    """Let C decode a datagram and encode it again; its result code where it refuses."""
    out = ctypes.create_string_buffer(DATAGRAM_MAX)
    length = node_library().shim_again(datagram, ctypes.c_size_t(len(datagram)), key, out)
    return out.raw[:length] if length > 0 else -length


def host_encode(message: Message) -> bytes:
    """Return the datagram of a message with its sender's key."""
    host = message.header.host
    return encode(message, derive(MASTER, host if host < CONTROLLER else 0).up)


class Node:
    """A controller in simulated time."""

    def __init__(self, loop_file: Path) -> None:
        self._library = node_library()
        self.problem = ctypes.create_string_buffer(512)
        node = self._library.shim_open(str(loop_file).encode(), self.problem)
        if not node:
            raise ValueError(self.problem.value.decode())
        self._node = ctypes.c_void_p(node)

    def close(self) -> None:
        self._library.shim_close(self._node)

    def reload(self, loop_file: Path) -> bool:
        return bool(self._library.shim_reload(self._node, str(loop_file).encode(), self.problem))

    def receive(self, now_ns: int, message: Message | bytes, arrived_ns: int | None = None) -> int:
        datagram = message if isinstance(message, bytes) else host_encode(message)
        arrived = ctypes.c_uint64(now_ns if arrived_ns is None else arrived_ns)
        length = ctypes.c_size_t(len(datagram))
        now = ctypes.c_uint64(now_ns)
        return int(self._library.shim_receive(self._node, now, arrived, datagram, length))

    def advance(self, now_ns: int) -> None:
        self._library.shim_advance(self._node, ctypes.c_uint64(now_ns))

    @property
    def deadline_ns(self) -> int:
        return int(self._library.shim_deadline(self._node))

    def take(self, now_ns: int) -> list[Message]:
        messages = []
        out, to = ctypes.create_string_buffer(DATAGRAM_MAX), ctypes.c_uint16()
        now, place = ctypes.c_uint64(now_ns), ctypes.byref(to)
        while length := self._library.shim_take(self._node, now, out, place):
            messages.append(decode(out.raw[:length], derive(MASTER, to.value).down))
        return messages

    def raise_epoch(self, now_ns: int, epoch: int) -> bool:
        numbers = ctypes.c_uint64(now_ns), ctypes.c_uint64(epoch)
        return bool(self._library.shim_raise(self._node, *numbers))

    def set_strategy(self, now_ns: int, strategy: int) -> bool:
        return bool(
            self._library.shim_strategy(
                self._node, ctypes.c_uint64(now_ns), ctypes.c_uint8(strategy)
            )
        )

    @property
    def schedule_bytes(self) -> int:
        return int(self._library.shim_schedule_bytes(self._node))

    def granted_ns(self, host: int) -> int:
        return int(self._library.shim_granted_ns(self._node, ctypes.c_uint32(host)))

    @property
    def counters(self) -> dict[str, int]:
        names = self._library.shim_counter_names().decode().split()
        values = (ctypes.c_uint64 * len(names))()
        assert self._library.shim_counters(self._node, values, len(names)) == len(names)
        return dict(zip(names, values, strict=True))
