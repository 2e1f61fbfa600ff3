"""What xco writes of any stations is what zovn's wires read, and no wire refuses it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from zovn_rig import build

from xco.coordinator.locations import MOST_HOSTS, render
from zovn.native.wire import Locations

HOSTS = {number: f"10.0.{number // 200}.{number % 200 + 1}" for number in range(MOST_HOSTS)}
STATIONS = st.dictionaries(st.integers(1, 2**48 - 1), st.integers(0, MOST_HOSTS + 9), max_size=60)


@pytest.fixture(autouse=True, scope="module")
def _built() -> None:
    build()


@given(STATIONS, st.integers(0, MOST_HOSTS))
def test_each_station_is_found_at_its_host(stations: dict[int, int], count: int) -> None:
    hosts = dict(list(HOSTS.items())[:count])
    found = Locations(render(hosts, stations))
    for station, host in stations.items():
        mac = station.to_bytes(6, "big")
        at = host if host in hosts and not mac[0] & 1 else None
        assert found.find(mac) == at


def test_a_full_map_is_read() -> None:
    text = render(HOSTS, {station: station % MOST_HOSTS for station in range(1, 70_000)})
    assert text.count("station") == 65_536
    assert Locations(text).find((65_536).to_bytes(6, "big")) == 0
