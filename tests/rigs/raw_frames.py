"""Frames of UDP and TCP in hexadecimal, and programs that send them as they are."""

import subprocess
from typing import Final

from benchmarks.xco.gates.rig import HOST, RECEIVER, Rig

SYN, ACK, SYN_ACK, FIN_ACK = 0x02, 0x10, 0x12, 0x11
"""Flags of TCP's header."""
ONCE: Final = """
import socket, sys
out = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
out.bind(("e0", 0))
for frame in sys.argv[1:]:
    out.send(bytes.fromhex(frame))
"""
"""Sends frames once, in turn."""
ENDLESS: Final = """
import socket, sys, time
out = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
out.bind(("e0", 0))
frames = [bytes.fromhex(one) for one in sys.argv[1:]]
while True:
    for frame in frames:
        out.send(frame)
    time.sleep(0.0003)
"""
"""Sends frames in turn, without an end."""
VM_MAC: Final = "02aa00000001"


def address(text: str) -> str:
    """Return an IPv4 address."""
    return bytes(map(int, text.split("."))).hex()


def udp4(to: str, source: str = HOST, length: int = 1400, more: str = "4000") -> str:
    """Return an IPv4 packet of UDP, without a check sum of its contents."""
    head = f"4500{length:04x}0001{more}4011" + "{}" + address(source) + address(to)
    return head.format(check_sum(bytes.fromhex(head.format("0000")))) + "00" * (length - 20)


def check_sum(header: bytes) -> str:
    """RFC 1071: bridges drop what has a wrong one."""
    total = sum(int.from_bytes(header[at : at + 2]) for at in range(0, len(header), 2))
    return f"{~(total + (total >> 16)) & 0xFFFF:04x}"


def tcp(flags: int) -> str:
    """Return a TCP header."""
    return f"04001389{1:08x}{1:08x}50{flags:02x}ffff00000000"


def tcp4(flags: int) -> str:
    """Return a segment without data in IPv4."""
    return f"4500002800014000{64:02x}06{0:04x}{address(HOST)}{address(RECEIVER)}{tcp(flags)}"


def tcp4_options(flags: int) -> str:
    """Return a segment without data in IPv4 with options."""
    head = f"4600002c00014000{64:02x}06{0:04x}{address(HOST)}{address(RECEIVER)}"
    return f"{head}01010100{tcp(flags)}"


def tcp6(flags: int) -> str:
    """Return a segment without data in IPv6."""
    ends = "".join(f"fd77{0:024x}{last:04x}" for last in (0x1, 0x100))
    return f"60000000001406{64:02x}{ends}{tcp(flags)}"


def ethernet(payload: str, kind: str = "0800", to: str = VM_MAC, tags: str = "") -> str:
    """Return a frame."""
    return f"{to}020000000009{tags}{kind}{payload}"


def wrapped(flags: int) -> dict[str, str]:
    """Return frames of a segment without data, in each way of carrying it."""
    return {
        "ipv4": ethernet(tcp4(flags)),
        "options": ethernet(tcp4_options(flags)),
        "ipv6": ethernet(tcp6(flags), "86dd"),
        "vlan": ethernet(tcp4(flags), tags="81000064"),
    }


def sent(bench: Rig, kind: str) -> int:
    """Return the bytes that a class of the root has passed on."""
    command = ["tc", "-n", bench.near, "-s", "class", "show", "dev", "e0", "classid", kind]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return int(shown.split("Sent ", 1)[1].split()[0])
