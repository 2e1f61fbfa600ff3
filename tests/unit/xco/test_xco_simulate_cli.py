"""xco simulate: what is typed or read from a file is what is run, and mistakes are named."""

import json
import re
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from xco.errors import ConfigError, UnitError, XcoError
from xco.simulate.cli import simulate
from xco.simulate.options import FlowTable, Options, load_options, overridden, scenario_of

APP = typer.Typer()
APP.command()(simulate)

TOPOLOGY = """
[switch.s]
[host.a]
[host.b]
[host.c]
[[link]]
between = ["a", "s"]
capacity = "1Gbps"
[[link]]
between = ["b", "s"]
capacity = "1Gbps"
[[link]]
between = ["c", "s"]
capacity = "100Mbps"
buffer = "32KB"
"""


def invoked(*arguments: str) -> dict[str, object]:
    outcome = CliRunner().invoke(APP, [*arguments, "--json"], catch_exceptions=False)
    assert outcome.exit_code == 0
    found: dict[str, object] = json.loads(outcome.stdout)
    return found


def written(path: Path, text: str) -> str:
    path.write_text(text)
    return str(path)


def test_options_say_what_is_run() -> None:
    found = invoked("--rows", "2", "--strategy", "rate", "--seconds", "0.01", "--slot", "1ms")
    assert (found["hosts"], found["flows"], found["slots"]) == (400, 200, 10)
    assert found["strategy"] == "rate"
    assert found["loss"] == pytest.approx(0, abs=1e-9)


def test_hosts_are_rows_of_two_hundred() -> None:
    assert len(scenario_of(Options(hosts=800)).topology.hosts) == 800


def test_several_strategies_are_compared() -> None:
    arguments = ("--setup", "incast", "--senders", "3", "--seconds", "0.05", "--buffer", "0")
    outcome = CliRunner().invoke(
        APP,
        [*arguments, "--strategy", "uncoordinated", "--strategy", "rate"],
        catch_exceptions=False,
    )
    assert outcome.exit_code == 0
    assert "uncoordinated" in outcome.stdout
    assert "66.67%" in outcome.stdout


def test_a_file_says_all_that_options_do_not(tmp_path: Path) -> None:
    topology = written(tmp_path / "topology.toml", TOPOLOGY)
    scenario = written(
        tmp_path / "scenario.toml",
        f"""
        [simulation]
        topology = "{topology}"
        strategy = "rate"
        seconds = 0.5
        [[flow]]
        source = "a"
        destination = "c"
        [[flow]]
        source = "b"
        destination = "c"
        rate = "10Mbps"
        """,
    )
    found = invoked(scenario, "--strategy", "uncoordinated", "--seconds", "0.2")
    assert (found["hosts"], found["flows"], found["strategy"]) == (3, 2, "uncoordinated")
    assert found["seconds"] == pytest.approx(0.2)
    assert found["goodput_bps"] == pytest.approx(100e6)


def test_a_place_given_takes_the_place_of_the_files() -> None:
    assert overridden(Options(rows=4), {"hosts": 800, "rows": None}).rows is None


def test_a_picture_is_drawn(tmp_path: Path) -> None:
    picture = tmp_path / "run.png"
    invoked("--setup", "incast", "--strategy", "rate", "--seconds", "0.02", "--plot", str(picture))
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_a_picture_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    arguments = ["--setup", "incast", "--strategy", "rate", "--seconds", "0.02", "--plot"]
    with pytest.raises(ConfigError, match="--plot"):
        CliRunner().invoke(
            APP, [*arguments, str(tmp_path / "no" / "a.png")], catch_exceptions=False
        )


def test_three_hosts_have_no_halves_but_can_be_shuffled(tmp_path: Path) -> None:
    given = ("--topology", written(tmp_path / "rack.toml", TOPOLOGY), "--seconds", "0.01")
    with pytest.raises(ConfigError, match=r"no halves.*--traffic shuffled"):
        CliRunner().invoke(APP, [*given], catch_exceptions=False)
    assert invoked(*given, "--traffic", "shuffled")["flows"] == 3


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"hosts": 300}, "hosts.*multiple of 200"),
        ({"hosts": 400, "rows": 2}, "more than one"),
        ({"setup": "incast", "rows": 4}, "rows.*incast"),
        ({"rows": 0}, "rows"),
        ({"rows": 100_000}, "rows.*327"),
        ({"setup": "incast", "senders": 0}, "senders"),
        ({"senders": 3}, "senders.*incast and uplink"),
        ({"topology": "rack.toml", "senders": 3}, "senders.*incast and uplink"),
        ({"setup": "incast", "senders": 3, "tcp": 4}, "tcp"),
        ({"tcp": 1}, "tcp.*incast"),
        ({"setup": "ring"}, "setup.*tree, incast or uplink"),
        ({"strategy": "slices"}, "strategy.*uncoordinated"),
        ({"seconds": -1.0}, "seconds"),
        ({"traffic": "shuffled", "seed": -1}, "seed.*a whole number from 0 on"),
        ({"seconds": float("nan")}, "seconds"),
        ({"slot": "fast"}, "slot"),
        ({"buffer": "large"}, "buffer"),
        ({"rate": "0bps"}, "rate"),
        ({"topology": "no-such-file.toml"}, "no-such-file.toml"),
    ],
)
def test_mistakes_are_named(given: dict[str, object], words: str) -> None:
    with pytest.raises(XcoError, match=words):
        scenario_of(overridden(Options(), given)).check()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[simulation]\nrow = 3", "row.*did you mean rows"),
        ("[simulations]", "simulations.*did you mean simulation"),
        ("[[flow]]\nsource = 'a'", r"flow\[0\].destination.*missing"),
        ("simulation = 3", "simulation.*malformed"),
        ("][", "not TOML"),
    ],
)
def test_mistakes_in_files_are_named(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        load_options(Path(written(tmp_path / "scenario.toml", text)))


@pytest.mark.parametrize(
    ("flow", "words"),
    [
        ('source = "a"\ndestination = "z"', r"flow\[0\].destination.*'z'"),
        (
            'source = "a"\ndestination = "b"\nkind = "tcp"\nrate = "1Mbps"',
            r"flow\[0\].rate.*window",
        ),
        ('source = "a"\ndestination = "b"\nrate = "slow"', r"flow\[0\].rate"),
    ],
)
def test_flows_that_cannot_be_are_named(tmp_path: Path, flow: str, words: str) -> None:
    topology = written(tmp_path / "topology.toml", TOPOLOGY)
    text = f'[simulation]\ntopology = "{topology}"\n[[flow]]\n{flow}\n'
    options, listed = load_options(Path(written(tmp_path / "scenario.toml", text)))
    with pytest.raises((ConfigError, UnitError), match=words):
        scenario_of(options, listed)


def test_flows_that_are_named_have_kind_and_rate_of_their_own() -> None:
    flow = FlowTable("h1-1-1", "h2-1-1")
    for options in (Options(tcp=1), Options(rate="1Mbps")):
        with pytest.raises(ConfigError, match="one by one"):
            scenario_of(options, (flow,))


def test_the_file_in_the_documentation_can_be_read_and_names_every_key(tmp_path: Path) -> None:
    page = (Path(__file__).parents[3] / "docs" / "reference" / "xco-simulate.md").read_text()
    (text,) = re.findall(r"^```toml\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    options, listed = load_options(Path(written(tmp_path / "scenario.toml", text)))
    assert options.topology == "rack.toml"
    assert [flow.kind for flow in listed] == ["udp", "tcp"]
    missing = {key for key in Options.__struct_fields__ if f"{key} = " not in text}
    assert missing == set()
