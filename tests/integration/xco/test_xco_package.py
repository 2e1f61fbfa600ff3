"""xco's Debian package, built and looked into; nothing is installed."""

import os
import re
import shutil
from pathlib import Path

import pytest
from package_rig import BUILT_S, ROOT, Packages, output

from common import __version__
from deploy.locked import added, closure, names_of, parse
from xco.core_files import LIBRARY

pytest_plugins = ["package_fixtures"]

TOOLS = ("cc", "dpkg-buildflags", "dpkg-deb", "dpkg-shlibdeps", "make", "strip", "xz")
MISSING = [tool for tool in TOOLS if shutil.which(tool) is None]
pytestmark = [
    pytest.mark.skipif(bool(MISSING), reason=f"no {', '.join(MISSING)}"),
    pytest.mark.skipif(not Path("/usr/include/sodium.h").exists(), reason="no libsodium-dev"),
    pytest.mark.timeout(BUILT_S),
]
LOCKED = list(parse((ROOT / "requirements.lock").read_text()))
PROGRAMS = ("xco-controller", "xco-coordinator")
CORE = "usr/lib/xco/python/xco_core"


@pytest.fixture(scope="module")
def package(packages: Packages) -> Path:
    return packages.built("build-xco.sh")


@pytest.fixture(scope="module")
def files(packages: Packages) -> Path:
    return packages.unpacked("build-xco.sh")


@pytest.fixture(scope="module")
def daemons(packages: Packages) -> Path:
    """The libraries of the xtc package, which this one depends on."""
    return packages.unpacked("build.sh")


def run(files: Path, daemons: Path, code: str) -> str:
    """Run Python as /usr/bin/xco does, with both packages where they were unpacked."""
    launcher = (files / "usr/bin/xco").read_text()
    launcher = launcher.replace('"/usr/lib/xco/', f'"{files}/usr/lib/xco/')
    launcher = launcher.replace('"/usr/lib/xtc/', f'"{daemons}/usr/lib/xtc/')
    preamble = launcher.partition("from xco")[0]
    return output("/usr/bin/python3", "-I", "-B", "-c", preamble + code)


def test_xco_runs_with_the_systems_python_and_finds_its_core(files: Path, daemons: Path) -> None:
    main = "from xco.cli.main import main\nmain()"
    assert run(files, daemons, f"sys.argv = ['xco', '--version']\n{main}") == (
        f"xco {__version__}\n"
    )
    code = "from xco.core_files import library, program\n"
    code += "print(library(), program('xco-controller'), program('xco-coordinator'))"
    found = run(files, daemons, code).split()
    assert found == [str(files / CORE / name) for name in (LIBRARY, *PROGRAMS)]


def test_all_that_leading_and_coordinating_take_can_be_loaded(files: Path, daemons: Path) -> None:
    code = "import xco.controller.shell, xco.coordinator.shell, xco.leader.postgres\n"
    code += "import xco.scheduler.native, psycopg\n"
    code += "from xco.scheduler.native_library import loaded\n"
    code += "from xco.core_files import library\n"
    code += "loaded(str(library()))\n"
    code += "print(xco.controller.shell.__file__, psycopg.pq.__impl__)"
    origin, implementation = run(files, daemons, code).split()
    assert origin.startswith(f"{files}/usr/lib/xco/python/")
    assert implementation == "binary"


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_programs_are_hardened_and_use_the_systems_libsodium(files: Path, name: str) -> None:
    program = files / CORE / name
    assert os.access(program, os.X_OK)
    said = output("readelf", "--wide", "--file-header", "--dynamic", program)
    assert re.search(r"Type: +DYN", said)
    assert "BIND_NOW" in said
    assert "libsodium.so.23" in said


def test_it_holds_the_locked_versions_that_the_daemons_package_lacks(files: Path) -> None:
    held = {path.name for path in (files / "usr/lib/xco/python").glob("*.dist-info")}
    names = {re.sub("_", "-", name.partition("-")[0]).lower() for name in held}
    wanted = names_of("lease")
    assert wanted <= names
    assert names <= {one.name for one in added(LOCKED, wanted)}
    assert names.isdisjoint({one.name for one in closure(LOCKED)})


def test_the_three_packages_share_no_file(files: Path, daemons: Path, packages: Packages) -> None:
    roots = (files, daemons, packages.unpacked("build-policer.sh"))
    owned = [
        {
            str(path.relative_to(root))
            for path in root.rglob("*")
            if not path.is_dir() and "DEBIAN" not in path.relative_to(root).parts
        }
        for root in roots
    ]
    assert all(owned)
    assert len(set.union(*owned)) == sum(map(len, owned))


def test_the_settings_are_the_administrators(files: Path) -> None:
    assert (files / "DEBIAN/conffiles").read_text() == "/etc/xtc/xco.toml\n"
    control = (files / "DEBIAN/control").read_text()
    assert f"xtc (= {__version__})" in control
    assert "libsodium23" in control
    assert re.search(r"@[A-Z]+@", control) is None


def test_everything_of_xco_has_its_place(files: Path) -> None:
    places = (
        "usr/bin/xco",
        "etc/xtc/xco.toml",
        "lib/systemd/system/xco-controller.service",
        "lib/systemd/system/xco-coordinator.service",
        "lib/systemd/system/xco-port-agent.service",
        "usr/share/man/man8/xco.8.gz",
        "usr/share/man/man5/xco.toml.5.gz",
        "usr/share/bash-completion/completions/xco",
        "usr/share/zsh/vendor-completions/_xco",
        "usr/share/fish/vendor_completions.d/xco.fish",
        "usr/share/doc/xco/copyright",
        "usr/share/doc/xco/changelog.gz",
        "usr/share/doc/xco/examples/topology-example.toml",
        "usr/share/doc/xco/examples/xco.yml",
    )
    assert [place for place in places if not (files / place).is_file()] == []
    completion = (files / "usr/share/bash-completion/completions/xco").read_text()
    assert "_XCO_COMPLETE" in completion


def test_nothing_of_xco_tells_where_it_was_built(files: Path) -> None:
    place = str(ROOT).encode()
    regular = (path for path in files.rglob("*") if path.is_file())
    assert [path for path in regular if place in path.read_bytes()] == []


@pytest.mark.parametrize("script", ["postinst", "prerm", "postrm"])
def test_xcos_maintainer_scripts_are_shell(files: Path, script: str) -> None:
    output("sh", "-n", files / "DEBIAN" / script)


@pytest.mark.skipif(shutil.which("lintian") is None, reason="no lintian")
def test_lintian_finds_no_error_in_xcos_package(package: Path) -> None:
    output("lintian", "--allow-root", "--fail-on", "error", package)
