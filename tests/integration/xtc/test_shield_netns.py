"""The shield on a real veth: what passes, what is exempt, adoption, other owners, removal."""

import contextlib
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TypeVar

import pytest
from pyroute2 import IPRoute, netns
from support.frames import ethernet, ipv4, udp
from support.waiting import PATIENCE_S, eventually

from common.units import BitsPerSecond, PacketsPerSecond
from xtc.daemon.build import release_all
from xtc.errors import Gone, Permanent, Unsupported
from xtc.kernel import bpf, clsact
from xtc.kernel.clsact import Direction
from xtc.kernel.namespaces import in_namespace
from xtc.kernel.offload import set_gro, set_tso, tso
from xtc.shield.bucket import MIN_PACKETS
from xtc.shield.exemptions import Exemptions
from xtc.shield.filters import LIMIT, OBJECT, PROGRAM
from xtc.shield.interface import Counts, Shield
from xtc.shield.limiter import BestLimiter
from xtc.shield.methods import Way
from xtc.shield.tbf import Limiter
from xtc.state.journal import Journal, Ledger, boot_id

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(not OBJECT.exists(), reason="shield.bpf.o is not built (clang, libbpf-dev)"),
]
HOST, ROUTER = "xtcsh-host", "xtcsh-router"
SLOW = PacketsPerSecond(1)
PLAIN = ethernet(0x0800, ipv4(17, udp(5000, 9)))
OSPF = ethernet(0x0800, ipv4(89))
Result = TypeVar("Result")


def on_host(work: Callable[[], Result]) -> Result:
    return in_namespace(f"/run/netns/{HOST}", work)


def in_router(work: Callable[[], Result]) -> Result:
    return in_namespace(f"/run/netns/{ROUTER}", work)


@pytest.fixture(autouse=True)
def veth() -> Iterator[None]:
    try:
        for name in (HOST, ROUTER):
            netns.create(name)
        in_router(silence)
        on_host(silence)
        on_host(make_veth)
        in_router(lambda: bring_up("r0", "10.9.0.1"))
        yield
    finally:
        for name in (HOST, ROUTER):
            if Path(f"/run/netns/{name}").exists():
                netns.remove(name)


def silence() -> None:
    """Have the kernel send nothing by itself."""
    Path("/proc/sys/net/ipv6/conf/default/disable_ipv6").write_text("1")


def make_veth() -> None:
    with IPRoute() as route:
        route.link("add", ifname="v0", kind="veth", peer={"ifname": "r0", "net_ns_fd": ROUTER})
    bring_up("v0", "10.9.0.2")


def bring_up(name: str, address: str) -> None:
    with IPRoute() as route:
        index = socket.if_nametoindex(name)
        route.link("set", index=index, state="up")
        route.addr("add", index=index, address=address, prefixlen=24)


def index() -> int:
    return on_host(lambda: socket.if_nametoindex("v0"))


def received() -> int:
    def read() -> int:
        lines = Path("/proc/thread-self/net/dev").read_text().splitlines()
        line = next(line for line in lines if "r0:" in line)
        return int(line.partition(":")[2].split()[1])

    return in_router(read)


def arrived(frames: Iterable[bytes]) -> int:
    """Send frames through the host's end; return how many came out of the other."""

    def send() -> None:
        with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as out:
            out.bind(("v0", 0))
            for frame in frames:
                with contextlib.suppress(OSError):  # ENOBUFS: it was dropped
                    out.send(frame)

    before = received()
    on_host(send)
    return received() - before


def counts(shield: Shield) -> Counts:
    return on_host(lambda: shield.counts(["v0"]))["v0"]


def qdiscs() -> list[str]:
    def read() -> list[str]:
        with IPRoute() as route:
            found = route.get_qdiscs(index=socket.if_nametoindex("v0"))
            return [qdisc.get_attr("TCA_KIND") for qdisc in found]

    return on_host(read)


def program_number() -> int:
    number = on_host(lambda: clsact.attached(index(), Direction.EGRESS, LIMIT))
    assert number is not None
    return number


@pytest.mark.parametrize("size", [60, 1514])
def test_what_passes_is_the_burst_and_the_rate_whatever_the_size(size: int) -> None:
    shield, rate, begun = Shield(), 200.0, time.monotonic()
    on_host(lambda: shield.limit("v0", PacketsPerSecond(rate)))
    sent = 0
    came = 0
    while time.monotonic() - begun < 1.0:
        came += arrived([PLAIN.ljust(size, b"\0")] * 20)
        sent += 20
    most = MIN_PACKETS + (time.monotonic() - begun) * rate
    assert MIN_PACKETS <= came <= most
    assert (counts(shield).passed, counts(shield).dropped) == (came, sent - came)
    assert on_host(lambda: shield.dropped(["v0", "v9"])) == {"v0": sent - came}
    assert on_host(lambda: shield.current("v0")) == pytest.approx(rate)


def test_a_limit_in_bits_lets_more_small_packets_through_than_large_ones() -> None:
    shield = Shield()
    on_host(lambda: shield.limit_bits("v0", BitsPerSecond(1e3)))
    assert on_host(lambda: shield.current_bits("v0")) == pytest.approx(1e3)
    assert on_host(lambda: shield.current("v0")) is None
    assert arrived([PLAIN.ljust(1514, b"\0")] * 50) == 16 + 1, "the last one may run over"
    on_host(lambda: shield.lift("v0"))
    on_host(lambda: shield.limit_bits("v0", BitsPerSecond(1e3)))
    assert arrived([PLAIN.ljust(60, b"\0")] * 500) >= 16 * 1518 // 60


def test_joined_packets_count_as_what_comes_out_of_them() -> None:
    """The same TCP transfer, joined on its way out and then cut, and never cut at all."""
    shield = Shield()
    on_host(lambda: shield.limit("v0", PacketsPerSecond(1e6)))
    in_router(lambda: set_gro("r0", on=False))
    whole, cut = on_host(lambda: tso("v0")), ()
    for offloads in (cut, whole):
        on_host(lambda offloads=offloads: set_tso("v0", offloads))
        before, came = counts(shield).passed, received()
        transfer(400_000)
        passed, came = counts(shield).passed - before, received() - came
        exempt = 2 * counts(shield).exempt_passed  # ARP
        assert passed >= 400_000 // 1460
        if offloads:
            assert came < passed / 2
        else:
            assert abs(came - passed) <= exempt


def transfer(size: int) -> None:
    server = in_router(lambda: socket.create_server(("10.9.0.1", 0)))
    with server:
        taker = threading.Thread(target=take, args=(server, size))
        taker.start()
        port = server.getsockname()[1]
        with on_host(lambda: socket.create_connection(("10.9.0.1", port))) as out:
            out.sendall(bytes(size))
            taker.join()


def take(server: socket.socket, size: int) -> None:
    connection, _ = server.accept()
    with connection:
        while size > 0:
            size -= len(connection.recv(65536))


def test_a_routers_own_end_is_limited_in_what_it_receives() -> None:
    shield, begun, came = Shield(direction=Direction.INGRESS), time.monotonic(), 0
    in_router(lambda: shield.limit("r0", SLOW))
    # Not all that is sent arrives on a busy machine, and not at once.
    while came < 100 and time.monotonic() - begun < PATIENCE_S:
        came += arrived([PLAIN] * 20)

    def seen() -> Counts:
        return in_router(lambda: shield.counts(["r0"]))["r0"]

    eventually(lambda: came >= 100 and seen().passed + seen().dropped == came, state=seen)
    assert MIN_PACKETS <= seen().passed <= MIN_PACKETS + 1 + time.monotonic() - begun
    in_router(lambda: shield.lift("r0"))
    assert in_router(lambda: clsact.filters(socket.if_nametoindex("r0"), Direction.INGRESS)) == ()


def test_routing_passes_while_a_flood_is_dropped_up_to_a_rate_of_its_own() -> None:
    shield = Shield(exempt_rate=PacketsPerSecond(1))
    on_host(lambda: shield.limit("v0", SLOW))
    assert arrived([PLAIN] * 200) <= MIN_PACKETS + 2
    assert arrived([PLAIN, OSPF] * 10) >= 10
    forged = arrived([OSPF] * 500)
    assert forged <= 2 * MIN_PACKETS + 2
    seen = counts(shield)
    assert seen.exempt_passed >= MIN_PACKETS
    assert seen.exempt_dropped >= 500 - forged


def test_a_protocol_that_the_configuration_names_is_exempt() -> None:
    shield = Shield(Exemptions.parse(["udp/9"]))
    on_host(lambda: shield.limit("v0", SLOW))
    assert arrived([PLAIN] * 100) == 100
    assert counts(shield).exempt_passed == 100


def test_a_limit_is_changed_in_place() -> None:
    shield = Shield()
    on_host(lambda: shield.limit("v0", SLOW))
    arrived([PLAIN] * 100)
    number, before = program_number(), counts(shield)
    on_host(lambda: shield.limit("v0", PacketsPerSecond(2)))
    assert on_host(lambda: shield.current("v0")) == pytest.approx(2)
    assert program_number() == number
    assert counts(shield) == before
    assert arrived([PLAIN] * 20) <= MIN_PACKETS + 2


def test_the_next_daemon_adopts_what_a_dead_one_left_in_force() -> None:
    words = "from xtc.shield.interface import Shield; Shield().limit('v0', 1)"
    on_host(lambda: subprocess.run([sys.executable, "-c", words], check=True))
    came = arrived([PLAIN] * 100)
    assert came <= MIN_PACKETS + 10
    following = Shield()
    assert on_host(lambda: following.current("v0")) == pytest.approx(1)
    assert counts(following).dropped == 100 - came
    number = program_number()
    on_host(lambda: following.limit("v0", PacketsPerSecond(5)))
    assert program_number() == number
    on_host(lambda: following.lift("v0"))
    assert arrived([PLAIN] * 100) == 100


def test_lifting_leaves_nothing_and_may_be_repeated() -> None:
    before = qdiscs()
    shield = Shield()
    on_host(lambda: shield.limit("v0", SLOW))
    number = program_number()
    for _ in range(2):
        on_host(lambda: shield.lift("v0"))
        assert qdiscs() == before
        assert on_host(lambda: shield.current("v0")) is None
        assert on_host(lambda: shield.dropped(["v0"])) == {}
    eventually(lambda: is_gone(number))


def is_gone(number: int) -> bool:
    try:
        bpf.by_id(number)
    except FileNotFoundError:
        return True
    return False


@pytest.mark.parametrize("limiter", [Shield, Limiter])
def test_releasing_everything_lifts_whatever_limits(
    limiter: type[Shield | Limiter], tmp_path: Path
) -> None:
    before = qdiscs()
    on_host(lambda: limiter().limit("v0", PacketsPerSecond(100)))
    assert qdiscs() != before
    with Journal(tmp_path) as journal:
        journal.store(Ledger(boot_id(), limits={"a": ("v0",)}))
    assert on_host(lambda: release_all(tmp_path)) == {}
    assert qdiscs() == before


def test_a_clsact_qdisc_that_was_there_stays() -> None:
    on_host(lambda: clsact.make_qdisc(index()))
    shield = Shield()
    on_host(lambda: shield.limit("v0", SLOW))
    on_host(lambda: shield.lift("v0"))
    assert "clsact" in qdiscs()


def add_foreign(place: int) -> None:
    clsact.make_qdisc(index())
    clsact.attach(index(), Direction.EGRESS, bpf.load(OBJECT, PROGRAM), place)


def test_another_owners_filter_is_left_alone_and_a_tbf_limits() -> None:
    on_host(lambda: add_foreign(1))
    with pytest.raises(Permanent, match=r"pref 1\) belongs to another owner"):
        on_host(lambda: Shield().limit("v0", SLOW))
    best = BestLimiter()
    assert on_host(lambda: best.choice("v0")).way is Way.TBF
    on_host(lambda: best.limit("v0", PacketsPerSecond(100)))
    assert "pref 1" in best.reason("v0")
    assert "tbf" in qdiscs()
    on_host(lambda: best.lift("v0"))
    assert "tbf" not in qdiscs()
    assert [one.priority for one in on_host(lambda: clsact.filters(index(), Direction.EGRESS))] == [
        1
    ]


def test_a_limit_that_another_process_removed_is_missed_and_set_again() -> None:
    shield = Shield()
    on_host(lambda: shield.limit("v0", SLOW))
    on_host(lambda: clsact.remove_qdisc(index()))
    assert on_host(lambda: shield.dropped(["v0"])) == {}
    on_host(lambda: shield.limit("v0", SLOW))
    assert on_host(lambda: shield.dropped(["v0"])) == {"v0": 0}


def test_an_interface_that_is_gone_is_said_to_be_and_needs_no_lifting() -> None:
    shield = Shield()
    with pytest.raises(Gone, match="v9"):
        on_host(lambda: shield.limit("v9", SLOW))
    with pytest.raises(Gone, match="v9"):
        on_host(lambda: shield.current("v9"))
    on_host(lambda: shield.lift("v9"))
    assert on_host(lambda: BestLimiter().choice("v9")).way is Way.NONE


@pytest.fixture
def without_libbpf(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], None]]:
    def remove() -> None:
        monkeypatch.setattr(bpf, "_LIBRARY", "libbpf-is-not-installed.so")
        bpf.library.cache_clear()

    yield remove
    bpf.library.cache_clear()


def test_without_libbpf_a_tbf_limits_and_is_lifted(without_libbpf: Callable[[], None]) -> None:
    without_libbpf()
    best, before = BestLimiter(), qdiscs()
    on_host(lambda: best.limit("v0", PacketsPerSecond(100)))
    assert best.reason("v0") == "libbpf is missing"
    assert on_host(lambda: best.current("v0")) == pytest.approx(100, rel=1e-3)
    assert on_host(lambda: best.dropped(["v0"])) == {"v0": 0}
    on_host(lambda: best.lift("v0"))
    assert qdiscs() == before


def test_a_shield_that_cannot_be_lifted_is_not_said_to_be(
    without_libbpf: Callable[[], None],
) -> None:
    on_host(lambda: Shield().limit("v0", SLOW))
    without_libbpf()
    with pytest.raises(Unsupported, match="libbpf is missing"):
        on_host(lambda: Shield().lift("v0"))
    assert "clsact" in qdiscs()


def test_without_the_built_program_a_tbf_limits(tmp_path: Path) -> None:
    shield = Shield(program=tmp_path / "shield.bpf.o")
    with pytest.raises(Unsupported, match="not built"):
        on_host(lambda: shield.limit("v0", SLOW))
    best = BestLimiter(shield)
    on_host(lambda: best.limit("v0", PacketsPerSecond(100)))
    assert "tbf" in qdiscs()
    assert on_host(lambda: best.choice("v0")).way is Way.TBF
