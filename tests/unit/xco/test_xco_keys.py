"""Keys by host and direction: files, derivation as in C, and who may speak as whom."""

import ctypes
from pathlib import Path

import pytest
from xco_controller_rig import MASTER, node_library
from xco_controller_scenes import Scene

from xco.errors import ConfigError, Forged
from xco.protocol.keys import (
    KEY_BYTES,
    PeerKeys,
    derive,
    host_file,
    peer_key,
    read_host_keys,
    read_master,
)
from xco.protocol.messages import Directive
from xco.protocol.wire import decode, encode
from xco.topology.shapes import star_topology


@pytest.mark.parametrize("host", [0, 1, 255, 256, 0xFFFD])
def test_c_derives_the_same_keys_and_reads_the_same_file(tmp_path: Path, host: int) -> None:
    keys = derive(MASTER, host)
    out = ctypes.create_string_buffer(2 * KEY_BYTES)
    node_library().xco_host_keys_derive(out, MASTER, ctypes.c_uint16(host))
    assert out.raw == keys.up + keys.down
    path = tmp_path / "key"
    path.write_bytes(host_file(keys))
    read = ctypes.create_string_buffer(2 * KEY_BYTES)
    problem = in_c("xco_host_keys_read", path, ctypes.c_uint16(host), read)
    assert (problem, read.raw) == ("", out.raw)
    assert read_host_keys(path, host, "h") == keys


def test_no_two_keys_are_the_same() -> None:
    keys = [derive(MASTER, host, 20) for host in range(20)]
    ends = {key for both in keys for key in (both.up, both.down)}
    peers = [one.peers for one in keys if one.peers]
    between = {key for one in peers for key in one.to} | {one.root for one in peers}
    assert len(ends | between | {MASTER}) == 20 * (2 + 20 + 1) + 1


class Peers(ctypes.Structure):
    """struct xco_peer_keys."""

    _fields_ = (
        ("root", ctypes.c_uint8 * KEY_BYTES),
        ("count", ctypes.c_size_t),
        ("to", ctypes.POINTER(ctypes.c_uint8 * KEY_BYTES)),
    )


def test_c_reads_the_keys_for_other_hosts(tmp_path: Path) -> None:
    keys = derive(MASTER, 1, 3)
    path, found = tmp_path / "key", Peers()
    path.write_bytes(host_file(keys))
    assert read_host_keys(path, 1, "h") == keys
    both = ctypes.create_string_buffer(2 * KEY_BYTES)
    assert in_c("xco_host_keys_read", path, ctypes.c_uint16(1), both) == ""
    assert both.raw == keys.up + keys.down
    assert in_c("xco_peer_keys_read", path, ctypes.c_size_t(3), ctypes.byref(found)) == ""
    assert keys.peers == PeerKeys(bytes(found.root), tuple(bytes(found.to[n]) for n in range(3)))


@pytest.mark.parametrize("sender", [0, 2])
def test_a_host_derives_the_key_of_a_sender_and_of_no_other_pair(sender: int) -> None:
    receiver, writer = derive(MASTER, 1, 3).peers, derive(MASTER, sender, 3).peers
    assert receiver
    assert writer
    out = ctypes.create_string_buffer(KEY_BYTES)
    node_library().xco_peer_key(out, receiver.root, ctypes.c_uint16(sender))
    assert out.raw == writer.to[1] == peer_key(receiver.root, sender)
    others = {key for host, key in enumerate(writer.to) if host != 1}
    assert out.raw not in others | set(receiver.to)


@pytest.mark.parametrize(
    "content",
    [
        host_file(derive(MASTER, 2)),
        host_file(derive(MASTER, 2, 2)),
        host_file(derive(MASTER, 2, 3))[:-1],
        host_file(derive(MASTER, 2, 3)) + bytes(1),
        host_file(derive(MASTER, 2, 3))[:80],
    ],
)
def test_c_names_a_file_that_lacks_keys_for_other_hosts(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "key"
    path.write_bytes(content)
    problem = in_c("xco_peer_keys_read", path, ctypes.c_size_t(3), ctypes.byref(Peers()))
    assert "make it again with xco key host" in problem


def in_c(name: str, path: Path, *rest: object) -> str:
    """Return what C finds wrong with a key file."""
    function = getattr(node_library(), name)
    function.restype = ctypes.c_char_p
    problem = function(str(path).encode(), *rest)
    return "" if problem is None else str(problem.decode())


@pytest.mark.parametrize(
    ("content", "in_python", "from_c"),
    [
        (host_file(derive(MASTER, 3)), "is the key of a host, not the master", "key of a host"),
        (host_file(derive(MASTER, 3, 4)), "is the key of a host, not the master", "key of a host"),
        (bytes(31), "31 bytes, not 32", "exactly 32 bytes"),
        (bytes(72), "72 bytes, not 32", "exactly 32 bytes"),
        (None, "No such file", "No such file"),
    ],
)
def test_what_is_no_master_key_is_named(
    tmp_path: Path, content: bytes | None, in_python: str, from_c: str
) -> None:
    path = tmp_path / "key"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ConfigError, match=in_python):
        read_master(path)
    assert from_c in in_c("xco_master_key_read", path, ctypes.create_string_buffer(32))


@pytest.mark.parametrize(
    ("content", "in_python", "from_c"),
    [
        (MASTER, "is a master key, which only controllers", "is a master key"),
        (host_file(derive(MASTER, 3)), "host number 3; h is number 2", "of another host"),
        (host_file(derive(MASTER, 2))[:-1], "71 bytes, no key of a host", "no key of a host"),
        (host_file(derive(MASTER, 3, 2)), "host number 3; h is number 2", "of another host"),
        (b"XCOH\x02\x00\x02" + bytes(65), "72 bytes, no key of a host", "no key of a host"),
        (b"XCOH\x01\x00\x02" + bytes(66), "73 bytes, no key of a host", "no key of a host"),
        (b"YCOH" + host_file(derive(MASTER, 2))[4:], "no key of a host", "no key of a host"),
        (None, "No such file", "No such file"),
    ],
)
def test_what_is_no_key_of_this_host_is_named(
    tmp_path: Path, content: bytes | None, in_python: str, from_c: str
) -> None:
    path = tmp_path / "key"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ConfigError, match=in_python):
        read_host_keys(path, 2, "h")
    out = ctypes.create_string_buffer(64)
    assert from_c in in_c("xco_host_keys_read", path, ctypes.c_uint16(2), out)


def test_a_host_cannot_speak_as_another(tmp_path: Path) -> None:
    scene = Scene(tmp_path, star_topology(3, "1Gbps"))
    scene.join()
    report = scene.hosts[0].report(scene.now_ns, 2)
    assert scene.say(encode(report, derive(MASTER, 1).up)) == 2
    assert scene.say(encode(report, derive(MASTER, 0).down)) == 2, (
        "a directive's key is no report's"
    )
    assert scene.node.counters["dropped_forged"] == 2
    assert scene.say(encode(report, derive(MASTER, 0).up)) == 0


def test_a_host_cannot_direct_another(tmp_path: Path) -> None:
    scene = Scene(tmp_path, star_topology(3, "1Gbps"))
    scene.join()
    directive = scene.hosts[0].directive
    assert isinstance(directive, Directive)
    for known in (derive(MASTER, 1).up, derive(MASTER, 1).down):
        with pytest.raises(Forged):
            decode(encode(directive, known), derive(MASTER, 0).down)
