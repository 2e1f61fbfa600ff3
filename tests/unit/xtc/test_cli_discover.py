"""`xtc discover` on the command line: tables, TOML that can be pasted, and hosts that fail."""

import json

import msgspec
import pytest
from typer.testing import CliRunner

from common.clock import Clock
from xtc.cli import discover as cli_discover
from xtc.cli.main import app
from xtc.config import discover as localrouters
from xtc.config.discover import Local, LocalRouter
from xtc.config.file import parse_config
from xtc.libvirt.discover import Candidate, Host

GOLD = Candidate(
    domain="gold",
    uuid="6695eb01-f6a4-8304-79aa-97f2502e193f",
    uri="xen:///system",
    driver="Xen",
    running=True,
    vcpus=1,
    interfaces=("vif1.0", "vif1.1"),
    cap=0.35,
    marked=False,
    controllable=True,
    configuration=(
        '[router.gold]\nactuator = { kind = "libvirt", domain = "gold", uri = "xen:///system" }\n'
    ),
)
STOPPED = Candidate(
    domain="rusty [old]",
    uuid="c7a5fdbd-edaf-9455-926a-d65c16db1809",
    uri="xen:///system",
    driver="Xen",
    running=False,
    vcpus=1,
    interfaces=(),
    cap=None,
    marked=False,
    controllable=False,
    reasons=("it does not run",),
)
HOSTS = {
    "xen:///system": Host("xen:///system", "", (GOLD, STOPPED)),
    "qemu:///system": Host("qemu:///system", ""),
    "lxc:///system": Host("lxc:///system", "lxc:///system: no socket"),
}


EDGE = LocalRouter(
    kind="podman",
    name="edge [1]",
    interfaces=("eth0", "eth1"),
    ends=("veth8", "veth9"),
    forwards=True,
    actuator="deadline",
    configuration=(
        '[router."edge"]\nactuator = { kind = "deadline", netns = "container:edge",'
        ' interfaces = ["eth0", "eth1"] }\ninterfaces = ["veth8", "veth9"]\n'
    ),
)
QUIET = LocalRouter("netns", "quiet", (), (), forwards=False, actuator="", reasons=("no veth",))


def look(_load: object, uri: str | None, _clock: Clock) -> Host:
    return HOSTS[uri] if uri else Host("default", "no libvirt")


@pytest.fixture(autouse=True)
def hosts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli_discover, "look", look)
    monkeypatch.setattr(localrouters, "look_around", lambda: Local((EDGE, QUIET)))
    monkeypatch.setenv("COLUMNS", "200")


def discover(*words: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, ["discover", *words])
    return result.exit_code, result.stdout, result.stderr


def test_a_table_says_what_can_be_controlled_and_why_not_the_rest() -> None:
    code, out, _ = discover("--uri", "xen:///system")
    lines = out.splitlines()
    assert code == 0
    assert lines[0].split() == [
        *("domain", "uuid", "driver", "state", "vCPUs", "interfaces", "cap", "controllable")
    ]
    assert "vif1.0, vif1.1" in lines[1]
    assert "35%" in lines[1]
    assert lines[1].rstrip().endswith("can be controlled")
    assert "rusty [old]" in lines[2]
    assert lines[2].rstrip().endswith("no: it does not run")


def test_the_toml_is_a_configuration_of_what_can_be_controlled() -> None:
    _, out, _ = discover("--uri", "xen:///system", "--toml")
    assert set(parse_config(out).router) == {"gold"}


def test_json_tells_of_every_host() -> None:
    _, out, _ = discover("--uri", "xen:///system", "--uri", "lxc:///system", "--json")
    assert [(host["uri"], len(host["domains"])) for host in json.loads(out)] == [
        ("xen:///system", 2),
        ("lxc:///system", 0),
    ]


def test_a_host_without_domains_says_so() -> None:
    assert discover("--uri", "qemu:///system") == (0, "no domains\n", "")


def test_a_host_that_cannot_be_asked_is_an_error_and_not_an_empty_host() -> None:
    code, out, error = discover("--uri", "lxc:///system")
    assert (code, out, error) == (1, "", "xtc: lxc:///system: no socket\n")


def test_without_libvirt_the_host_s_own_routers_are_listed() -> None:
    code, out, error = discover()
    lines = out.splitlines()
    assert code == 0
    assert lines[1].split()[:2] == ["edge", "[1]"]
    assert lines[1].rstrip().endswith("deadline")
    assert lines[2].rstrip().endswith("no: no veth")
    assert error == "xtc: no libvirt (so no domains are listed)\n"


def test_the_toml_of_the_host_s_own_routers_can_be_pasted() -> None:
    _, out, _ = discover("--toml")
    assert set(parse_config(out).router) == {"edge"}


def test_json_tells_of_the_host_s_own_routers_last() -> None:
    _, out, _ = discover("--json")
    *_, local = json.loads(out)
    assert local["uri"] == "local"
    assert [router["name"] for router in local["routers"]] == ["edge [1]", "quiet"]


def test_eighty_columns_have_the_reasons_below(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    long = msgspec.structs.replace(QUIET, reasons=("no veth of it " * 6,))
    monkeypatch.setattr(localrouters, "look_around", lambda: Local((EDGE, long)))
    lines = discover()[1].splitlines()
    assert [line.split()[0] for line in lines[:3]] == ["router", "edge", "quiet"]
    assert " ".join(lines[3:]).startswith("quiet: no veth of it no veth")
