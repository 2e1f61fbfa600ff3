"""Configuration files: what is read, and how a mistake is named."""

from pathlib import Path

import pytest

from xtc.actuator.spec import CgroupSpec, SimulatedSpec
from xtc.config import Config
from xtc.configfile import MAX_BYTES, load_config, parse_config
from xtc.errors import ConfigError

ROUTER = """
[router.edge1]
actuator = { kind = "simulated", plant = "a" }
interfaces = ["a.0"]
"""


def mistake(text: str) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        parse_config(text, Path("xtc.toml"))
    return caught.value


def test_nothing_written_means_the_defaults() -> None:
    assert parse_config("") == Config()


def test_a_router_is_read() -> None:
    section = parse_config(ROUTER).router["edge1"]
    assert (section.actuator, section.interfaces) == (SimulatedSpec("a"), ("a.0",))


@pytest.mark.parametrize(
    ("text", "where", "fix"),
    [
        ("router = 3", "router", "[router.NAME]"),
        ("router = [1]", "router", "[router.NAME]"),
        ("router.edge1 = 3", "router.edge1", ""),
        ("[router.edge1]", "router.edge1.actuator", "add it"),
        (ROUTER + "setpiont = 5", "router.edge1.setpiont", "did you mean setpoint?"),
        (ROUTER + "side = 'inside'", "router.edge1.side", ""),
        (ROUTER + "domid = 0", "router.edge1.domid", ""),
        (ROUTER.replace("simulated", "magic"), "router.edge1.actuator.kind", ""),
        (ROUTER.replace("plant", "plan"), "router.edge1.actuator.plan", "did you mean plant?"),
        (ROUTER.replace("edge1", '"ed ge"'), "router.ed ge", ""),
        (ROUTER.replace("edge1", '"edge\\n"'), "router.edge\n", ""),
        ("[deamon]", "deamon", "did you mean daemon?"),
        ("[daemon]\nperiod_s = 0.1", "daemon.period_s", ""),
        ("[daemon]\nperiod_s = nan", "daemon.period_s", ""),
        ("[daemon]\nmax_release_share = inf", "daemon.max_release_share", ""),
        ("[daemon]\non_exit = 'perhaps'", "daemon.on_exit", ""),
        ("daemon = 3", "daemon", ""),
        ("[nonsense", "", ""),
    ],
)
def test_a_mistake_is_named_by_its_field_and_how_to_mend_it(
    text: str, where: str, fix: str
) -> None:
    error = mistake(text)
    assert error.where.removeprefix("xtc.toml").removeprefix(": ") == where
    assert fix in error.fix


def test_what_is_too_large_is_not_even_read() -> None:
    assert "too large" in str(mistake("#" * (MAX_BYTES + 1)))
    assert "too large" in str(mistake("a" + ".a" * 5000 + "=1"))


def written(directory: Path, name: str, text: str) -> Path:
    path = directory / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    return path


def test_drop_ins_are_laid_over_the_file_by_name(tmp_path: Path) -> None:
    path = written(tmp_path, "xtc.toml", ROUTER + "setpoint = 1\nlaw = 'pi'")
    written(tmp_path, "conf.d/20-b.toml", "[router.edge1]\nsetpoint = 3")
    written(tmp_path, "conf.d/10-a.toml", "[router.edge1]\nsetpoint = 2\n[log]\nlevel = 'debug'")
    config = load_config(path)
    assert (config.router["edge1"].setpoint, config.router["edge1"].law) == (3, "pi")
    assert config.log.level == "debug"


def test_a_mistake_in_a_drop_in_is_named_with_its_file(tmp_path: Path) -> None:
    path = written(tmp_path, "xtc.toml", ROUTER)
    drop_in = written(tmp_path, "conf.d/10-a.toml", "[router.edge1]\nfloor = []")
    with pytest.raises(ConfigError) as caught:
        load_config(path)
    assert caught.value.where == f"{drop_in}: router.edge1.floor"


def test_a_router_of_drop_ins_alone_must_be_whole(tmp_path: Path) -> None:
    path = written(tmp_path, "xtc.toml", "")
    written(tmp_path, "conf.d/10-a.toml", "[router.edge2]\nsetpoint = 3")
    with pytest.raises(ConfigError, match=r"router\.edge2\.actuator: missing"):
        load_config(path)


@pytest.mark.parametrize("content", [None, b"\xff\xfe"])
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "xtc.toml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ConfigError, match=r"xtc\.toml"):
        load_config(path)


def test_actuators_are_told_apart_by_their_kind() -> None:
    text = '[router.r]\nactuator = { kind = "cgroup", path = "/sys/fs/cgroup/r" }\ndomid = 7'
    assert parse_config(text).router["r"].actuator == CgroupSpec("/sys/fs/cgroup/r")
