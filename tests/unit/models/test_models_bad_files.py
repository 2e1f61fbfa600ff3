"""Every way to get a model file wrong, and the field that its error names."""

import os
from pathlib import Path

import pytest

from models import ModelFileError, load_host, parse_host

CURVE = "[curve]\npoints = [[5, 16000], [50, 98000]]\n"
LOG_MODEL = {
    "a": "0.0915",
    "b": "63.0",
    "mean_throughput_kpps": "78.14",
    "mean_log_cap": "1.39",
    "cap_threshold_percent": "60",
    "offered_kpps": "100",
}


def points(text: str) -> str:
    return f"schema = 1\n[curve]\npoints = {text}\n"


def with_curve(text: str) -> str:
    return f"schema = 1\n{CURVE}{text}\n"


def log_model(**changed: str) -> str:
    lines = [f"{key} = {value}" for key, value in {**LOG_MODEL, **changed}.items() if value]
    return "\n".join(["schema = 1", "[log_model]", *lines])


BAD = [
    # not TOML at all
    ("schema = 1\n[curve\n", "line 2, column 7", "Expected ']'", "TOML"),
    ("schema = 1\nschema = 1\n", "line 2, column 11", "Cannot overwrite", "TOML"),
    ("schema = ", "end of document", "Invalid value", "TOML"),
    ("schema = " + "[" * 2000, "file", "nested too deeply", "cap_percent"),
    ("# fine\n" + "a." * 2000 + "b = 1", "line 2", "longer than 2048", "one point a line"),
    # the version
    ("", "schema", "holds no keys", "add schema = 1"),
    ("# only a comment\n", "schema", "holds no keys", "add schema = 1"),
    (CURVE, "schema", "missing", "add schema = 1"),
    ("[host]\nschema = 1\n", "schema", "missing", "first line"),
    (f"schema = 2\n{CURVE}", "schema", "version 1, not 2", "write schema = 1"),
    (f"schema = true\n{CURVE}", "schema", "version 1, not True", "write schema = 1"),
    (f"schema = 1.0\n{CURVE}", "schema", "version 1, not 1.0", "write schema = 1"),
    (f'schema = "1"\n{CURVE}', "schema", "version 1, not '1'", "write schema = 1"),
    (f"schema = 0x{'f' * 2000}\n{CURVE}", "schema", "enormous", "write schema = 1"),
    # keys
    ("schema = 1\n", "curve", "neither", "measured points"),
    ("schema = 1\n[curve]\n", "curve.points", "missing", "points = [[10, 32000]"),
    ("schema = 1\n[curve]\npoint = []\n", "curve.point", "no such key", "did you mean points?"),
    (with_curve("[loops]"), "loops", "no such key", "did you mean loop?"),
    ("schema = 1\nlag = 0.1\n", "lag", "no such key", "it belongs in [loop]"),
    (with_curve("[loop]\nhost = 1"), "loop.host", "no such key", "at the top"),
    (with_curve("[gains.bang]"), "gains.bang", "no such key", "known here: pi, dead_beat"),
    (with_curve('[loop]\n"\\u001b[2J" = 1'), r"loop.'\x1b[2J'", "no such key", "known here"),
    (with_curve("[gains.pi]\nki = 0.01"), "gains.pi.kp", "missing", "Kp of Eq. 2"),
    # wrong types
    ("schema = 1\ncurve = 3\n", "curve", "3: expected `table`, got `int`", "measured"),
    (points("7"), "curve.points", "expected `array`", "points = [[10"),
    (points("[5, 10]"), "curve.points[0]", "expected `array`", "points = [[10"),
    (points("[[5, 1], [6]]"), "curve.points[1]", "length 2, got 1", "points = [[10"),
    (points('[[5, 1], [6, "2k"]]'), "curve.points[1][1]", "'2k': expected `float`", "packets/s"),
    (points("[[5, 1], [6, true]]"), "curve.points[1][1]", "expected `float`", "packets/s"),
    (points("[[5, 1], [6, 1979-05-27]]"), "curve.points[1][1]", "got `date`", "packets/s"),
    (points("[[5, 1], [[], 2]]"), "curve.points[1][0]", "a list of 0", "packets/s"),
    (with_curve("[host]\nname = 7"), "host.name", "7: expected `str`", "in quotes"),
    (with_curve('[host]\nname = ""'), "host.name", "length >= 1", "in quotes"),
    (with_curve("[loop]\ndelay_samples = 1.5"), "loop.delay_samples", "expected `int`", "0 to 5"),
    # numbers that are none
    (points("[[5, nan], [6, 2]]"), "curve.points[0][1]", "nan is not a finite", "packets/s"),
    (points("[[5, 1], [inf, 2]]"), "curve.points[1][0]", "inf is not a finite", "percent"),
    (with_curve("[loop]\nlag = nan"), "loop.lag", "nan is not a finite", "below 1"),
    (with_curve("[gains.pi]\nkp = -inf\nki = 1"), "gains.pi.kp", "-inf is not", "Kp"),
    (log_model(mean_log_cap="nan"), "log_model.mean_log_cap", "nan is not", "log10"),
    # numbers out of bounds
    (points("[[0, 1], [6, 2]]"), "curve.points[0][0]", "0: expected `float` > 0", "above 0"),
    (points("[[-5, 1], [6, 2]]"), "curve.points[0][0]", "-5: expected", "above 0"),
    (points("[[5, -1], [6, 2]]"), "curve.points[0][1]", "-1: expected", "packets/s"),
    (points("[[5, 1], [6, 1e12]]"), "curve.points[1][1]", "1000000000000.0: ", "packets/s"),
    (points(f"[[5, 1], [6, 1{'0' * 400}]]"), "curve.points[1][1]", "enormous", "packets/s"),
    (points("[[5, 1], [1e9, 2]]"), "curve.points[1][0]", "expected `float` <=", "percent"),
    (log_model(a="1.0"), "log_model.a", "1.0: expected `float` < 1", "below 1"),
    (log_model(a="-0.1"), "log_model.a", "-0.1: expected `float` >= 0", "below 1"),
    (log_model(b="0"), "log_model.b", "0: expected `float` > 0", "above 0"),
    (log_model(b="-63"), "log_model.b", "-63: expected", "above 0"),
    (log_model(b=""), "log_model.b", "missing", "b = 63.0"),
    (log_model(r_squared="98.99"), "log_model.r_squared", "98.99: expected", "0 to 1"),
    (log_model(mean_log_cap="5.5"), "log_model.mean_log_cap", "gives any", "fit"),
    (with_curve("[loop]\nlag = 1.0"), "loop.lag", "1.0: expected `float` < 1", "below 1"),
    (with_curve("[loop]\ndelay_samples = 6"), "loop.delay_samples", "6: expected", "0 to 5"),
    (with_curve("[loop]\ndelay_samples = -1"), "loop.delay_samples", "-1: expected", "0 to 5"),
    (with_curve("[gains.pi]\nkp = 0\nki = 0"), "gains.pi.ki", "0: expected", "above 0"),
    # numbers that contradict each other
    (points("[[5, 1]]"), "curve.points", "length >= 2", "2 to 1000 points"),
    (points("[[5, 1], [5, 2]]"), "curve.points[1]", "not above the one before", "order caps"),
    (points("[[6, 1], [5, 2]]"), "curve.points[1]", "not above the one before", "order caps"),
    (points("[[5, 2], [6, 1]]"), "curve.points[1]", "throughput falls from 2 to 1", "again"),
    (points("[[5, 0], [6, 0]]"), "curve.points", "no cap gives any", "larger caps"),
    (points("[[5, 16000], [9, 32000]]\noffered_pps = 100"), "curve.offered_pps", "100 off", "load"),
    (
        with_curve("[loop]\ncap_floor_percent = 9\ncap_ceiling_percent = 8"),
        "loop.cap_floor_percent",
        "9 % under a cap ceiling of 8 %",
        "cap ceiling",
    ),
    (with_curve("[loop]\ncap_step_percent = 200"), "loop.cap_step_percent", "200 %", "ceiling"),
]


@pytest.mark.parametrize(("text", "field", "problem", "fix"), BAD)
def test_a_bad_file_names_field_problem_and_fix(
    text: str, field: str, problem: str, fix: str
) -> None:
    with pytest.raises(ModelFileError) as caught:
        parse_host(text.encode(), "edge.toml")
    error = caught.value
    assert (error.path, error.field) == ("edge.toml", field)
    assert problem in error.problem
    assert fix in error.fix
    assert str(error) == f"edge.toml: {error.field}: {error.problem} ({error.fix})"


def test_bytes_that_are_no_text_are_refused() -> None:
    with pytest.raises(ModelFileError, match="byte 2: not UTF-8"):
        parse_host(b"# \xff", "edge.toml")


def test_a_file_too_large_is_refused_before_it_is_parsed(tmp_path: Path) -> None:
    file = tmp_path / "huge.toml"
    with file.open("wb") as empty:
        os.truncate(empty.fileno(), 1 << 40)
    with pytest.raises(ModelFileError, match="file: too large"):
        load_host(file)


@pytest.mark.parametrize(
    ("name", "problem"),
    [(".", "Is a directory"), ("missing.toml", "No such file"), ("nul\0.toml", "null byte")],
)
def test_a_path_to_no_file_is_refused(tmp_path: Path, name: str, problem: str) -> None:
    with pytest.raises(ModelFileError) as caught:
        load_host(tmp_path / name)
    assert caught.value.path == str(tmp_path / name)
    assert caught.value.field == "file"
    assert problem in caught.value.problem
