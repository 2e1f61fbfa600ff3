"""zovn's Debian package, built and looked into; nothing is installed."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from package_rig import BUILT_S, ROOT, Packages, output

from common import __version__

pytest_plugins = ["package_fixtures"]

TOOLS = ("cc", "dpkg-buildflags", "dpkg-deb", "dpkg-shlibdeps", "make", "pkg-config", "strip", "xz")
MISSING = [tool for tool in TOOLS if shutil.which(tool) is None]
HAS_DPDK = (
    not MISSING
    and not subprocess.run(["pkg-config", "--exists", "libdpdk"], check=False).returncode
)
pytestmark = [
    pytest.mark.skipif(bool(MISSING), reason=f"no {', '.join(MISSING)}"),
    pytest.mark.skipif(not HAS_DPDK, reason="no libdpdk-dev"),
    pytest.mark.timeout(BUILT_S),
]
CORE = "usr/lib/zovn/python/zovn/core"
PROGRAMS = (f"{CORE}/build/zovn-switch", f"{CORE}/simulate/build/zovn-simulate")


@pytest.fixture(scope="module")
def package(packages: Packages) -> Path:
    return packages.built("build-zovn.sh")


@pytest.fixture(scope="module")
def files(packages: Packages) -> Path:
    return packages.unpacked("build-zovn.sh")


@pytest.fixture(scope="module")
def daemons(packages: Packages) -> Path:
    """The libraries of the xtc package, which this one depends on."""
    return packages.unpacked("build.sh")


def run(files: Path, daemons: Path, code: str) -> str:
    """Run Python as /usr/bin/zovn does, with both packages where they were unpacked."""
    launcher = (files / "usr/bin/zovn").read_text()
    launcher = launcher.replace('"/usr/lib/zovn/', f'"{files}/usr/lib/zovn/')
    launcher = launcher.replace('"/usr/lib/xtc/', f'"{daemons}/usr/lib/xtc/')
    preamble = launcher.partition("from zovn")[0]
    return output("/usr/bin/python3", "-I", "-B", "-c", preamble + code)


def test_zovn_runs_with_the_systems_python_and_finds_its_core(files: Path, daemons: Path) -> None:
    main = "from zovn.cli.main import main\nmain()"
    said = run(files, daemons, f"sys.argv = ['zovn', '--version']\n{main}")
    assert said == f"zovn {__version__}\n"
    code = "from zovn.core_files import library, program\nfrom zovn.simulate import engine\n"
    code += "from zovn.native.library import loaded\nloaded(str(library()))\n"
    found = run(files, daemons, code + "print(program(), engine.program())").split()
    assert found == [str(files / name) for name in PROGRAMS]


def test_it_simulates(files: Path, daemons: Path) -> None:
    words = ["zovn", "simulate", "--queries", "1", "--mode", "ZZ", "--json"]
    main = f"sys.argv = {words}\nfrom zovn.cli.main import main\nmain()"
    assert '"mode": "ZZ"' in run(files, daemons, main)


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_programs_are_hardened(files: Path, name: str) -> None:
    program = files / name
    assert os.access(program, os.X_OK)
    said = output("readelf", "--wide", "--file-header", "--dynamic", program)
    assert re.search(r"Type: +DYN", said)
    assert "BIND_NOW" in said


def test_it_depends_on_dpdk_and_on_the_package_with_its_libraries(files: Path) -> None:
    control = (files / "DEBIAN/control").read_text()
    assert f"xtc (= {__version__})" in control
    assert re.search(r"Depends: .*\blibrte-vhost\d+ \(>= ", control)
    assert re.search(r"@[A-Z]+@", control) is None
    assert (files / "DEBIAN/conffiles").read_text() == "/etc/xtc/zovn.toml\n"


def test_it_shares_no_file_with_the_package_it_depends_on(files: Path, daemons: Path) -> None:
    owned = [
        {
            str(path.relative_to(root))
            for path in root.rglob("*")
            if not path.is_dir() and "DEBIAN" not in path.relative_to(root).parts
        }
        for root in (files, daemons)
    ]
    assert all(owned)
    assert set.intersection(*owned) == set()


def test_everything_of_zovn_has_its_place(files: Path) -> None:
    places = (
        "usr/bin/zovn",
        "etc/xtc/zovn.toml",
        "lib/systemd/system/zovn-switch.service",
        "lib/systemd/system/zovn-exporter.service",
        "usr/share/man/man8/zovn.8.gz",
        "usr/share/man/man5/zovn.toml.5.gz",
        "usr/share/bash-completion/completions/zovn",
        "usr/share/zsh/vendor-completions/_zovn",
        "usr/share/fish/vendor_completions.d/zovn.fish",
        "usr/share/doc/zovn/copyright",
        "usr/share/doc/zovn/changelog.gz",
        "usr/share/doc/zovn/examples/zovn.yml",
    )
    assert [place for place in places if not (files / place).is_file()] == []
    completion = (files / "usr/share/bash-completion/completions/zovn").read_text()
    assert "_ZOVN_COMPLETE" in completion


def test_nothing_of_zovn_tells_where_it_was_built(files: Path) -> None:
    place = str(ROOT).encode()
    regular = (path for path in files.rglob("*") if path.is_file())
    assert [path for path in regular if place in path.read_bytes()] == []


@pytest.mark.parametrize("script", ["postinst", "prerm", "postrm"])
def test_zovns_maintainer_scripts_are_shell(files: Path, script: str) -> None:
    output("sh", "-n", files / "DEBIAN" / script)


@pytest.mark.skipif(shutil.which("lintian") is None, reason="no lintian")
def test_lintian_finds_no_error_in_zovns_package(package: Path) -> None:
    output("lintian", "--allow-root", "--fail-on", "error,warning", package)
