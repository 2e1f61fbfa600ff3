"""Dumps of rtnetlink(7) as this kernel answers them."""

import socket
import struct

import pytest

from xtc.kernel.netlink import attributes, dump, text

RTM_GETLINK = 18
IFLA_IFNAME = 3
LINK = struct.Struct("=BxHiII")


def test_a_dump_has_every_interface() -> None:
    found = dump(RTM_GETLINK, LINK.pack(socket.AF_UNSPEC, 0, 0, 0, 0))
    names = {text(attributes(message, LINK.size)[IFLA_IFNAME]) for message in found}
    assert "lo" in names


def test_a_refusal_is_raised() -> None:
    with pytest.raises(OSError, match=r"not supported|Invalid"):
        list(dump(0x3FF, b""))
