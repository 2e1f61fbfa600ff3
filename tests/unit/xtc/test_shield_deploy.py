"""What is shipped of the shield: the built program, and the rights to load it."""

import configparser
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


def test_the_wheel_holds_the_built_program() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    wheel = project["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert wheel["artifacts"] == ["/xtc/shield/*.bpf.o"]


@pytest.mark.parametrize("target", ["prepared", "test", "deb", "demo"])
def test_the_program_is_built_before(target: str) -> None:
    command = ["make", "-n", "--no-print-directory", "-o", ".venv/.ready", target]
    said = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    assert "sh scripts/setup-shield.sh" in said


@pytest.mark.parametrize("target", ["check"])
def test_what_works_without_root_builds_nothing(target: str) -> None:
    command = ["make", "-n", "--no-print-directory", "-o", ".venv/.ready", target]
    said = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    assert "setup-shield" not in said


@pytest.mark.parametrize("name", ["xtc.service", "xtc-release.service"])
def test_the_units_may_call_bpf(name: str) -> None:
    unit = configparser.RawConfigParser(strict=False, delimiters="=", comment_prefixes="#")
    text = (ROOT / "deploy" / "systemd" / name).read_text()
    unit.read_string(text)
    assert "SystemCallFilter=@system-service @mount bpf\n" in text
    assert {"CAP_SYS_ADMIN", "CAP_NET_ADMIN"} <= {*unit["Service"]["CapabilityBoundingSet"].split()}


def test_the_package_recommends_the_library_that_loads_the_program() -> None:
    assert "Recommends: libbpf1\n" in (ROOT / "deploy" / "debian" / "control.in").read_text()


def test_without_clang_the_set_up_says_what_is_missing_and_ends_well(tmp_path: Path) -> None:
    for program in ("sh", "dirname", "id"):
        found = shutil.which(program)
        assert found
        (tmp_path / program).symlink_to(found)
    done = subprocess.run(
        [tmp_path / "sh", ROOT / "scripts" / "setup-shield.sh"],
        env={"PATH": str(tmp_path)},
        check=True,
        capture_output=True,
        text=True,
    )
    assert "no clang or no libbpf headers; without it routers have no shields" in done.stderr
