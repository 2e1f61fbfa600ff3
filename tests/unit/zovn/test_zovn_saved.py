"""Ports in the file of settings: what is added and removed, and that all else stays as it is."""

from pathlib import Path
from typing import Final

import pytest
from hypothesis import given as generated
from hypothesis import strategies as st

from common.errors import ConfigError
from zovn.switch.saved import given, with_port, without_port, write
from zovn.switch.wire_table import wire_given

BEFORE: Final = """# ours
[switch]
stall = "2s"   # longer

# the router
[[switch.port]]
name = "vm1"
tagged = [
  "10",
]

# the service
[[ switch . port ]]  # as of May
name = 'vm2'

[xtc]
other = 1
"""
VM3: Final = given(name="vm3", vlan=7, tagged=("10", "20-29"), group=None, offloads=False)


def test_a_table_has_only_what_is_not_as_by_default() -> None:
    assert VM3 == {"name": "vm3", "vlan": 7, "tagged": ["10", "20-29"]}


def test_a_port_is_added_at_the_end() -> None:
    after = with_port(BEFORE, VM3, "f")
    assert after == BEFORE + '\n[[switch.port]]\nname = "vm3"\nvlan = 7\ntagged = ["10", "20-29"]\n'


WIRE: Final = ("local=10.0.0.1", "vni=42", "locations=/m", "line_rate=1Gbit/s", "pfc=3,4")


def test_a_wire_is_added_in_one_line_and_removed_without_a_trace() -> None:
    port = given(name="w", kind="wire", interface="eth1", wire=wire_given(WIRE))
    after = with_port(BEFORE, port, "f")
    assert after.endswith(
        'interface = "eth1"\nwire = { local = "10.0.0.1", vni = 42, locations = "/m", '
        'line_rate = "1Gbit/s", pfc = [3, 4] }\n'
    )
    assert without_port(after, "w", "f") == BEFORE


def test_what_is_no_key_of_a_wire_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"--wire: 'vni' is no KEY=VALUE \(write e\.g\. vni=42\)"):
        wire_given(["vni"])
    port = given(name="w", kind="wire", interface="eth1", wire=wire_given([*WIRE, "vni=x", "a=1"]))
    with pytest.raises(ConfigError, match=r"wire\.a: no such key"):
        with_port(BEFORE, port, "f")


def test_a_text_without_an_end_of_line_gets_one() -> None:
    assert with_port('[switch]\nstall = "1s"', {"name": "a"}, "f").startswith(
        '[switch]\nstall = "1s"\n'
    )


def test_what_was_added_is_removed_without_a_trace() -> None:
    assert without_port(with_port(BEFORE, VM3, "f"), "vm3", "f") == BEFORE


def test_a_port_in_the_middle_is_removed_and_its_neighbours_keep_their_comments() -> None:
    after = without_port(BEFORE, "vm1", "f")
    assert after == BEFORE.replace('[[switch.port]]\nname = "vm1"\ntagged = [\n  "10",\n]\n\n', "")
    assert "[xtc]\nother = 1\n" in without_port(BEFORE, "vm2", "f")


@pytest.mark.parametrize(
    "text",
    [
        '[switch]\nport = [{ name = "a" }]\n',
        'switch = { port = [{ name = "a" }] }\n',
        'switch.port = [{ name = "a" }]\n',
    ],
)
def test_ports_that_are_written_in_another_way_are_left_to_people(text: str) -> None:
    with pytest.raises(ConfigError, match=r"write the port by hand: \[\[switch\.port\]\] name = "):
        with_port(text, VM3, "f")
    with pytest.raises(ConfigError, match='remove by hand the lines that set name = "a"'):
        without_port(text, "a", "f")


def test_lines_that_only_look_like_a_table_are_not_removed() -> None:
    text = '[switch]\n[[switch.port]]\nname = "a"\n[x]\ntext = """\n[[switch.port]]\n"""\n'
    with pytest.raises(ConfigError, match="not clear"):
        without_port(text, "a", "f")


def test_a_value_that_looks_like_the_next_table_is_not_cut() -> None:
    text = '[[switch.port]]\nname = "a"\ntagged = [\n"1",\n  ]\n[y]\nz = [\n[1],\n]\n'
    assert without_port(text, "a", "f") == "[y]\nz = [\n[1],\n]\n"


def test_a_port_of_the_same_name_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"switch\.port\[2\]\.name: 'vm1' is that of port 0"):
        with_port(BEFORE, {"name": "vm1"}, "f")


def test_a_file_with_mistakes_stays_as_it_is() -> None:
    for text in ("[switch", "[switch]\nstal = 1\n"):
        with pytest.raises(ConfigError):
            with_port(text, VM3, "f")


def test_a_port_that_is_not_in_the_file_is_said() -> None:
    with pytest.raises(ConfigError, match=r"f: switch\.port: no port 'vm9' \(leave --save out\)"):
        without_port(BEFORE, "vm9", "f")


NAMES: Final = st.lists(st.sampled_from("abcdefgh"), unique=True, min_size=1)
BETWEEN: Final = st.sampled_from(["", "\n", "# word\n", "\n# word\n\n", '[t{}]\na = """\n[\n"""\n'])


@generated(NAMES, st.lists(BETWEEN, min_size=9, max_size=9), st.data())
def test_removing_a_port_removes_its_lines_and_at_most_one_blank_one(
    names: list[str], between: list[str], data: st.DataObject
) -> None:
    tables = [f'[[switch.port]]\nname = "{name}"\nvlan = 3\n' for name in names]
    gaps = [gap.replace("{}", str(number)) for number, gap in enumerate(between)]
    text = "[switch]\n" + "".join(map("".join, zip(gaps, tables, strict=False))) + gaps[-1]
    gone = data.draw(st.integers(0, len(names) - 1))
    after = without_port(text, names[gone], "f")
    kept = text.replace(tables[gone], "")
    assert filled_lines(after) == filled_lines(kept)
    assert 0 <= len(kept) - len(after) <= 1


def filled_lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if line]


def test_the_file_keeps_its_mode_and_a_link_leads_to_it_still(tmp_path: Path) -> None:
    file, link = tmp_path / "real.toml", tmp_path / "zovn.toml"
    file.write_text(BEFORE)
    file.chmod(0o600)
    link.symlink_to(file)
    write(link, "[switch]\n")
    assert link.is_symlink()
    assert (file.read_text(), file.stat().st_mode & 0o777) == ("[switch]\n", 0o600)
    assert sorted(tmp_path.iterdir()) == [file, link]


def test_a_file_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="the running switch has changed alone"):
        write(tmp_path / "none", "[switch]\n")
