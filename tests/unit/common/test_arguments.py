"""Arguments that are numbers: a wrong one is a usage error that names the option and the fix."""

import argparse

import pytest

from common.arguments import whole_number


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser()
    made.add_argument("--rounds", type=whole_number(1), default=3)
    made.add_argument("--ports", type=whole_number(2, 72), nargs="*")
    return made


def test_numbers_within_their_limits_are_read() -> None:
    assert parser().parse_args([]).rounds == 3
    assert parser().parse_args(["--rounds", "1"]).rounds == 1
    assert parser().parse_args(["--ports", "2", "72"]).ports == [2, 72]


@pytest.mark.parametrize("text", ["0", "-1", "1.5", "many", ""])
def test_what_is_no_such_number_is_a_usage_error(
    text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        parser().parse_args([f"--rounds={text}"])
    assert ended.value.code == 2
    said = f'error: argument --rounds: "{text}": write a whole number from 1 on'
    assert said in capsys.readouterr().err


def test_a_number_above_the_limit_is_one_too(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parser().parse_args(["--ports", "73"])
    assert '--ports: "73": write a whole number from 2 to 72' in capsys.readouterr().err
