"""The Debian package, built as `make deb` builds it, and looked into; nothing is installed."""

import re
import shutil
from pathlib import Path

import pytest
from package_rig import BUILT_S, ROOT, Packages, output

from common import __version__
from deploy.locked import closure, parse

pytest_plugins = ["package_fixtures"]

TOOLS = ("dpkg-deb", "dpkg-shlibdeps", "strip", "xz")
MISSING = [tool for tool in TOOLS if shutil.which(tool) is None]
pytestmark = [
    pytest.mark.skipif(bool(MISSING), reason=f"no {', '.join(MISSING)}"),
    pytest.mark.timeout(BUILT_S),
]


@pytest.fixture(scope="module")
def package(packages: Packages) -> Path:
    return packages.built("build.sh")


@pytest.fixture(scope="module")
def files(packages: Packages) -> Path:
    return packages.unpacked("build.sh")


def run(files: Path, code: str) -> str:
    """Run Python as /usr/bin/xtc does, with the package's libraries where they were unpacked."""
    launcher = (files / "usr/bin/xtc").read_text().replace("/usr/lib/xtc", f"{files}/usr/lib/xtc")
    preamble = launcher.partition("from xtc")[0]
    return output("/usr/bin/python3", "-I", "-B", "-c", preamble + code)


def test_the_program_runs_with_the_systems_python_and_its_own_libraries(files: Path) -> None:
    said = run(files, "sys.argv = ['xtc', '--version']\nfrom xtc.cli.main import main\nmain()")
    assert said == f"xtc {__version__}\n"
    origins = run(
        files, "import xtc, zmq, msgspec\nprint(xtc.__file__, zmq.__file__, msgspec.__file__)"
    )
    assert all(origin.startswith(f"{files}/usr/lib/xtc/python/") for origin in origins.split())


def test_the_systems_libraries_are_seen(files: Path) -> None:
    """So that python3-libvirt is."""
    assert "/usr/lib/python3/dist-packages" in run(files, "print(*sys.path)").split()


def test_it_holds_the_locked_versions_and_nothing_else(files: Path) -> None:
    held = {path.name for path in (files / "usr/lib/xtc/python").glob("*.dist-info")}
    names = {re.sub("_", "-", name.partition("-")[0]).lower() for name in held}
    locked = {one.name for one in closure(parse((ROOT / "requirements.lock").read_text()))}
    assert names - {"xtc"} <= locked
    project = {"msgspec", "prometheus-client", "pyroute2", "pyzmq", "rich", "structlog", "typer"}
    assert project | {"xtc"} <= names


def test_the_configuration_is_the_administrators(files: Path) -> None:
    assert (files / "DEBIAN/conffiles").read_text() == "/etc/xtc/xtc.toml\n"
    assert (files / "etc/xtc/xtc.toml").exists()


def test_everything_has_its_place(files: Path) -> None:
    places = (
        "usr/bin/xtc",
        "usr/lib/xtc/after-stop",
        "lib/systemd/system/xtc.service",
        "lib/systemd/system/xtc-release.service",
        "usr/share/man/man8/xtc.8.gz",
        "usr/share/man/man5/xtc.toml.5.gz",
        "usr/share/bash-completion/completions/xtc",
        "usr/share/zsh/vendor-completions/_xtc",
        "usr/share/fish/vendor_completions.d/xtc.fish",
        "usr/share/doc/xtc/copyright",
        "usr/share/doc/xtc/changelog.gz",
        "usr/share/doc/xtc/examples/libvirt-only.conf",
    )
    assert [place for place in places if not (files / place).is_file()] == []
    assert not (files / "usr/lib/xtc/python/lab").exists()


def test_every_program_that_a_unit_starts_is_in_it(files: Path) -> None:
    started = set()
    for unit in (files / "lib/systemd/system").iterdir():
        started |= set(re.findall(r"(?m)^Exec\w+=(\S+)", unit.read_text()))
    ours = started - {"/bin/kill"}
    assert ours
    assert [program for program in ours if not (files / program[1:]).stat().st_mode & 0o111] == []


def test_completion_is_for_this_program(files: Path) -> None:
    for place in ("bash-completion/completions/xtc", "zsh/vendor-completions/_xtc"):
        assert "_XTC_COMPLETE" in (files / "usr/share" / place).read_text()


def test_nothing_tells_where_it_was_built(files: Path) -> None:
    place = str(ROOT).encode()
    regular = (path for path in files.rglob("*") if path.is_file())
    assert [path for path in regular if place in path.read_bytes()] == []


@pytest.mark.parametrize("script", ["postinst", "prerm", "postrm"])
def test_maintainer_scripts_are_shell(files: Path, script: str) -> None:
    output("sh", "-n", files / "DEBIAN" / script)


@pytest.mark.skipif(shutil.which("lintian") is None, reason="no lintian")
def test_lintian_finds_no_error(package: Path) -> None:
    output("lintian", "--allow-root", "--fail-on", "error", package)
