"""A simulated host: routers share its CPU, a flood harms them, filters and caps end that."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest
from manager_rig import ManagerRig

from common.errors import ConfigError
from common.setpoint import Setpoint, Unit
from common.units import CapFraction, PacketsPerSecond, Seconds
from models import bundled_host
from xtc.config.plan import RouterPlan, plans
from xtc.measure.collector import Binding, Collector, Side
from xtc.measure.meter import rates
from xtc.sandbox.layout import CAPACITY_PPS, LONGEST_SOCKET, MODEL, MOST_HOSTS, places, usual
from xtc.sandbox.loads import Sent, Watched, read_loads, write_loads
from xtc.simulation.filters import SimulatedLimits, SimulatedShields
from xtc.simulation.shared_host import SharedHost
from xtc.spec import SimulatedSpec
from xtc.wire import Activate, Deactivate, Limit

LOADS = {"gold": 60e3, "silver": 20e3, "bronze": 30e3}
FLOOD = 300e3


class Loads(dict[str, float]):
    """What is sent to each router, which a test changes."""

    def __call__(self) -> "Loads":
        return self


def host(loads: Loads) -> SharedHost:
    return SharedHost(bundled_host(MODEL), loads)


def forwarded(simulated: SharedHost, seconds: int = 3) -> dict[str, float]:
    """Return what each router forwards in the last of some seconds, in packets/s."""
    for _ in range(seconds):
        simulated.advance(Seconds(1.0))
    return {name: router.state.throughput for name, router in simulated.routers.items()}


@pytest.mark.parametrize("number", range(1, MOST_HOSTS + 1))
def test_a_host_forwards_all_that_is_usually_sent_to_its_routers(number: int) -> None:
    assert forwarded(host(Loads(usual(number)))) == pytest.approx(usual(number))


@pytest.mark.parametrize(
    "parts", [p for p in product(range(11), repeat=3) if sum(p) == 10], ids=str
)
def test_the_capacity_that_is_told_holds_however_the_load_is_shared(
    parts: tuple[int, ...],
) -> None:
    loads = Loads(zip("abc", (part * CAPACITY_PPS / 10 for part in parts), strict=True))
    assert forwarded(host(loads)) == pytest.approx(loads)


def test_a_flood_to_one_router_takes_the_others_cpu() -> None:
    done = forwarded(host(Loads(LOADS | {"bronze": FLOOD})))
    assert done["gold"] < 0.6 * LOADS["gold"]
    assert sum(done.values()) < 0.6 * CAPACITY_PPS  # carrying what is dropped costs the host


def test_a_router_that_needs_little_has_it_beside_a_flood() -> None:
    done = forwarded(host(Loads(LOADS | {"bronze": FLOOD})))
    assert done["silver"] == pytest.approx(LOADS["silver"])


def test_a_cap_alone_does_not_save_the_host_the_work_and_a_shield_does() -> None:
    capped = host(Loads(LOADS | {"bronze": FLOOD}))
    capped.actuator("bronze").apply(CapFraction(0.09))
    assert forwarded(capped)["gold"] < LOADS["gold"]
    shielded = host(Loads(LOADS | {"bronze": FLOOD}))
    shielded.shields.limit("bronze", ["bronze.0"], Setpoint(30e3), Side.HOST)
    done = forwarded(shielded)
    assert done["gold"] == pytest.approx(LOADS["gold"])
    assert done["bronze"] == pytest.approx(30e3)


def test_a_cap_that_binds_is_told_and_a_lack_of_cpu_is_not_taken_for_it() -> None:
    simulated = host(Loads(LOADS | {"bronze": FLOOD}))
    actuator = simulated.actuator("bronze")
    actuator.apply(CapFraction(0.02))
    forwarded(simulated, 1)
    assert actuator.usage().throttled == 1
    actuator.apply(CapFraction(0.9))
    forwarded(simulated, 1)
    assert actuator.usage().throttled == 1


def test_what_a_shield_and_a_limit_drop_is_counted() -> None:
    simulated = host(Loads(bronze=FLOOD))
    simulated.shields.limit("bronze", ["bronze.0"], Setpoint(50e3, burst=1000.0), Side.HOST)
    simulated.limits.limit("bronze.0", PacketsPerSecond(20e3))
    forwarded(simulated, 1)
    assert simulated.shields.dropped("bronze") == pytest.approx(FLOOD - 51e3, rel=1e-3)
    assert simulated.limits.dropped(["bronze.0", "gold.0"]) == {"bronze.0": pytest.approx(30e3)}
    assert simulated.routers["bronze"].received == pytest.approx(21e3)


def test_a_shield_that_is_lifted_lets_all_by() -> None:
    shields = SimulatedShields()
    assert shields.limit("a", ["a.0"], Setpoint(1e6, Unit.BITS), Side.HOST) == {}
    bucket = shields.on("a.0")
    assert bucket is not None
    assert bucket.rate == pytest.approx(1e6 / 512)  # frames of 64 bytes
    shields.lift("a.0")
    assert shields.on("a.0") is None
    shields.forget("a")
    assert shields.dropped("a") is None
    assert shields.overruled(["a.0"], Side.HOST) == ""


def test_a_limit_that_is_lifted_lets_all_by() -> None:
    limits = SimulatedLimits()
    limits.limit("a.0", PacketsPerSecond(1.0))
    assert limits.on("a.0") is not None
    limits.lift("a.0")
    limits.lift("a.0")
    assert limits.on("a.0") is None
    assert limits.dropped(["a.0"]) == {}


# --- the real manager above it


class SandboxRig(ManagerRig):
    """A manager above a simulated host, as `xtc sandbox run` has them."""

    def __init__(self, directory: Path, loads: Loads) -> None:
        self.loads = loads
        (place, *_) = places(directory / "s", 1)
        super().__init__(directory, {})
        self.plans = {name: _shielded(one) for name, one in plans(place.config()).items()}
        self.plant = self.simulated = host(loads)
        self.limiter = self.simulated.limits
        self.shield = self.simulated.shields
        self.start()

    def start(self) -> None:
        self.open_manager(lambda spec, _: self._actuator(spec))
        self.collector = Collector({name: Binding((f"{name}.0",)) for name in self.plans})
        self.manager.start()

    def _actuator(self, spec: object) -> object:
        assert isinstance(spec, SimulatedSpec)
        return self.simulated.actuator(spec.plant)

    def tick(self, periods: int) -> None:
        """Let periods pass."""
        for _ in range(periods):
            self.clock.sleep(self.period)
            now = self.clock.now()
            before, self.before = self.before, self.simulated.read(now)
            found = None if before is None else rates(before, self.before)
            self.manager.tick({} if found is None else self.collector.aggregate(found), now)


def _shielded(plan: RouterPlan) -> RouterPlan:
    return replace(plan, shield=True)


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[SandboxRig]:
    rig = SandboxRig(tmp_path, Loads(LOADS))
    rig.tick(3)
    yield rig
    rig.journal.close()


def test_the_daemons_law_holds_a_flooded_router_and_gives_the_others_theirs(
    rig: SandboxRig,
) -> None:
    rig.loads["bronze"] = FLOOD
    rig.tick(3)
    assert rig.throughput("gold") < 0.6 * LOADS["gold"]
    rig.ask(Activate("bronze", 40e3))
    rig.tick(8)
    assert rig.holds("bronze", 40e3)
    assert rig.holds("gold", LOADS["gold"])
    report = rig.report("bronze")
    assert report.offered_pps == pytest.approx(FLOOD, rel=0.02)
    assert (report.shield_problem, report.shield_pps is None) == ("", False)


def test_a_limit_is_carried_out_and_what_it_drops_still_counts_as_offered(
    rig: SandboxRig,
) -> None:
    rig.loads["bronze"] = FLOOD
    rig.ask(Limit("bronze", 25e3))
    rig.tick(4)
    assert rig.throughput("bronze") == pytest.approx(25e3, rel=0.02)
    assert rig.report("bronze").offered_pps == pytest.approx(FLOOD, rel=0.02)
    rig.ask(Limit("bronze", None))
    rig.loads["bronze"] = LOADS["bronze"]
    rig.tick(3)
    assert rig.holds("bronze", LOADS["bronze"])


def test_a_router_that_is_released_is_as_before(rig: SandboxRig) -> None:
    rig.loads["bronze"] = FLOOD
    rig.ask(Activate("bronze", 40e3))
    rig.tick(5)
    rig.ask(Deactivate("bronze"))
    rig.loads["bronze"] = LOADS["bronze"]
    rig.tick(3)
    assert rig.simulated.routers["bronze"].cap is None
    assert rig.simulated.shields.on("bronze.0") is None
    assert rig.holds("bronze", LOADS["bronze"])


# --- loads and places


def test_a_load_is_taken_over_when_its_file_changes(tmp_path: Path) -> None:
    file = tmp_path / "loads.json"
    watched = Watched(file, {"gold": 1e3})
    assert watched() == {"gold": 1e3}
    write_loads(file, {"gold": Sent(1e3, 5e3), "other": Sent(1.0, 1.0)})
    assert watched() == {"gold": 5e3}
    assert read_loads(file)["gold"] == Sent(1e3, 5e3)


@pytest.mark.parametrize("content", [b"", b"{", b'{"gold": 3}', b"\xff", b'{"gold": {"a": 1}}'])
def test_a_file_that_holds_no_loads_changes_nothing(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "loads.json"
    watched = Watched(file, {"gold": 1e3})
    file.write_bytes(content)
    assert watched() == {"gold": 1e3}
    with pytest.raises(ConfigError, match=r"loads\.json"):
        read_loads(file)


def test_every_router_of_a_sandbox_has_a_name_of_its_own() -> None:
    names = [name for number in range(1, MOST_HOSTS + 1) for name in usual(number)]
    assert len(names) == len(set(names)) == 3 * MOST_HOSTS


def test_a_directory_that_is_too_long_for_sockets_is_refused(tmp_path: Path) -> None:
    room = LONGEST_SOCKET - len(str(tmp_path)) - len("//sim1/telemetry.sock")
    assert len(places(tmp_path / ("x" * room), 1)) == 1
    with pytest.raises(ConfigError, match=r"--directory: .* name a shorter one"):
        places(tmp_path / ("x" * (room + 1)), 1)


def test_hosts_are_called_simulated() -> None:
    assert [place.name for place in places(Path("/d"), 3)] == ["sim1", "sim2", "sim3"]
    assert places(Path("/d"), 1)[0].requests == "ipc:///d/sim1/manager.sock"
