"""What the host drops before any router: parsed, as rates, by card and by backlog, in words."""

from pathlib import Path

import pytest
from structlog.testing import capture_logs

from common.units import PacketsPerSecond, Seconds
from xtc.cli.status import drops_words
from xtc.errors import MeterError
from xtc.measure.host_drops import Backlogs, HostWatch, backlog_rate, is_card, parse
from xtc.measure.meter import Fault, InterfaceRate
from xtc.wire import HostDrops

ROW = b"a8943fb4 00000f52 0000002a" + b" 00000000" * 9 + b" 00000003 00000000 00000000\n"
OLD = b"a8943fb4 00000f52 0000002a" + b" 00000000" * 8 + b"\n"
NOT_ASKED = frozenset[str]()


def row(cpu: int, dropped: int) -> bytes:
    return f"00000001 {dropped:08x}{' 00000000' * 10} {cpu:08x} 00000000 00000000\n".encode()


def receiving(dropped: float) -> InterfaceRate:
    return InterfaceRate(*map(PacketsPerSecond, (9e3, dropped, 9e3, 0.0)), None, None)


def backlogs(at: float, **dropped: int) -> Backlogs:
    return Backlogs(Seconds(at), {int(cpu.removeprefix("cpu")): n for cpu, n in dropped.items()})


@pytest.fixture
def softnet(tmp_path: Path) -> Path:
    path = tmp_path / "softnet_stat"
    path.write_bytes(row(0, 10))
    return path


def test_the_columns_are_those_of_the_kernel() -> None:
    assert parse(ROW) == {3: 0xF52}


def test_an_older_kernel_does_not_tell_the_cpu() -> None:
    assert parse(OLD + OLD) == {0: 0xF52, 1: 0xF52}


@pytest.mark.parametrize(
    ("raw", "line"),
    [
        (b"", 0),
        (ROW[:-1], 0),
        (ROW + b"\n", 2),
        (ROW + ROW, 2),
        (ROW.replace(b"0f52", b"0x52"), 1),
        (ROW.replace(b"0f52", b"0F52"), 1),
        (ROW.replace(b" 00000f52", b" f52"), 1),
        (ROW.replace(b" ", b"  "), 1),
        (b"00000000 00000000\n", 1),
        (b"\xff" + ROW[1:], 1),
        (ROW * 40_000, 0),
    ],
)
def test_a_text_that_is_not_understood_is_rejected_whole(raw: bytes, line: int) -> None:
    with pytest.raises(MeterError, match="/proc/net/softnet_stat") as caught:
        parse(raw)
    assert caught.value.line == line


def test_backlogs_are_summed_per_second_of_real_time() -> None:
    before, after = backlogs(1.0, cpu0=10, cpu1=5), backlogs(3.0, cpu0=110, cpu1=5)
    assert backlog_rate(before, after) == 50.0


def test_a_cpu_that_comes_or_goes_is_left_out() -> None:
    before, after = backlogs(1.0, cpu0=10, cpu1=5), backlogs(2.0, cpu1=7, cpu2=900)
    assert backlog_rate(before, after) == 2.0


def test_more_than_a_host_can_be_sent_is_no_measurement() -> None:
    assert backlog_rate(backlogs(1.0, cpu0=10), backlogs(2.0, cpu0=9)) is None


@pytest.mark.parametrize("at", [1.0, 0.5])
def test_without_time_between_nothing_is_known(at: float) -> None:
    assert backlog_rate(backlogs(1.0, cpu0=0), backlogs(at, cpu0=1)) is None


def test_a_card_has_a_device_that_is_no_guest(tmp_path: Path) -> None:
    for name, bus in (("eth0", "pci"), ("vif1.0", "xen-backend")):
        (tmp_path / "bus" / bus).mkdir(parents=True)
        device = tmp_path / name / "device"
        device.mkdir(parents=True)
        (device / "subsystem").symlink_to(tmp_path / "bus" / bus)
    (tmp_path / "br0").mkdir()
    names = ("eth0", "vif1.0", "br0", "gone")
    assert [name for name in names if is_card(name, tmp_path)] == ["eth0"]


def test_this_machine_s_loopback_is_no_card() -> None:
    assert not is_card("lo")


def test_only_cards_without_a_router_are_watched(softnet: Path) -> None:
    watch = HostWatch(softnet, card=lambda name: name.startswith("eth"))
    rates = {
        "eth0": receiving(7.0),
        "eth1": receiving(8.0),
        "eth2": Fault.RESET,
        "eth3": receiving(0.0),
        "br0": receiving(9.0),
    }
    assert watch.look(Seconds(1.0), rates, {"eth1"}).cards == {"eth0": 7.0, "eth3": 0.0}


def test_an_interface_is_looked_up_once_while_it_is_there(softnet: Path) -> None:
    asked: list[str] = []

    def card(name: str) -> bool:
        asked.append(name)
        return False

    watch = HostWatch(softnet, card)
    for at, names in enumerate([("a",), ("a",), ("a", "b"), ("b",), ("a", "b")]):
        watch.look(Seconds(at), dict.fromkeys(names, receiving(0.0)), NOT_ASKED)
    assert asked == ["a", "b", "a"]


def test_backlogs_are_known_from_the_second_look_on(softnet: Path) -> None:
    watch = HostWatch(softnet)
    assert watch.look(Seconds(1.0), {}, NOT_ASKED).backlog is None
    softnet.write_bytes(row(0, 40))
    assert watch.look(Seconds(3.0), {}, NOT_ASKED).backlog == 15.0


def test_what_cannot_be_read_is_not_known_and_said_once(softnet: Path) -> None:
    watch = HostWatch(softnet)
    watch.look(Seconds(1.0), {}, NOT_ASKED)
    with capture_logs() as logs:
        softnet.write_bytes(b"nonsense\n")
        assert watch.look(Seconds(2.0), {"eth0": receiving(0.0)}, NOT_ASKED).backlog is None
        softnet.unlink()
        assert watch.look(Seconds(3.0), {}, NOT_ASKED).backlog is None
        softnet.write_bytes(row(0, 100))
        assert watch.look(Seconds(4.0), {}, NOT_ASKED).backlog is None
        softnet.write_bytes(row(0, 101))
        assert watch.look(Seconds(5.0), {}, NOT_ASKED).backlog == 1.0
    assert [entry["event"] for entry in logs] == ["backlogs_unknown"]


def test_this_machine_s_backlogs_are_understood() -> None:
    watch = HostWatch()
    watch.look(Seconds(1.0), {}, NOT_ASKED)
    assert watch.look(Seconds(2.0), {}, NOT_ASKED).backlog is not None


@pytest.mark.parametrize(
    ("drops", "words"),
    [
        (None, ""),
        (HostDrops({}, None), ""),
        (HostDrops({"eth0": 0.0}, 0.0), ""),
        (HostDrops({"eth[0]": 1200.0, "eth1": 0.0}, None), "1.2 kp/s at eth[0]"),
        (HostDrops({}, 30.0), "30 p/s in the backlogs of its CPUs"),
        (
            HostDrops({"b": 2.0, "a": 1.0}, 3.0),
            "1 p/s at a, 2 p/s at b, 3 p/s in the backlogs of its CPUs",
        ),
    ],
)
def test_people_are_told_only_when_something_is_dropped(
    drops: HostDrops | None, words: str
) -> None:
    prefix = "the host drops before any router: "
    assert drops_words(drops) == (prefix + words if words else "")
