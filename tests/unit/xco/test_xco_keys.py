"""Keys by host and direction: files, derivation as in C, and who may speak as whom."""

import ctypes
from pathlib import Path

import pytest
from xco_controller_rig import MASTER, node_library
from xco_controller_scenes import Scene

from xco.errors import ConfigError, Forged
from xco.protocol.keys import KEY_BYTES, derive, host_file, read_host_keys, read_master
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
    keys = [derive(MASTER, host) for host in range(200)]
    assert len({key for both in keys for key in (both.up, both.down)} | {MASTER}) == 401


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
