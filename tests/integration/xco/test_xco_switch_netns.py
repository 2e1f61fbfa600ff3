"""Stations of zovn's switch are behind its host: a real switch, guest and coordinators."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from places_rig import site
from support.waiting import eventually
from zovn_switch_rig import Guest, RunningSwitch, build_guest, running_switch

pytestmark = [pytest.mark.root, pytest.mark.timeout(180)]
GUEST = "station 02:00:00:00:00:01 10.78.0.1"


@pytest.fixture
def switch() -> Iterator[RunningSwitch]:
    build_guest()
    with running_switch(names="ab") as made:
        yield made


def test_a_guest_of_a_switch_is_known_to_other_hosts_while_it_is_there(
    switch: RunningSwitch, tmp_path: Path
) -> None:
    with site(tmp_path, "xcosw", h1=str(switch.config.control)) as hosts:
        with Guest(switch, "a=1:2:10", "b=2:1:0") as guest:
            assert guest.ready()
            guest.go()
            eventually(lambda: GUEST in hosts.locations("h3"))
            assert not any("02:00:00" in line for line in hosts.locations("h1"))
        eventually(lambda: GUEST not in hosts.locations("h3"))


def test_a_switch_that_is_away_changes_nothing_and_is_said_once(
    switch: RunningSwitch, tmp_path: Path
) -> None:
    with (
        site(tmp_path, "xcosw", h1=str(switch.config.control)) as hosts,
        Guest(switch, "a=1:2:10", "b=2:1:0") as guest,
    ):
        assert guest.ready()
        guest.go()
        eventually(lambda: GUEST in hosts.locations("h3"))
        switch.end()
        eventually(lambda: "is not known: " in (tmp_path / "log").read_text())
        assert GUEST in hosts.locations("h3")
        switch.start()
        eventually(lambda: "its stations are known again" in (tmp_path / "log").read_text())
        assert (tmp_path / "log").read_text().count("is not known: ") == 1
