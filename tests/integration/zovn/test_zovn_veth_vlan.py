"""VLANs of a container: what of their tags comes to a port with `tagged`."""

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from rigs.zovn_switch_rig import build_guest, running_switch
from rigs.zovn_veth_rig import (
    HOST,
    PORT,
    address,
    container,
    host,
    inside,
    port,
    require_lossless_veth,
    run,
    set_offload,
)
from support.waiting import eventually

pytestmark = [
    pytest.mark.root,
    pytest.mark.timeout(120),
    pytest.mark.skipif(shutil.which("clang") is None, reason="needs clang"),
]
TAGS = """
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
SEC("tc") int tag(struct __sk_buff *packet) {
    bpf_skb_vlan_push(packet, 0, 7);
    return 0; /* it may pass */
}
char _license[] SEC("license") = "Dual BSD/GPL";
"""
"""Gives packets a tag as a VLAN interface does, which not all kernels have."""


@pytest.fixture(scope="module", autouse=True)
def _built() -> None:
    build_guest()
    require_lossless_veth()


def tag_all(number: int, folder: Path) -> None:
    """Have packets of a container leave with a tag."""
    source, compiled = folder / "tags.c", str(folder / "tags.o")
    source.write_text(TAGS)
    headers = f"-I/usr/include/{os.uname().machine}-linux-gnu"
    command = ["clang", "-O2", "-g", "-target", "bpf", headers, "-c", str(source), "-o", compiled]
    subprocess.run(command, check=True)
    run("tc", "-n", container(number), "qdisc", "add", "dev", "e0", "clsact")
    place = ("dev", "e0", "egress", "bpf", "da", "obj", compiled, "sec", "tc")
    run("tc", "-n", container(number), "filter", "add", *place)


@pytest.mark.parametrize(("txvlan", "into", "other"), [(False, "b", "c"), (True, "c", "b")])
def test_a_tag_comes_to_a_trunk_if_the_container_writes_it_into_the_packet(
    tmp_path: Path, *, txvlan: bool, into: str, other: str
) -> None:
    each: list[dict[str, Any]] = [
        {"kind": "veth", "interface": port(1), "tagged": ["7"]},
        {"kind": "veth", "interface": port(2), "vlan": 7},
        {"kind": "veth", "interface": port(3)},
    ]
    with (
        host(1, 2, 3),
        running_switch(names="abc", each=each, netns=HOST) as running,
        inside(1) as sender,
    ):
        run("ip", "netns", "exec", container(1), "ping", "-c", "1", address(3))
        before = {name: running.port(name).counters["out"] for name in "bc"}
        set_offload(container(1), "e0", "tx-vlan-offload", on=txvlan)
        tag_all(1, tmp_path)
        sender.sendto(b"x", (address(2), PORT))
        eventually(lambda: running.port(into).counters["out"] > before[into])
        assert running.port(other).counters["out"] == before[other]
