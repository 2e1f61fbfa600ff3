"""The set-up: uv gets the index of pip's configuration, and the demo gets what it imports."""

import re
import subprocess
import sys
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from deploy.locked import added, closure, names_of, parse
from scripts.uv_like_pip import arguments, environment, settings

ROOT = Path(__file__).parents[3]
DEMOS = ("xtc", "xtc_plot", "policer", "xco")
LISTED = r"""
:env:.disable-pip-version-check='1'
:env:.index-url='https://env.example/simple'
download.index-url='https://download.example/simple'
freeze.timeout='10'
global.cert='/etc/ssl/company.pem'
global.extra-index-url='\nhttps://one.example/simple\nhttps://user:it%27s@two.example/simple'
global.index-url='https://global.example/simple'
global.trusted-host='one.example two.example:8443'
install.index-url='https://install.example/simple'
"""


def test_the_environment_overrides_the_section_of_install_and_that_the_global_one() -> None:
    lines = LISTED.splitlines()
    assert settings(LISTED)["index-url"] == "https://env.example/simple"
    without = "\n".join(line for line in lines if not line.startswith(":env:"))
    assert settings(without)["index-url"] == "https://install.example/simple"


def test_uv_gets_indexes_hosts_and_certificates() -> None:
    assert environment(settings(LISTED)) == {
        "UV_DEFAULT_INDEX": "https://env.example/simple",
        "UV_INDEX": "https://one.example/simple https://user:it%27s@two.example/simple",
        "UV_INDEX_STRATEGY": "unsafe-best-match",
        "UV_INSECURE_HOST": "one.example two.example:8443",
        "SSL_CERT_FILE": "/etc/ssl/company.pem",
    }


def test_without_settings_uv_has_its_defaults() -> None:
    assert environment(settings("")) == {}
    assert arguments(settings("")) == []


def test_folders_that_are_missing_are_left_out(tmp_path: Path) -> None:
    links = f"{tmp_path} {tmp_path}/missing https://links.example/"
    assert environment({"find-links": links}) == {
        "UV_FIND_LINKS": f"{tmp_path},https://links.example/"
    }
    assert environment({"find-links": f"{tmp_path}/missing"}) == {}


@pytest.mark.parametrize(
    ("value", "given"), [("1", ["--no-index"]), ("True", ["--no-index"]), ("0", [])]
)
def test_no_index_is_an_argument(value: str, given: list[str]) -> None:
    assert arguments({"no-index": value}) == given


def test_the_demos_import_what_their_set_up_installs() -> None:
    locked = list(parse((ROOT / "requirements.lock").read_text()))
    group = names_of("demo", ROOT / "pyproject.toml")
    installed = {one.name for one in (*closure(locked), *added(locked, group))}
    owners = {
        module: {re.sub(r"[-_.]+", "-", name).lower() for name in names}
        for module, names in packages_distributions().items()
    }
    absent = [module for module, names in owners.items() if not names & {*installed, "xtc"}]
    assert "scipy" in absent
    hide = f"import sys; sys.modules |= dict.fromkeys({absent})"
    program = "\n".join((hide, *(f"import benchmarks.demo.{name}" for name in DEMOS)))
    subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=True)
