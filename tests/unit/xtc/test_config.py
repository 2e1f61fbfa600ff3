"""Configuration files: what is read, and how a mistake is named."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from common.errors import ConfigError, ConfigErrors
from common.toml_tables import LIMITS, MAX_DEPTH
from xtc.config.file import CHOICES, FORMS, load_config, parse_config
from xtc.config.schema import Config
from xtc.spec import CgroupSpec, SimulatedSpec

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
        (ROUTER + "side = 'inside'", "router.edge1.side", "write host or router"),
        (ROUTER + "domid = 0", "router.edge1.domid", ""),
        (ROUTER.replace("simulated", "magic"), "router.edge1.actuator.kind", "write cgroup,"),
        (ROUTER.replace("plant", "plan"), "router.edge1.actuator.plan", "did you mean plant?"),
        (ROUTER.replace("edge1", '"ed ge"'), "router.ed ge", "letters, digits"),
        (ROUTER.replace("edge1", '"edge\\n"'), "router.edge\n", "letters, digits"),
        ("[deamon]", "deamon", "did you mean daemon?"),
        ("[daemon]\nperiod_s = 0.09", "daemon.period_s", ""),
        ("[daemon]\nperiod_s = nan", "daemon.period_s", ""),
        ("[daemon]\nmax_release_share = inf", "daemon.max_release_share", ""),
        ("[daemon]\non_exit = 'perhaps'", "daemon.on_exit", "write release or keep"),
        ("daemon = 3", "daemon", ""),
        ("[nonsense", "", ""),
    ],
)
def test_a_mistake_is_named_by_its_field_and_how_to_mend_it(
    text: str, where: str, fix: str
) -> None:
    error = mistake(text)
    assert error.where.removeprefix("xtc.toml") == where
    assert fix in error.fix


LIBVIRT = 'router.r.actuator = {{ kind = "libvirt", domain = "r", {} }}'
KINDS = "cgroup, deadline, libvirt or simulated"


@pytest.mark.parametrize(
    ("text", "problem", "fix"),
    [
        (LIBVIRT.format('scope = "all"'), "no such choice: 'all'", "write vcpu or machine"),
        (
            LIBVIRT.format('scope = "vcpus"'),
            "no such choice: 'vcpus'",
            "did you mean vcpu? write vcpu or machine",
        ),
        (LIBVIRT.format("scope = 1"), "expected `str`, got `int`", "write vcpu or machine"),
        (
            'router.r.actuator = { kind = "libvrt" }',
            "no such choice: 'libvrt'",
            f"did you mean libvirt? write {KINDS}",
        ),
        ('router.r.actuator = { kind = "x" }', "no such choice: 'x'", f"write {KINDS}"),
        ("router.r.actuator = {}", "missing", f"add it: {KINDS}"),
        (
            "log.level = 'warn'",
            "no such choice: 'warn'",
            "did you mean warning? write debug, info, warning or error",
        ),
        ("log.format = 'xml'", "no such choice: 'xml'", "write auto, json or console"),
    ],
)
def test_a_wrong_choice_is_told_what_there_is_to_choose(text: str, problem: str, fix: str) -> None:
    error = mistake(text)
    assert (error.problem, error.fix) == (problem, fix)


@pytest.mark.parametrize(
    ("text", "key"),
    [
        (LIBVIRT.format('uri = "nonsense"'), "uri"),
        (LIBVIRT.replace('"r"', '""').format("scope = 'vcpu'"), "domain"),
        ('router.r.actuator = { kind = "cgroup", path = "r" }', "path"),
        ('router.r.actuator = { kind = "cgroup", path = "" }', "path"),
        ('router.r.actuator = { kind = "deadline", netns = "r", interfaces = ["a"] }', "netns"),
        (
            'router.r.actuator = { kind = "deadline", netns = "/r", interfaces = ["/"] }',
            "interfaces",
        ),
        ('router.r.actuator = { kind = "simulated", plant = "" }', "plant"),
        ('router."r r".actuator = { kind = "simulated", plant = "a" }', "router"),
    ],
)
def test_a_malformed_text_is_told_its_form_in_words(text: str, key: str) -> None:
    error = mistake(text)
    assert (error.problem, error.fix) == ("malformed", f"write {FORMS[key]}")


def rules(node: object, key: str = "") -> Iterator[tuple[str, str, Any]]:
    """Yield key, keyword and value of every rule of a JSON schema."""
    if isinstance(node, list):
        for part in node:
            yield from rules(part, key)
    elif isinstance(node, dict):
        for keyword, part in node.items():
            if keyword in ("properties", "$defs"):
                for name, inner in part.items():
                    yield from rules(inner, name)
            elif keyword != "default":
                yield key, keyword, part
                yield from rules(part, key)


def test_every_choice_and_every_form_of_the_schema_has_its_words() -> None:
    """By key alone: so no two tables may have different choices under one key, but for kinds."""
    schema = list(rules(msgspec.json.schema(Config)))
    choices = {(key, *sorted(values)) for key, rule, values in schema if rule == "enum"}
    kinds = {choice for choice in choices if choice[0] == "kind"}
    assert choices - kinds == {(k, *sorted(v)) for k, v in CHOICES.items() if k != "kind"}
    assert {kind for _, kind in kinds} == set(CHOICES["kind"])
    assert {key for key, rule, _ in schema if rule in ("pattern", "minLength")} == set(FORMS)


def test_what_is_too_large_is_not_even_read() -> None:
    assert "larger than 4 MiB" in str(mistake("#" * (LIMITS.max_bytes + 1)))
    assert "longer than 4096" in str(mistake("a" + ".a" * 5000 + "=1"))


@pytest.mark.parametrize("brackets", ["[" * 1200 + "]" * 1200, "{a=" * 700 + "1" + "}" * 700])
def test_what_nests_too_deeply_is_a_mistake_and_no_crash(brackets: str) -> None:
    assert f"nest more than {MAX_DEPTH} deep" in str(mistake(f"x = {brackets}"))


def test_what_nests_deeply_without_need_is_refused_before_it_is_converted() -> None:
    assert "nest more than" in str(mistake(f"x = {'[' * 40}{']' * 40}"))


def test_all_mistakes_are_told_with_their_lines() -> None:
    error = mistake(
        ROUTER + "setpiont = 5\nfloor = []\n"
        '[router.edge2]\nactuator = { kind = "cgroup", path = "x" }\ninterfaces = "x"\n'
        "[daemon]\nperiod_s = 0\n"
    )
    assert isinstance(error, ConfigErrors)
    assert [(one.at, one.where) for one in error.mistakes] == [
        ("xtc.toml:11", "daemon.period_s"),
        ("xtc.toml:5", "router.edge1.setpiont"),
        ("xtc.toml:6", "router.edge1.floor"),
        ("xtc.toml:8", "router.edge2.actuator.path"),
        ("xtc.toml:9", "router.edge2.interfaces"),
    ]


def test_one_interface_without_brackets_is_told_what_to_write() -> None:
    assert mistake(ROUTER.replace('["a.0"]', '"a.0"')).fix == 'write ["a.0"]'


@pytest.mark.parametrize(
    ("text", "fix"),
    [
        (
            ROUTER + "setpoint = []",
            'write a packet rate, such as "20kpps", or a bit rate, such as "50Mb/s"',
        ),
        (ROUTER + "safe_cap = true", 'write a cap, such as "35%"'),
        *(
            (
                ROUTER + f"headroom = {wrong}",
                "write a multiple of the CPU that it needs, from 1.1 to 4",
            )
            for wrong in ("1", "1.09", "4.1", "nan", "inf", "'1.5'", "true")
        ),
        ("daemon.period_s = 0.05", "a number of seconds"),
        (
            "[router.r.actuator]\nkind='deadline'\nnetns='/r'\ninterfaces=['a']\nperiod_us=1",
            "a number of microseconds",
        ),
        (
            'router.r.actuator = { kind = "simulated", plant = "a", offered_pps = "x" }',
            "a number of packets/s",
        ),
    ],
)
def test_a_wrong_quantity_is_told_its_unit(text: str, fix: str) -> None:
    assert mistake(text).fix == fix


def test_all_mistakes_of_an_actuator_are_told() -> None:
    error = mistake(
        'router.r.actuator = { kind = "deadline", netns = "r", period_us = 1, interface = ["a"] }'
    )
    assert isinstance(error, ConfigErrors)
    assert {one.where.removeprefix("router.r.actuator.") for one in error.mistakes} == {
        *("netns", "period_us", "interface"),
    }


def test_a_key_that_was_meant_is_not_told_to_be_missing() -> None:
    assert mistake(ROUTER.replace("plant", "plan")).where == "router.edge1.actuator.plan"
    assert not isinstance(mistake(ROUTER.replace("plant", "plan")), ConfigErrors)


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
    assert str(caught.value).startswith(f"{drop_in}:2: router.edge1.floor: ")


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


def test_what_is_no_regular_file_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "xtc.toml")
    for path in (tmp_path / "xtc.toml", tmp_path, Path("/dev/zero")):
        with pytest.raises(ConfigError, match=r"no regular file|Is a directory"):
            load_config(path)


def test_a_file_too_large_is_not_read_to_its_end(tmp_path: Path) -> None:
    path = tmp_path / "xtc.toml"
    with path.open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(ConfigError, match="larger than 4 MiB"):
        load_config(path)


def test_a_file_that_changes_while_it_is_read_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(tmp_path, "xtc.toml", ROUTER)
    status = os.fstat

    def written_to(file: int) -> os.stat_result:
        found = status(file)
        with path.open("a") as again:
            again.write("# more\n")
        return found

    monkeypatch.setattr(os, "fstat", written_to)
    with pytest.raises(ConfigError, match="changed while it was read"):
        load_config(path)


def test_a_file_that_is_not_utf_8_is_named_with_the_line(tmp_path: Path) -> None:
    (tmp_path / "xtc.toml").write_bytes(b"[log]\n# caf\xe9\n")
    with pytest.raises(ConfigError, match=r"xtc\.toml:2: not UTF-8"):
        load_config(tmp_path / "xtc.toml")


def test_actuators_are_told_apart_by_their_kind() -> None:
    text = '[router.r]\nactuator = { kind = "cgroup", path = "/sys/fs/cgroup/r" }\ndomid = 7'
    assert parse_config(text).router["r"].actuator == CgroupSpec("/sys/fs/cgroup/r")
