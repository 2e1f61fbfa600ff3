"""The file that says at which host each MAC address is: its settings, and when it is written."""

from pathlib import Path

import pytest
from xco_statistics_rig import CORE, coordinator_names, write_statistics

from xco.coordinator.config import CoordinatorConfig, checked, plain
from xco.coordinator.locations_file import LocationsFile, problem_of
from xco.coordinator.status import status
from xco.errors import ConfigError

VM, OTHER = 0x525400000002, 0x525400000003
COLUMNS = ["ethernet", "host"]
NOWHERE = 0xFFFF
HOSTS = "host 10.0.0.2\nhost 10.0.0.3\n"


def topology(folder: Path, *addresses: str) -> Path:
    hosts = "\n".join(
        f'[host.h{number}]\naddresses = ["{address}"]\n'
        f'[[link]]\nbetween = ["h{number}", "s"]\ncapacity = "1Gbps"'
        for number, address in enumerate(addresses)
    )
    (folder / "topology.toml").write_text(f"[switch.s]\n{hosts}\n")
    return folder / "topology.toml"


def settings(folder: Path, *addresses: str) -> dict[str, object]:
    return {
        "host": "h0",
        "interface": "eth0",
        "topology": str(topology(folder, *(addresses or ("10.0.0.1", "10.0.0.2", "10.0.0.3")))),
        "key_file": str(folder / "key"),
        "controllers": ["10.0.0.7:7400"],
        "runtime_dir": str(folder),
        "locations": str(folder / "locations"),
    }


@pytest.fixture
def config(tmp_path: Path) -> CoordinatorConfig:
    return checked(settings(tmp_path))


@pytest.fixture
def kept(config: CoordinatorConfig) -> LocationsFile:
    """Its thread does not run: tests look for it."""
    return LocationsFile(config)


def publish(config: CoordinatorConfig, places: dict[int, int], *, complete: bool = True) -> None:
    rows = [dict(zip(COLUMNS, one, strict=True)) for one in places.items()]
    names = (["complete"], COLUMNS)
    write_statistics(config.places_file, names, {"complete": int(complete)}, rows)


def written(config: CoordinatorConfig) -> str:
    return Path(config.table.locations or "").read_text()


def test_fields_and_columns_are_those_of_the_loop() -> None:
    text = (CORE / "coordinator" / "located.c").read_text()
    assert 'FIELDS[] = {"complete"}' in text
    assert 'COLUMNS[] = {"ethernet", "host"}' in text


def test_the_loop_is_told_to_publish_only_if_someone_reads_it(tmp_path: Path) -> None:
    table = settings(tmp_path)
    assert f"places_file {tmp_path}/coordinator-eth0.places\n" in plain(checked(table))
    assert f"locations_file {table['locations']}\n" in plain(checked(table)), "to recall it"
    without = plain(checked(table | {"locations": None}))
    assert "places_file" not in without
    assert "locations_file" not in without
    assert "switch" not in plain(checked(table))
    assert "switch /run/z.sock\n" in plain(checked(table | {"switch": "/run/z.sock"}))


def test_the_first_file_has_the_hosts_until_all_stations_are_known(
    config: CoordinatorConfig, kept: LocationsFile
) -> None:
    kept.look()
    assert written(config) == HOSTS
    publish(config, {VM: 1}, complete=False)
    kept.look()
    assert written(config) == HOSTS
    publish(config, {VM: 1, OTHER: 2})
    kept.look()
    assert written(config).splitlines()[2:] == [
        "station 52:54:00:00:00:02 10.0.0.2",
        "station 52:54:00:00:00:03 10.0.0.3",
    ]


def test_a_file_of_an_earlier_run_stays_until_all_stations_are_known(
    config: CoordinatorConfig,
) -> None:
    publish(config, {VM: 2})
    Path(config.table.locations or "").write_text("before\n")
    kept = LocationsFile(config)  # what the earlier loop published no longer counts
    kept.look()
    assert written(config) == "before\n"
    publish(config, {VM: 1})
    kept.look()
    assert "station 52:54:00:00:00:02 10.0.0.2\n" in written(config)


def test_a_row_that_an_address_has_left_hides_no_other(
    config: CoordinatorConfig, kept: LocationsFile
) -> None:
    rows = [{"ethernet": VM, "host": 1}, {"ethernet": VM, "host": NOWHERE}, {"ethernet": 0}]
    write_statistics(config.places_file, (["complete"], COLUMNS), {"complete": 1}, rows)
    kept.look()
    assert written(config) == f"{HOSTS}station 52:54:00:00:00:02 10.0.0.2\n"


def test_the_file_is_replaced_only_for_news_or_when_it_is_gone(
    config: CoordinatorConfig, kept: LocationsFile
) -> None:
    file = Path(config.table.locations or "")
    publish(config, {VM: 1})
    kept.look()
    first = file.stat().st_ino
    kept.look()
    assert file.stat().st_ino == first
    file.unlink()
    kept.look()
    assert "station" in written(config)


def test_the_thread_writes_and_leaves_the_file(config: CoordinatorConfig) -> None:
    with LocationsFile(config):
        pass
    assert written(config) == HOSTS


def test_nothing_is_written_without_the_key(tmp_path: Path) -> None:
    config = checked(settings(tmp_path) | {"locations": None})
    before = set(tmp_path.iterdir())
    with LocationsFile(config):
        pass
    assert set(tmp_path.iterdir()) == before
    assert problem_of(config) == ""


def test_a_failure_is_shown_once_and_until_it_is_over(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "later"
    config = checked(settings(tmp_path) | {"locations": str(folder / "locations")})
    write_statistics(config.statistics, coordinator_names(), {}, fresh_s=60)
    kept = LocationsFile(config)
    kept.look()
    kept.look()
    assert status(config).problem == f"locations: {folder}/locations: No such file or directory"
    folder.mkdir()
    kept.look()
    assert status(config).problem == ""
    said = capfd.readouterr()
    assert (said.out + said.err).count("locations are not written") == 1


def test_an_error_that_is_not_expected_ends_nothing(
    config: CoordinatorConfig, kept: LocationsFile
) -> None:
    rows = [{"mac": VM}]
    write_statistics(config.places_file, (["complete"], ["mac"]), {"complete": 1}, rows)
    kept.look()
    assert "unexpected error" in problem_of(config)
    publish(config, {VM: 1})
    kept.look()
    assert problem_of(config) == ""


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"locations": "run/locations"}, "a path from / on"),
        ({"locations": "/run/a b"}, "a path from / on"),
        ({"classifier": "u32"}, 'needs a BPF program, and coordinator.classifier is "u32"'),
        (
            {"controllers": [], "fallback": "hygenicc", "marks": "hide"},
            "a controller distributes locations",
        ),
        ({"locations": None, "switch": "zovn.sock"}, "a path from / on"),
        ({"locations": None, "switch": "/run/z", "classifier": "u32"}, "needs a BPF program"),
    ],
)
def test_settings_that_cannot_work_are_refused(
    tmp_path: Path, change: dict[str, object], problem: str
) -> None:
    with pytest.raises(ConfigError, match=r"coordinator\.(locations|switch)") as refused:
        checked(settings(tmp_path) | change)
    assert problem in str(refused.value)


def test_hosts_that_a_wire_cannot_reach_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="h1 begins with no IPv4 address"):
        checked(settings(tmp_path, "10.0.0.1", "fd00::2", "10.0.0.3"))
    many = [f"10.0.0.{number}" for number in range(1, 67)]
    with pytest.raises(ConfigError, match="zovn sends to 64 other hosts"):
        checked(settings(tmp_path, *many))
    assert checked(settings(tmp_path, *many[:65])).table.locations
