"""Suggestions: a misspelt word gets the known one that it is like, another word an advice."""

import pytest

from common.suggest import did_you_mean, nearest

KNOWN = ("setpoint", "interfaces", "actuator")


@pytest.mark.parametrize(
    ("word", "found"), [("setpiont", "setpoint"), ("interface", "interfaces"), ("zzz", None)]
)
def test_the_nearest_word_is_one_that_is_like_it(word: str, found: str | None) -> None:
    assert nearest(word, KNOWN) == found


def test_nothing_is_near_where_nothing_is_known() -> None:
    assert nearest("setpoint", ()) is None


def test_the_fix_names_the_nearest_or_is_the_advice() -> None:
    assert did_you_mean("setpiont", KNOWN, "remove it") == "did you mean setpoint?"
    assert did_you_mean("zzz", iter(KNOWN), "remove it") == "remove it"
