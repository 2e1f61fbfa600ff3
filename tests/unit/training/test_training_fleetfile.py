"""A list of hosts is checked to its last key, and says how each command is to run there."""

import shlex
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from training.errors import FleetFileError
from training.fleet.file import FleetHost, load_fleet, parse_fleet

HOST = '[[host]]\nname = "edge-7"\nsweep = ["--router", "gold"]\n'


def refused(text: str) -> FleetFileError:
    with pytest.raises(FleetFileError) as caught:
        parse_fleet(text.encode(), "fleet.toml")
    assert str(caught.value).startswith("fleet.toml: ")
    return caught.value


def test_what_is_left_out_is_this_machine_and_its_xtc_train() -> None:
    (host,) = parse_fleet(HOST.encode(), "fleet.toml")
    assert (host.run, host.command) == ((), "xtc-train")
    wanted = ["xtc-train", "sweep", "--router", "gold", "--output", "xtc-train-edge-7.csv"]
    assert host.there(host.sweeping) == wanted


@pytest.mark.parametrize(
    ("text", "field", "fix"),
    [
        (HOST + 'rum = ["ssh"]', "host[0].rum", "did you mean run?"),
        (HOST + 'run = "ssh edge-7"', "host[0].run", 'run = ["ssh", "edge-7"]'),
        (HOST + "run = [1]", "host[0].run[0]", "a list of words"),
        (HOST + 'run = [""]', "host[0].run", "begin with a program"),
        (HOST + 'command = ""', "host[0].command", "the path of xtc-train"),
        (HOST + HOST, "host[0].name", "a name of its own"),
        (HOST.replace("edge-7", "index"), "host[0].name", "index.html"),
        (HOST.replace("edge-7", "../x"), "host[0].name", "letters, digits"),
        (HOST.replace("edge-7", "edge 7"), "host[0].name", "letters, digits"),
        ('[[host]]\nname = "a"', "host[0].sweep", "the options of `xtc-train sweep`"),
        ("[[host]]\nsweep = []", "host[0].name", "letters, digits"),
        (HOST.replace("gold", 'gold", "--json'), "host[0].sweep[2]", "remove it"),
        (HOST.replace("gold", 'gold", "--output=x'), "host[0].sweep[2]", "remove it"),
        (HOST.replace("gold", 'gold", "-ox.csv'), "host[0].sweep[2]", "remove it"),
        ("", "host", "[[host]]"),
        ("hosts = 1", "hosts", "did you mean host?"),
        ("host = []", "host", "[[host]]"),
        ('[host]\nname = "a"', "host", "[[host]]"),
        (HOST + "a = = 1", "line 4, column 5", "write TOML"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named_with_its_fix(text: str, field: str, fix: str) -> None:
    error = refused(text)
    assert error.field == field
    assert fix in error.fix


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(FleetFileError, match="No such file"):
        load_fleet(tmp_path / "fleet.toml")


WORDS = st.lists(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])))


@settings(max_examples=30)
@given(WORDS)
def test_words_pass_the_shell_at_the_other_end_of_ssh_whole(words: list[str]) -> None:
    host = FleetHost(name="edge", sweep=(), run=("/usr/bin/ssh", "-p", "22", "edge"))
    command = host.there(("printf", "%s\\0", "begin", *words))
    joined = " ".join(command[4:])  # as ssh does
    out = subprocess.run(["sh", "-c", joined], capture_output=True, check=True).stdout
    assert out.split(b"\0")[:-1] == [b"begin", *(word.encode() for word in words)]


@given(WORDS)
def test_other_prefixes_get_words_as_they_are(words: list[str]) -> None:
    host = FleetHost(name="edge", sweep=(), run=("docker", "exec", "-i", "edge"))
    assert host.there(tuple(words)) == [*host.run, *words]
    assert shlex.split(shlex.join(host.there(tuple(words)))) == [*host.run, *words]
