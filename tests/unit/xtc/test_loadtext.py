"""Loads as text and traces as files: what is read, and what is said of what is not."""

import io
from pathlib import Path

import pytest

from common.errors import ConfigError, UnitError
from xtc.simulation import load_text as loadtext
from xtc.simulation.load_text import FORMS, parse_load, parse_trace
from xtc.simulation.loads import Load, Pulses, Ramp, Sine, Steady

PEAK = 60e3


def parsed(text: str) -> Load:
    return parse_load(text, PEAK, duration_s=60.0)


@pytest.mark.parametrize(
    ("text", "load"),
    [
        ("steady", Steady(PEAK)),
        ("on-off:5.3s", Pulses(PEAK, 2.65, 5.3)),
        ("on-off:500ms", Pulses(PEAK, 0.25, 0.5)),
        ("trains:50ms:1s", Pulses(PEAK, 0.05, 1.0)),
        ("sine:5kpps-35kpps:30s", Sine(5e3, 35e3, 30.0)),
        ("ramp:0-60kpps:120s", Ramp(0.0, 60e3, 120.0)),
        ("trains:5ms:10ms", Pulses(PEAK, 0.005, 0.01)),
        ("on-off:1000000s", Pulses(PEAK, 5e5, 1e6)),
        ("ramp:1e-3kpps-1e1kpps:2min", Ramp(1.0, 10e3, 120.0)),
    ],
)
def test_a_load_is_read(text: str, load: Load) -> None:
    assert parsed(text) == load


@pytest.mark.parametrize("kind", sorted(FORMS.keys() - {"trace"}))
def test_every_form_that_is_shown_can_be_read(kind: str) -> None:
    assert parsed(FORMS[kind]).peak > 0


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("onoff:5s", "a load such as on-off:5.3s"),
        ("sinus:5kpps-35kpps:30s", "a load such as sine:5kpps-35kpps:30s"),
        ("xyzzy", "a load one of steady, on-off:5.3s"),
        ("", "a load one of steady"),
        ("steady:5s", "written like steady"),
        ("on-off", "written like on-off:5.3s"),
        ("on-off:5s:5s", "written like on-off:5.3s"),
        ("on-off:soon", "a duration such as 60s"),
        ("on-off:1ms", "a time from 10 ms to 1e+06 s"),
        ("on-off:9e9s", "a duration such as 60s"),
        ("trains:1s:1s", "a train shorter than its cycle of 1 s"),
        ("trains:1ms:1s", "a time from 5 ms"),
        ("sine:5kpps:30s", "written like sine:5kpps-35kpps:30s"),
        ("sine:35kpps-5kpps:30s", "from a lower rate to a higher one"),
        ("sine:5kpps-35kpps-9kpps:30s", "written like sine"),
        ("ramp:0-fast:30s", "a packet rate such as 20kpps"),
        ("walk:0-9kpps:1s", "a walk above 0"),
        ("walk:1kpps-9kpps:5ms", "a walk of at most 1000000 steps"),
        ("trace:", "written like trace:FILE"),
    ],
)
def test_a_slip_is_refused_with_what_to_write(text: str, words: str) -> None:
    with pytest.raises(UnitError) as caught:
        parse_load(text, PEAK, duration_s=1e5)
    assert str(caught.value).startswith("--load: ")
    assert words in str(caught.value)


TRACE = b"seconds,offered_pps\n0,20000\n10,60000\n\n10.5,0\n"


def test_a_traces_rates_hold_until_the_next_line() -> None:
    trace = parse_trace(TRACE, "load.csv")
    assert (trace.peak, trace.finest) == (60e3, 0.5)
    assert trace.sent(10.25) - trace.sent(10.0) == 15e3
    assert trace.sent(1e3) == 200e3 + 30e3
    late = parse_trace(b"seconds,offered_pps\r\n5,100\r\n", "load.csv")
    assert (late.sent(5.0), late.sent(7.0)) == (0, 200)


def test_a_trace_is_read_from_a_file_or_from_standard_input(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "load.csv"
    path.write_bytes(b"\xef\xbb\xbf" + TRACE)
    assert parsed(f"trace:{path}").sent(11.0) == 230e3
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(TRACE)))
    assert parsed("trace:-").sent(11.0) == 230e3


@pytest.mark.parametrize(
    ("lines", "where", "words"),
    [
        ("", "load.csv:1", "no header (begin with seconds,offered_pps)"),
        ("0,20000\n", "load.csv:1", "no header"),
        ("seconds,offered_pps\n", "load.csv", "no line after the header"),
        ("seconds,offered_pps\n0,1\n0,2\n", "load.csv:3", "seconds: 0 is not after 0"),
        ("seconds,offered_pps\n5,1\n4,2\n", "load.csv:3", "(sort the lines by time)"),
        ("seconds,offered_pps\n0,nan\n", "load.csv:2", "offered_pps: 'nan' (write 0 to 1e+09)"),
        ("seconds,offered_pps\n0,-1\n", "load.csv:2", "offered_pps: '-1'"),
        ("seconds,offered_pps\n0,inf\n", "load.csv:2", "offered_pps: 'inf'"),
        ("seconds,offered_pps\n-1,1\n", "load.csv:2", "seconds: '-1'"),
        ("seconds,offered_pps\n0,1,2\n", "load.csv:2", "3 columns"),
        ("seconds,offered_pps\n0;1\n", "load.csv:2", "1 columns"),
        ("seconds,offered_pps\n0,1\n1,1e10\n", "load.csv:3", "offered_pps: '1e10'"),
    ],
)
def test_a_bad_trace_is_refused_with_its_line(lines: str, where: str, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_trace(lines.encode(), "load.csv")
    assert str(caught.value).startswith(f"{where}: --load: ")
    assert words in str(caught.value)


def test_a_trace_that_is_no_text_or_too_large_or_not_there_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ConfigError, match=r"load\.csv:2: --load: not UTF-8"):
        parse_trace(b"seconds,offered_pps\n\xff", "load.csv")
    with pytest.raises(ConfigError, match="No such file"):
        parsed(f"trace:{tmp_path / 'none.csv'}")
    with pytest.raises(ConfigError, match="null byte"):
        parsed("trace:a\0b")
    path = tmp_path / "load.csv"
    path.write_bytes(TRACE)
    monkeypatch.setattr(loadtext, "MAX_BYTES", 20)
    with pytest.raises(ConfigError, match="too large"):
        parsed(f"trace:{path}")
