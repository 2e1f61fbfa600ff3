"""The controller's settings: read whole, or refused by file, key and a way to mend it."""

from pathlib import Path

import pytest

from xco.controller.config import load_controller_config
from xco.controller.loopfile import loop_text
from xco.errors import ConfigError
from xco.protocol.messages import Strategy
from xco.topology.shapes import star_topology

WHOLE = """
[controller]
topology = "net.toml"
listen = "[::1]:7401"
key = "xco.key"
lease = "shared"
run_dir = "/run/xco"
metrics = "127.0.0.1:9412"
strategy = "hybrid"
policy = "published"
max_min = true
on_demand = true
slice = "4ms"
lead = "500us"
guard = "20us"
pace = 0.95
realtime = 0

[weight]
h2 = 3

[coordinator]
anything = 1
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "xco.toml"
    path.write_text(text)
    return path


def test_the_whole_table_is_read(tmp_path: Path) -> None:
    config = load_controller_config(written(tmp_path, WHOLE))
    assert config.topology == tmp_path / "net.toml"
    assert config.listen == ("::1", 7401)
    assert config.metrics == ("127.0.0.1", 9412)
    assert (config.strategy, config.policy) == (Strategy.HYBRID, 0)
    assert config.durations_ns["slice"] == 4_000_000
    assert (config.pace_permille, config.realtime) == (950, 0)
    assert config.weights == {"h2": 3}


def test_the_loop_file_says_it_in_the_loops_words(tmp_path: Path) -> None:
    config = load_controller_config(written(tmp_path, WHOLE))
    topology = star_topology(2, "1Gbps")
    lines = loop_text(config, topology, epoch=7).splitlines()
    expected = {
        "epoch 7",
        "listen ::1",
        "port 7401",
        "strategy 2",
        "policy 0",
        "max_min 1",
        "on_demand 1",
        "slice_ns 4000000",
        "lead_ns 500000",
        "pace_permille 950",
        "hosts 2",
        "switches 1",
        "link 0 2 1000000000",
        "link 1 2 1000000000",
        "weight 1 3",
        f"digest {topology.hosts_digest().hex()}",
    }
    assert expected <= set(lines)
    assert lines.index("hosts 2") < lines.index("link 0 2 1000000000")


@pytest.mark.parametrize(("law", "line"), [("published", "published 1"), ("fair", "published 0")])
def test_the_loop_is_told_the_law_of_gcc(tmp_path: Path, law: str, line: str) -> None:
    text = WHOLE.replace('"hybrid"', '"gcc"').replace("max_min", f'law = "{law}"\nmax_min')
    config = load_controller_config(written(tmp_path, text))
    assert line in loop_text(config, star_topology(2, "1Gbps"), epoch=7).splitlines()


def test_a_weight_without_a_host_is_named(tmp_path: Path) -> None:
    config = load_controller_config(written(tmp_path, WHOLE))
    with pytest.raises(ConfigError, match=r"weight\.h2: no such host"):
        loop_text(config, star_topology(1, "1Gbps"), epoch=7)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", r"controller: missing \(add a table"),
        ("[controller]", r"controller\.topology: missing .*the path of the topology"),
        ("[controler]", "controler: no such table .*did you mean controller"),
        ('topology = "t"\nlisten = "7400"', r"controller\.listen: '7400' is malformed"),
        ('topology = "t"\nlisten = "::1:99999"', "malformed .*an address and a port"),
        ('topology = "t"\nslise = "2ms"', "slise: no such key .*did you mean slice"),
        ('topology = "t"\nslice = "soon"', r"controller\.slice: 'soon' is not"),
        ('topology = "t"\nslice = "10us"', r"slice: 10us is too short .*at least 100us"),
        ('topology = "t"\nslice = "11ms"', r"slice: 11ms is longer .*at most 10ms"),
        ('topology = "t"\nlead = "2ms"', r"controller\.slice: 2ms is too short"),
        ('topology = "t"\nsilence = "20ms"', r"controller\.silence: .*at least 30ms"),
        ('topology = "t"\ndrop = "40ms"', r"controller\.drop: .*at least 50ms"),
        ('topology = "t"\nstrategy = "best"', r"controller\.strategy: .*timeslice"),
        (
            'topology = "t"\nlaw = "published"',
            r'controller\.law: "published" needs "gcc", .*"timeslice" .*strategy = "gcc", or',
        ),
        ('topology = "t"\nlaw = "just"', r'controller\.law: .*"fair" or "published"'),
        ('topology = "t"\npace = 1.5', r"controller\.pace"),
        ('topology = "t"\nrealtime = 100', r"controller\.realtime"),
        ('topology = "t"\n[weight]\nh1 = 0', "weight: .*1 to 1000000"),
    ],
)
def test_a_mistake_is_named_with_a_way_to_mend_it(tmp_path: Path, text: str, said: str) -> None:
    whole = text if not text or text.startswith("[") else f"[controller]\n{text}"
    with pytest.raises(ConfigError, match=said) as caught:
        load_controller_config(written(tmp_path, whole))
    assert caught.value.file == str(tmp_path / "xco.toml")


def test_all_mistakes_of_a_table_are_told_each_on_its_own_line(tmp_path: Path) -> None:
    text = WHOLE.replace("listen =", "listn =").replace('"hybrid"', '"hybrd"')
    with pytest.raises(ConfigError) as raised:
        load_controller_config(written(tmp_path, text))
    lines = str(raised.value).split("\n")
    assert [line.partition(": ")[2].partition(":")[0] for line in lines] == [
        "controller.listn",
        "controller.strategy",
    ]
    assert raised.value.key == "controller.listn"


def test_all_unknown_tables_are_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"(?s)controler: no such table .*\n.*waits: no such"):
        load_controller_config(written(tmp_path, "[controler]\n[waits]\n"))
