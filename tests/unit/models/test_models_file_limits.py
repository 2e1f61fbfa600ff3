"""Both sides of every bound of a model file, in the file's own units."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from models import HostModel, ModelFileError, dump_host, load_host, parse_host
from models.explain import keys, shown
from models.hostfile import MAX_BYTES, MAX_LINE

CURVE = "[curve]\npoints = [[5, 16000], [50, 98000]]\n"
EQ1 = {
    "a": "0.0915",
    "b": "63.0",
    "mean_throughput_kpps": "1000",
    "mean_log_cap": "1.39",
    "cap_threshold_percent": "60",
    "offered_kpps": "100",
}
PI = {"kp": "1e-3", "ki": "1e-2"}


def parse(body: str) -> HostModel:
    return parse_host(f"schema = 1\n{body}".encode(), "edge.toml")


def refused(body: str) -> ModelFileError:
    with pytest.raises(ModelFileError) as caught:
        parse(body)
    return caught.value


def in_eq1(key: str, value: str) -> str:
    return "[log_model]\n" + "".join(f"{k} = {v}\n" for k, v in {**EQ1, key: value}.items())


def in_pi(key: str, value: str) -> str:
    table = "".join(f"{k} = {v}\n" for k, v in {**PI, key: value}.items())
    return f"{CURVE}[gains.pi]\n{table}"


def in_loop(key: str, value: str) -> str:
    wide = {} if key == "cap_ceiling_percent" else {"cap_ceiling_percent": "102400"}
    table = "".join(f"{k} = {v}\n" for k, v in {**wide, key: value}.items())
    return f"{CURVE}[loop]\n{table}"


def in_curve(key: str, value: str) -> str:
    return f"{CURVE}{key} = {value}\n"


def in_points(index: str, value: str) -> str:
    point = f"{value}, 9e5" if index == "[1][0]" else f"60, {value}"
    return f"[curve]\npoints = [[5, 0], [{point}]]\n"


BOUNDS = [
    (in_eq1, "log_model.a", ("0", "0.999"), ("-1e-9", "1")),
    (in_eq1, "log_model.b", ("1e-6", "1e6"), ("0", "1.001e6")),
    (in_eq1, "log_model.mean_throughput_kpps", ("1e6",), ("-1e-9", "1.001e6")),
    (in_eq1, "log_model.mean_log_cap", ("-5", "6"), ("-5.001", "6.001")),
    (in_eq1, "log_model.cap_threshold_percent", ("1e-3", "102400"), ("0", "102401")),
    (in_eq1, "log_model.offered_kpps", ("1e-3", "1e6"), ("0", "1.001e6")),
    (in_eq1, "log_model.r_squared", ("0", "1"), ("-1e-9", "1.001")),
    (in_pi, "gains.pi.kp", ("-1000", "1000"), ("-1001", "1001")),
    (in_pi, "gains.pi.ki", ("1e-9", "1000"), ("0", "1001")),
    (in_pi, "gains.pi.period_s", ("0.001", "3600"), ("0.0009", "3601")),
    (in_pi, "gains.pi.dead_zone", ("0", "0.999"), ("-1e-9", "1")),
    (in_pi, "gains.pi.min_cap_percent", ("1e-3", "102400"), ("0", "102401")),
    (in_loop, "loop.lag", ("0", "0.999"), ("-1e-9", "1")),
    (in_loop, "loop.delay_samples", ("0", "5"), ("-1", "6")),
    (in_loop, "loop.cap_floor_percent", ("1e-3", "102400"), ("0", "102401")),
    (in_loop, "loop.cap_ceiling_percent", ("1", "102400"), ("0", "102401")),
    (in_loop, "loop.cap_step_percent", ("0", "102400"), ("-1e-9", "102401")),
    (in_curve, "curve.offered_pps", ("9e4", "1e9"), ("0", "1.001e9")),
    (in_points, "curve.points[1][0]", ("5.001", "102400"), ("0", "102401")),
    (in_points, "curve.points[1][1]", ("1e-3", "1e9"), ("-1e-9", "1.001e9")),
]


@pytest.mark.parametrize(("write", "key", "good", "bad"), BOUNDS)
def test_a_value_is_taken_up_to_its_bounds_and_named_beyond_them(
    write: Callable[[str, str], str], key: str, good: tuple[str, ...], bad: tuple[str, ...]
) -> None:
    last = key.rpartition(".")[2].removeprefix("points")
    meaning = keys()[re.sub(r"\[\d+\]", "", key)]
    for value in good:
        assert isinstance(parse(write(last, value)), HostModel), value
    for value in bad:
        error = refused(write(last, value))
        assert error.field == key, value
        assert error.fix == f"give {meaning}"


def test_values_in_percent_and_kilopackets_become_fractions_and_packets() -> None:
    table = {**EQ1, "offered_kpps": "120", "r_squared": "0.5"}
    fitted = parse("[log_model]\n" + "".join(f"{k} = {v}\n" for k, v in table.items()))
    model = fitted.log_model
    assert model is not None
    assert (model.cap_threshold, model.offered, model.r_squared) == (0.6, 120e3, 0.5)
    assert (model.a, model.b, model.mean_throughput, model.mean_log_cap) == (
        0.0915,
        63.0,
        1000.0,
        1.39,
    )
    assert fitted.measured_curve is None
    assert fitted.lag == 0.0915


def test_a_curve_and_eq_1_in_one_file_are_both_kept() -> None:
    both = parse(CURVE + in_eq1("a", "0.5"))
    assert both.measured_curve is both.curve
    assert both.log_model is not None
    assert both.lag == 0.5
    assert parse(CURVE + in_eq1("a", "0.5") + "[loop]\nlag = 0\n").lag == 0


def test_limits_of_caps_follow_the_measured_points_only_outside_of_1_to_100_percent() -> None:
    inside = parse("[curve]\npoints = [[2, 700], [90, 1e6]]")
    assert (inside.cap_floor, inside.cap_ceiling) == (0.01, 1.0)
    outside = parse("[curve]\npoints = [[0.5, 700], [10, 800], [130, 1e6]]")
    assert (outside.cap_floor, outside.cap_ceiling) == (0.005, 1.3)
    fitted = parse(in_eq1("a", "0"))
    assert (fitted.cap_floor, fitted.cap_ceiling) == (0.01, 1.0)


@pytest.mark.parametrize("key", ["description", "hypervisor", "cpu", "kernel"])
def test_texts_have_at_most_a_thousand_characters(key: str) -> None:
    text = "x" * 1000
    assert getattr(parse(f'{CURVE}[host]\n{key} = "{text}"'), key) == text
    assert refused(f'{CURVE}[host]\n{key} = "{text}x"').field == f"host.{key}"


def test_a_name_has_at_most_a_hundred_characters() -> None:
    assert parse(f'{CURVE}[host]\nname = "{"x" * 100}"').name == "x" * 100
    assert refused(f'{CURVE}[host]\nname = "{"x" * 101}"').field == "host.name"


def test_a_curve_has_at_most_a_thousand_points() -> None:
    points = ",\n".join(f"[{number}, {number}]" for number in range(1, 1002))
    assert refused(f"[curve]\npoints = [{points}]").field == "curve.points"
    fewer = points.rpartition(",\n")[0]
    assert len(parse(f"[curve]\npoints = [{fewer}]").curve.points) == 1000


def test_a_line_has_at_most_2048_characters() -> None:
    assert MAX_LINE == 2048
    comment = "#" + "x" * 2047
    assert parse(f"{comment}\n{CURVE}").curve.top == 98000
    assert refused(f"{comment}x\n{CURVE}").field == "line 2"


def test_a_file_has_at_most_64_kibibytes(tmp_path: Path) -> None:
    assert MAX_BYTES == 65536
    body = f"schema = 1\n{CURVE}"
    full = body + "#\n" * ((65536 - len(body)) // 2) + "\n" * (len(body) % 2)
    assert len(full) == 65536
    path = tmp_path / "full.toml"
    path.write_text(full)
    assert load_host(path).curve.top == 98000
    path.write_text(full + "\n")
    with pytest.raises(ModelFileError, match="file: too large"):
        load_host(path)


@pytest.mark.parametrize(
    ("body", "field", "fix"),
    [
        (f"{CURVE}[loop]\nlagg = 0", "loop.lagg", "did you mean lag?"),
        (f"{CURVE}[loop]\nki = 0", "loop.ki", "it belongs in [gains.pi]"),
        (f"{CURVE}[curve.schema]", "curve.schema", "it belongs at the top, outside any table"),
        (
            f"{CURVE}[host]\nzzzz = 0",
            "host.zzzz",
            "known here: name, description, hypervisor, cpu, kernel",
        ),
        (f'{CURVE}[loop]\n"{"x" * 65}" = 0', "loop.'xxxxxxxxxxxx...xxxxxxxxxxxxx'", "known here"),
        (f"{CURVE}[loop]\n{'x' * 64} = 0", f"loop.{'x' * 64}", "known here"),
    ],
)
def test_an_unknown_key_is_named_with_the_nearest_known_one(
    body: str, field: str, fix: str
) -> None:
    error = refused(body)
    assert error.field == field
    assert fix in error.fix


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (2**64 - 1, "18446744073709551615"),
        (2**64, "an enormous number"),
        ([1, 2, 3], "a list of 3"),
        ({"a": 1}, "a table"),
        ("text", "'text'"),
        (1.5, "1.5"),
    ],
)
def test_a_value_is_shown_in_few_words(value: object, words: str) -> None:
    assert shown(value) == words


def test_a_written_file_holds_the_digits_that_were_measured() -> None:
    gains = "[gains.pi]\nkp = 1e-3\nki = 1e-2\nmin_cap_percent = 7\n"
    text = dump_host(parse(f"{CURVE}offered_pps = 1e5\n{gains}"))
    assert "min_cap_percent = 7.0\n" in text
    assert "  [5.0, 16000.0],\n" in text
    assert "offered_pps = 100000.0\n" in text
    assert "delay_samples = 0\n" in text
    assert "[gains.dead_beat]" not in text
    assert "[log_model]" not in text


def test_a_delete_character_in_a_text_survives() -> None:
    kept = parse(f'{CURVE}[host]\ncpu = "a\\u007fb"')
    assert kept.cpu == "a\x7fb"
    assert parse_host(dump_host(kept).encode(), "copy.toml").cpu == "a\x7fb"
