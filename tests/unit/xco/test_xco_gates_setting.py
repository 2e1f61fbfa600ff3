"""`coordinator.gates`: what the loop is told, what is refused, and what `check` says of it."""

from pathlib import Path

import pytest

from xco.coordinator import gate
from xco.coordinator import shell as coordinator
from xco.coordinator.config import CoordinatorConfig, load_config, plain
from xco.errors import ConfigError, Unsupported

TOPOLOGY = """
[switch.s]
[host.a]
addresses = ["10.0.0.1"]
[host.b]
addresses = ["10.0.0.2"]
[[link]]
between = ["a", "s"]
capacity = "1Gbps"
[[link]]
between = ["b", "s"]
capacity = "1Gbps"
"""


def settings(folder: Path, gates: str, classifier: str = "auto") -> CoordinatorConfig:
    (folder / "topology.toml").write_text(TOPOLOGY)
    file = folder / "xco.toml"
    file.write_text(
        f'[coordinator]\nhost = "a"\ninterface = "e0"\ntopology = "{folder}/topology.toml"\n'
        f'key_file = "key"\ncontrollers = ["10.0.0.9:7400"]\n'
        f'gates = "{gates}"\nclassifier = "{classifier}"\n'
    )
    return load_config(file)


@pytest.mark.parametrize(
    ("gates", "classifier", "told"),
    [
        ("tbf", "auto", ("0", "0")),
        ("auto", "auto", ("1", "0")),
        ("auto", "u32", ("0", "0")),
        ("edt", "bpf", ("1", "1")),
    ],
)
def test_the_loop_is_told_what_may_be_and_what_must_be(
    tmp_path: Path, gates: str, classifier: str, told: tuple[str, str]
) -> None:
    lines = dict(
        line.split(" ", 1) for line in plain(settings(tmp_path, gates, classifier)).splitlines()
    )
    assert (lines["edt"], lines["edt_needed"]) == told


def test_departure_times_without_a_program_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r'coordinator.gates: "edt" needs a BPF program'):
        settings(tmp_path, "edt", "u32")


def test_a_word_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r'coordinator.gates.*"tbf", "edt" or "auto"'):
        settings(tmp_path, "fq")


@pytest.mark.parametrize(
    ("lacks", "refused", "said"),
    [
        ([], "", ("edt", "")),
        (["fq"], "", ("tbf", "the kernel lacks fq")),
        ([], "no such instruction", ("tbf", "no such instruction")),
    ],
)
def test_check_says_what_the_gates_would_be(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    lacks: list[str],
    refused: str,
    said: tuple[str, str],
) -> None:
    monkeypatch.setattr(gate, "lacking", lambda _: lacks)
    monkeypatch.setattr(coordinator, "_refusal", lambda _: refused)
    assert coordinator.gates(settings(tmp_path, "auto")) == said
    assert coordinator.gates(settings(tmp_path, "tbf")) == ("tbf", "")
    if lacks or refused:
        with pytest.raises(Unsupported, match=f"{said[1]}.*load the module sch_fq"):
            coordinator.gates(settings(tmp_path, "edt"))
    else:
        assert coordinator.gates(settings(tmp_path, "edt")) == said
