"""The shield's program on kernels as Debian ships them, emulated: their verifiers differ.

Always on the kernel of the release that this host runs; beside it on those that `KERNELS` names:
paths of vmlinuz files, with spaces between.
"""

import os
import time
from pathlib import Path

import pytest
from support.frames import arp, ethernet, ipv4, udp
from system.kernels.guest import boot, debian_kernel
from system.xen.cache import Cache, Say

from xtc.shield.bucket import Terms
from xtc.shield.exemptions import DEFAULT, Exemptions
from xtc.shield.filters import OBJECT, PROGRAM

pytestmark = [pytest.mark.kernels, pytest.mark.timeout(600)]

CACHE = Path(__file__).parents[2] / "build/kernels"
PASS, DROP = -1, 2  # TC_ACT_UNSPEC, TC_ACT_SHOT
ORDINARY, EXEMPT = 0, 1
AN_HOUR = 3600 * 10**9 << 16
ONE_PACKET = Terms(per_packet=AN_HOUR, depth=AN_HOUR)
FILES = {
    "plain": ethernet(0x0800, ipv4(17, udp(5000, 9))).ljust(60, b"\0"),
    "arp": arp().ljust(60, b"\0"),
    "one": ONE_PACKET.pack(),
    "routing": Exemptions.parse(DEFAULT).pack(),
}
STEPS = (
    f"load shield.bpf.o {PROGRAM}",
    *("run plain", f"set terms {ORDINARY} one", "run plain", "run plain", "run arp"),
    *("set exempt 0 routing", f"set terms {EXEMPT} one", "run arp", "run arp", "run plain"),
)
VERDICTS = (
    *(("plain", PASS), ("plain", PASS), ("plain", DROP), ("arp", DROP)),
    *(("arp", PASS), ("arp", DROP), ("plain", DROP)),
)


@pytest.fixture(scope="session")
def say(request: pytest.FixtureRequest) -> Say:
    """Tell whoever waits."""
    capture = request.config.pluginmanager.getplugin("capturemanager")
    terminal = request.config.pluginmanager.getplugin("terminalreporter")

    def write(words: str) -> None:
        with capture.global_and_fixture_disabled():
            terminal.write_line(f"{time.strftime('%H:%M:%S')} kernels: {words}")

    return write


@pytest.fixture(scope="session")
def debians(say: Say) -> Path:
    """The kernel of this host's release, downloaded or from the cache."""
    cache = Cache(CACHE, say)
    with cache.locked():
        return debian_kernel(cache)


@pytest.mark.parametrize("named", ["", *os.environ.get("KERNELS", "").split()])
def test_the_program_loads_and_drops_what_is_too_much(
    named: str, debians: Path, tmp_path: Path, say: Say
) -> None:
    files = FILES | {"shield.bpf.o": OBJECT.read_bytes()}
    said = boot(Path(named) if named else debians, STEPS, files, tmp_path)
    say("; ".join(said))
    expected = [f"{name}: {verdict}" for name, verdict in VERDICTS]
    console = (tmp_path / "console.log").read_text()
    assert said[1:] == [*expected, "done"], console[-8000:]
