"""policer fit and what-if, against the service."""

from typing import TYPE_CHECKING

import pytest

from policer.contracts.contract import Contract

if TYPE_CHECKING:
    from policer_shell_rig import Shell
    from rest_rig import Rig

pytest_plugins = ["policer_shell_rig"]


def test_hosts_with_room_are_listed_the_fullest_first(shell: "Shell") -> None:
    heading, *rows = shell("fit", "20kpps").splitlines()
    assert heading.split() == ["host", "capacity", "promised", "free", "free", "then"]
    assert [row.split()[0] for row in rows] == ["silver", "gold"]
    found = shell.json("fit", "20kpps", "--cost", "2")
    assert found["takes_pps"] == 40e3
    assert found["hosts"] == [
        {
            "host": "gold",
            "capacity_pps": 100e3,
            "promised_pps": 20e3,
            "free_pps": 80e3,
            "free_then_pps": 40e3,
        }
    ]


def test_without_room_it_fails_and_says_so(shell: "Shell") -> None:
    assert "no host has room for 90 kp/s" in shell("fit", "90kpps", code=1)
    assert "RATE" in shell("fit", "much", code=2)


def test_a_host_that_is_gone_is_offered_to_nobody(rig: "Rig", shell: "Shell") -> None:
    rig.wait(60.0)
    assert "no host has room" in shell("fit", "1kpps", code=1)
    assert "no host would be left" in shell("what-if", "--lose", "gold", code=2)


def test_routers_of_a_lost_host_have_a_place_and_are_not_moved(rig: "Rig", shell: "Shell") -> None:
    assert shell("what-if", "--lose", "gold").splitlines()[1].split() == [
        *("gold", "r1", "20", "kp/s", "silver"),
    ]
    found = shell.json("what-if", "--lose", "gold")
    assert found["moves"] == [{"host": "gold", "vr": "r1", "pps": 20e3, "to": "silver"}]
    assert found["unplaced"] == 0
    assert [(one["host"], one["promised_pps"]) for one in found["hosts"]] == [("silver", 40e3)]
    assert rig.store.contracts.get("gold", "r1").version.number == 1


def test_a_guarantee_of_a_class_is_moved_too(shell: "Shell") -> None:
    shell("class", "set", "silver", "--guarantee", "7kpps")
    shell("contract", "set", "gold", "r7", "--class", "silver")
    moves = shell.json("what-if", "--lose", "gold")["moves"]
    assert {"host": "gold", "vr": "r7", "pps": 7e3}.items() <= moves[-1].items()


def test_routers_without_a_place_are_counted(rig: "Rig", shell: "Shell") -> None:
    rig.store.contracts.put("gold", "r2", Contract(40e3), None, "test")
    said = shell("what-if", "--lose", "gold", code=1)
    assert "1 of 2 routers find no place; they take 40 kp/s in all" in said


@pytest.mark.parametrize(
    ("lost", "code", "said"),
    [
        (("--lose", "glod"), 1, "no host glod"),
        ((), 2, "--lose"),
        (("--lose", "gold", "--lose", "silver"), 2, "no host would be left"),
        (("--lose", "a/b"), 2, "name"),
    ],
)
def test_slips_are_said(shell: "Shell", lost: tuple[str, ...], code: int, said: str) -> None:
    assert said in shell("what-if", *lost, code=code)
