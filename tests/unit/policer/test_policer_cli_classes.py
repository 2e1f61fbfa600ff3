"""policer class, and contracts of classes, of hours, and of routers that they follow."""

from typing import TYPE_CHECKING

import pytest

from policer.cli.shared.terms import instant, schedule_words, window
from policer.errors import SettingsError

if TYPE_CHECKING:
    from policer_shell_rig import Shell

pytest_plugins = ["policer_shell_rig"]

UUID = "4f1c0b8e-3a52-4d0c-9d53-0b3c0f7e2a11"


def test_the_life_of_a_class(shell: "Shell") -> None:
    shell("class", "set", "silver", "--guarantee", "5kpps", "--weight", "2")
    shell("contract", "set", "gold", "r2", "--class", "silver")
    assert "5 kp/s" in shell("contract", "get", "gold", "r2")
    shell("class", "set", "silver", "--guarantee", "6kpps")
    assert shell.json("class", "get", "silver")["terms"]["weight"] == 2.0
    assert shell.json("contract", "get", "gold", "r2")["terms"]["guarantee_pps"] == 6e3
    assert "contracts name it: gold/r2" in shell("class", "remove", "silver", code=1)
    shell("contract", "set", "gold", "r2", "--class", "none", "--guarantee", "1kpps")
    assert shell.json("class", "remove", "silver") == {"removed": "silver"}
    assert shell.json("class", "list") == []


def test_a_class_that_a_host_cannot_keep_is_refused(shell: "Shell") -> None:
    shell("class", "set", "silver", "--guarantee", "5kpps")
    shell("contract", "set", "gold", "r2", "--class", "silver")
    said = shell("class", "set", "silver", "--guarantee", "500kpps", code=1)
    assert "on gold" in said
    assert shell.json("class", "get", "silver")["terms"]["guarantee_pps"] == 5e3


def test_a_contract_that_gets_a_class_drops_its_own_terms(shell: "Shell") -> None:
    shell("class", "set", "silver", "--guarantee", "5kpps")
    shell("contract", "set", "gold", "r2", "--guarantee", "1kpps", "--weight", "3")
    shell("contract", "set", "gold", "r2", "--class", "silver")
    held = shell.json("contract", "get", "gold", "r2")["terms"]
    assert (held["guarantee_pps"], held["weight"]) == (5e3, 1.0)
    said = shell("contract", "set", "gold", "r2", "--weight", "2", code=1)
    assert "leave the class out" in said


def test_the_life_of_a_contract_that_follows_its_router(shell: "Shell") -> None:
    shell("contract", "set", UUID, "--guarantee", "1kpps")
    assert f"no host reports a router {UUID}" in shell.err
    assert shell.json("contract", "get", UUID)["host"] is None
    assert "(not seen)" in shell("contract", "list")
    assert "was not seen on any host" in shell("contract", "check", UUID, "--guarantee", "2kpps")
    assert len(shell.json("contract", "history", UUID)) == 1
    assert shell.json("contract", "remove", UUID) == {"removed": [None, UUID]}
    assert "one such as" in shell("contract", "set", "a", "--from", "tomorrow", code=2)
    assert "3 names" in shell("contract", "get", "a", "b", "c", code=2)


def test_a_contract_says_when_it_holds(shell: "Shell") -> None:
    shell("class", "set", "night", "--guarantee", "1kpps")
    shell(
        *("contract", "set", "gold", "r2", "--guarantee", "9kpps", "--zone", "Europe/Berlin"),
        *("--hours", "mon-fri 08:00-18:00", "--hours", "18:00-08:00=night"),
        *("--until", "2031-01-01T00:00Z"),
    )
    made = shell.json("contract", "get", "gold", "r2")["contract"]
    assert made["hours"][0]["days"] == ["mon", "tue", "wed", "thu", "fri"]
    assert made["hours"][1]["class"] == "night"
    assert schedule_words(made).endswith(", mon-fri 08:00-18:00, 18:00-08:00=night, Europe/Berlin")
    shell("contract", "set", "gold", "r2", "--hours", "none", "--until", "none")
    assert shell.json("contract", "get", "gold", "r2")["contract"]["hours"] == []
    assert "always" in shell("contract", "get", "gold", "r2")
    assert "no time zone" in shell("contract", "set", "gold", "r2", "--zone", "Mars", code=1)
    assert "no class" in shell("contract", "set", "gold", "r2", "--class", "gilt", code=1)


@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("sat,sun 00:00-00:00", ["sat", "sun"]),
        ("fri-mon 01:00-02:00", ["fri", "sat", "sun", "mon"]),
        ("mon-sun 01:00-02:00", ["mon", "tue", "wed", "thu", "fri", "sat", "sun"]),
    ],
)
def test_days_of_a_window(text: str, days: list[str]) -> None:
    assert window(text)["days"] == days


def test_a_window_is_shown_as_it_is_written() -> None:
    made = {"days": ["sat"], "start": "01:00", "end": "02:00", "class": "night"}
    shown = {"valid_from": None, "valid_until": None, "hours": [made], "zone": "UTC"}
    assert schedule_words(shown) == "sat 01:00-02:00=night, UTC"
    assert window("sat 01:00-02:00=night") == made


@pytest.mark.parametrize("text", ["8-18", "mon 8:00-18:00", "monday 08:00-18:00", "mon-", ""])
def test_what_is_no_window_is_refused(text: str) -> None:
    with pytest.raises(SettingsError, match="--hours"):
        window(text)


@pytest.mark.parametrize("text", ["2027-01-01", "2027-01-01T00:00", "soon", ""])
def test_what_is_no_instant_is_refused(text: str) -> None:
    with pytest.raises(SettingsError, match="zone"):
        instant("--from", text)
