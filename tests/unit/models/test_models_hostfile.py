"""Model files: what good ones mean, and that the documentation tells all of it."""

import re
from pathlib import Path

import pytest

from models import (
    ControlGains,
    HostModel,
    LogCapModel,
    ModelFileError,
    ThroughputCurve,
    bundled_host,
    bundled_names,
    dump_host,
    load_host,
    paper_host,
    parse_host,
)
from models.explain import keys

GUIDE = (Path(__file__).parents[3] / "docs" / "reference" / "model-files.md").read_text(
    encoding="utf-8"
)
POINTS = "[curve]\npoints = [[5, 16000], [50, 98000]]\n"


def parse(body: str) -> HostModel:
    return parse_host(f"schema = 1\n{body}".encode(), "edge.toml")


def test_the_bundled_hosts_are_these() -> None:
    assert bundled_names() == ("hinge", "log", "paper")
    assert [bundled_host(name).name for name in bundled_names()] == ["hinge", "log", "paper"]


def test_a_bundled_name_nobody_knows_gets_the_nearest() -> None:
    with pytest.raises(ModelFileError, match=r"did you mean paper\?"):
        bundled_host("papper")
    with pytest.raises(ModelFileError, match="hinge, log, paper"):
        bundled_host("../../etc/passwd")


def test_the_paper_file_holds_the_published_gains() -> None:
    host = paper_host()
    assert host.pi == ControlGains(-1.747e-3, 11.311e-3, period=1.0, dead_zone=0.10, min_cap=0.01)
    assert host.dead_beat == ControlGains(1.452e-3, 14.419e-3, 1.0, 0.10, min_cap=0.03)


def test_the_published_dead_beat_gains_follow_from_a_and_b() -> None:
    host = paper_host()
    assert isinstance(host.log_model, LogCapModel)
    assert isinstance(host.dead_beat, ControlGains)
    a, b = host.log_model.a, host.log_model.b
    assert round(a / b, 6) == 1.452e-3 == host.dead_beat.kp
    assert round((1 - a) / b, 6) == 14.419e-3 == host.dead_beat.ki


def test_the_paper_host_takes_whole_percents_from_one_to_a_hundred() -> None:
    host = paper_host()
    assert (host.cap_floor, host.cap_ceiling, host.cap_step) == (0.01, 1.0, 0.01)
    assert (host.lag, host.delay_samples) == (0.0915, 0)


def test_a_curve_alone_is_a_file() -> None:
    host = parse(POINTS)
    assert host == HostModel(
        name="edge",
        measured_curve=ThroughputCurve(((0.05, 16e3), (0.5, 98e3))),
        lag=0.0,
        delay_samples=0,
        cap_floor=0.01,
        cap_ceiling=1.0,
        cap_step=0.0,
    )
    assert host.curve is host.measured_curve


def test_the_cap_limits_reach_as_far_as_the_measurement() -> None:
    host = parse("[curve]\npoints = [[0.1, 700], [250, 1e6]]")
    assert (host.cap_floor, host.cap_ceiling) == (0.001, 2.5)


def test_the_lag_is_a_of_eq_1_unless_the_file_says_otherwise() -> None:
    log_model = (
        "[log_model]\na = 0.25\nb = 63.0\nmean_throughput_kpps = 78.14\n"
        "mean_log_cap = 1.39\ncap_threshold_percent = 60\noffered_kpps = 100\n"
    )
    assert parse(log_model).lag == 0.25
    assert parse(f"{log_model}[loop]\nlag = 0.5\n").lag == 0.5


def test_every_optional_key_is_read() -> None:
    host = parse(
        '[host]\nname = "n"\ndescription = "d"\nhypervisor = "h"\ncpu = "c"\nkernel = "k"\n'
        "[curve]\noffered_pps = 1e5\npoints = [[5, 16000], [50, 98000]]\n"
        "[loop]\nlag = 0.2\ndelay_samples = 3\n"
        "cap_floor_percent = 2\ncap_ceiling_percent = 80\ncap_step_percent = 0.5\n"
        "[gains.pi]\nkp = -1e-3\nki = 0.01\nperiod_s = 0.5\ndead_zone = 0.0\nmin_cap_percent = 2\n"
    )
    assert host == HostModel(
        name="n",
        description="d",
        hypervisor="h",
        cpu="c",
        kernel="k",
        measured_curve=ThroughputCurve(((0.05, 16e3), (0.5, 98e3)), 1e5),
        lag=0.2,
        delay_samples=3,
        cap_floor=0.02,
        cap_ceiling=0.8,
        cap_step=0.005,
        pi=ControlGains(-1e-3, 0.01, 0.5, 0.0, 0.02),
    )


def test_gains_left_out_are_the_paper_defaults() -> None:
    host = parse(f"{POINTS}[gains.dead_beat]\nkp = 1e-3\nki = 0.01\n")
    assert host.pi is None
    assert host.dead_beat == ControlGains(1e-3, 0.01, period=1.0, dead_zone=0.10, min_cap=0.01)


def test_a_file_on_disk_is_named_after_itself(tmp_path: Path) -> None:
    file = tmp_path / "edge-7.toml"
    file.write_text(f"schema = 1\n{POINTS}", encoding="utf-8-sig")  # with a byte order mark
    assert load_host(file).name == "edge-7"


@pytest.mark.parametrize("name", bundled_names())
def test_a_bundled_host_survives_dump_and_load(name: str, tmp_path: Path) -> None:
    file = tmp_path / "copy.toml"
    file.write_text(dump_host(bundled_host(name)), encoding="utf-8")
    assert load_host(file) == bundled_host(name)


def tables() -> set[str]:
    """Return the paths that hold keys of their own."""
    return {path.rpartition(".")[0] for path in keys()} - {""}


def test_the_guide_describes_every_key_under_its_table() -> None:
    sections = re.split(r"^### ", GUIDE, flags=re.MULTILINE)
    for path in keys():
        table, _, key = path.rpartition(".")
        if path in tables() and table == "":
            assert f"[{path}" in GUIDE
        elif table == "gains":
            assert f"`[{path}]`" in GUIDE
        else:
            home = next(text for text in sections if table == "" or f"`[{table}]`" in text[:60])
            assert f"| `{key}` |" in home, path


def test_the_guide_describes_no_key_that_does_not_exist() -> None:
    described = set(re.findall(r"^\| `(\w+)` \|", GUIDE, flags=re.MULTILINE))
    assert described - set(bundled_names()) == {
        path.rpartition(".")[2] for path in keys() if path not in tables()
    }


def test_the_smallest_file_of_the_guide_loads_and_has_five_lines() -> None:
    example = re.search(r"```toml\n(.*?)```", GUIDE, flags=re.DOTALL)
    assert example is not None
    assert len(example[1].splitlines()) == 5
    assert parse_host(example[1].encode(), "guide.toml").curve.cap_for(65_000) == 0.20
