"""The policer's Debian package, built and looked into; nothing is installed."""

import re
import shutil
from pathlib import Path

import pytest
from package_rig import BUILT_S, ROOT, Packages, output

from common import __version__
from deploy.locked import added, closure, names_of, parse

pytest_plugins = ["package_fixtures"]

TOOLS = ("dpkg-deb", "dpkg-shlibdeps", "strip", "xz")
MISSING = [tool for tool in TOOLS if shutil.which(tool) is None]
pytestmark = [
    pytest.mark.skipif(bool(MISSING), reason=f"no {', '.join(MISSING)}"),
    pytest.mark.timeout(BUILT_S),
]
LOCKED = list(parse((ROOT / "requirements.lock").read_text()))


@pytest.fixture(scope="module")
def package(packages: Packages) -> Path:
    return packages.built("build-policer.sh")


@pytest.fixture(scope="module")
def files(packages: Packages) -> Path:
    return packages.unpacked("build-policer.sh")


@pytest.fixture(scope="module")
def daemons(packages: Packages) -> Path:
    """The libraries of the xtc package, which this one depends on."""
    return packages.unpacked("build.sh")


def run(files: Path, daemons: Path, code: str) -> str:
    """Run Python as /usr/bin/policer does, with both packages where they were unpacked."""
    launcher = (files / "usr/bin/policer").read_text()
    launcher = launcher.replace("/usr/lib/xtc-policer", f"{files}/usr/lib/xtc-policer")
    launcher = launcher.replace('"/usr/lib/xtc/', f'"{daemons}/usr/lib/xtc/')
    preamble = launcher.partition("from policer")[0]
    return output("/usr/bin/python3", "-I", "-B", "-c", preamble + code)


def test_the_policer_runs_with_the_systems_python(
    files: Path, daemons: Path, tmp_path: Path
) -> None:
    main = "from policer.cli.main import main\nmain()"
    assert run(files, daemons, f"sys.argv = ['policer', '--version']\n{main}") == (
        f"policer {__version__}\n"
    )
    settings = tmp_path / "policer.toml"
    settings.write_text(f'[store]\nurl = "sqlite:///{tmp_path}/policer.db"\n')
    words = ["policer", "db", "upgrade", "--config", str(settings)]
    assert "is of version" in run(files, daemons, f"sys.argv = {words}\n{main}")


def test_all_that_serving_takes_can_be_loaded(files: Path, daemons: Path) -> None:
    code = "import policer.daemon.serve, policer.oidc, psycopg\n"
    code += "print(policer.daemon.serve.__file__, psycopg.pq.__impl__)"
    origin, implementation = run(files, daemons, code).split()
    assert origin.startswith(f"{files}/usr/lib/xtc-policer/python/")
    assert implementation == "binary"


def test_it_holds_the_locked_versions_that_the_daemons_package_lacks(files: Path) -> None:
    held = {path.name for path in (files / "usr/lib/xtc-policer/python").glob("*.dist-info")}
    names = {re.sub("_", "-", name.partition("-")[0]).lower() for name in held}
    wanted = names_of("policer") | names_of("postgresql") | names_of("oidc")
    assert wanted <= names
    assert names <= {one.name for one in added(LOCKED, wanted)}
    assert names.isdisjoint({one.name for one in closure(LOCKED)})


def test_the_daemons_package_has_nothing_of_the_policer(daemons: Path) -> None:
    assert list(daemons.rglob("*policer*.service")) == []
    assert not (daemons / "usr/lib/xtc/python/policer").exists()


def test_page_and_migrations_are_in_it(files: Path) -> None:
    policer = files / "usr/lib/xtc-policer/python/policer"
    assert (policer / "page/static/index.html").is_file()
    assert list((policer / "store/database/migrations/versions").glob("*0001*.py"))


def test_the_settings_are_the_administrators(files: Path) -> None:
    assert (files / "DEBIAN/conffiles").read_text() == "/etc/xtc/policer.toml\n"
    control = (files / "DEBIAN/control").read_text()
    assert f"xtc (= {__version__})" in control
    assert re.search(r"@[A-Z]+@", control) is None


def test_everything_of_the_policer_has_its_place(files: Path) -> None:
    places = (
        "usr/bin/policer",
        "lib/systemd/system/xtc-policer.service",
        "usr/share/man/man8/policer.8.gz",
        "usr/share/man/man5/policer.toml.5.gz",
        "usr/share/bash-completion/completions/policer",
        "usr/share/zsh/vendor-completions/_policer",
        "usr/share/fish/vendor_completions.d/policer.fish",
        "usr/share/doc/xtc-policer/examples/policer.yml",
        "usr/share/doc/xtc-policer/examples/policer.json",
    )
    assert [place for place in places if not (files / place).is_file()] == []
    completion = (files / "usr/share/bash-completion/completions/policer").read_text()
    assert "_POLICER_COMPLETE" in completion


def test_nothing_of_it_tells_where_it_was_built(files: Path) -> None:
    place = str(ROOT).encode()
    regular = (path for path in files.rglob("*") if path.is_file())
    assert [path for path in regular if place in path.read_bytes()] == []


@pytest.mark.parametrize("script", ["postinst", "prerm", "postrm"])
def test_the_policers_maintainer_scripts_are_shell(files: Path, script: str) -> None:
    output("sh", "-n", files / "DEBIAN" / script)


@pytest.mark.skipif(shutil.which("lintian") is None, reason="no lintian")
def test_lintian_finds_no_error_in_the_policers_package(package: Path) -> None:
    output("lintian", "--allow-root", "--fail-on", "error", package)
