"""The command zovn with a running switch: words, JSON, exit codes."""

import json
import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from zovn_switch_rig import RunningSwitch, build_guest, running_switch

from zovn.core_files import program
from zovn.errors import SwitchAway, SwitchError
from zovn.switch import control


@pytest.fixture(scope="module")
def switch() -> Iterator[RunningSwitch]:
    build_guest()
    with running_switch(names="ab") as made:
        yield made


def zovn(*words: str, switch: RunningSwitch | None = None) -> "subprocess.CompletedProcess[str]":
    where = ["--control", str(switch.config.control)] if switch else []
    command = [sys.executable, "-m", "zovn", "switch", *words, *where]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_ports_are_added_listed_and_removed(switch: RunningSwitch) -> None:
    options = ("--socket", switch.socket("vm"), "--vlan", "0", "--tagged", "7", "--tagged", "10-12")
    options += ("--class", "3", "--rate", "2Gbit/s")
    assert zovn("port", "add", "vm", *options, switch=switch).returncode == 0
    listed = zovn("port", "list", switch=switch).stdout.splitlines()
    assert listed[0].split() == [*("port", "kind", "peer", "vlan", "tagged", "class", "rate", "at")]
    vm = ["vm", "vhost", "-", "-", "7,10-12", "3", "2Gb/s", switch.socket("vm")]
    assert listed[3].split() == vm
    (_, _, found) = json.loads(zovn("port", "list", "--json", switch=switch).stdout)
    assert (found["name"], found["tagged"], found["class"]) == ("vm", ["7", "10-12"], 3)
    assert (found["rate"], found["interface"], found["lost"]) == (2_000_000_000, "", None)
    assert zovn("port", "remove", "vm", switch=switch).returncode == 0
    whole = ("port", "add", "vm", "--socket", switch.socket("vm"), "--tagged", "1-4094")
    assert zovn(*whole, switch=switch).returncode == 0
    assert control.ports(switch.config.control)[2].tagged == ("1-4094",)
    control.remove(switch.config.control, "vm")
    assert len(zovn("port", "list", switch=switch).stdout.splitlines()) == 3


def test_a_port_that_is_saved_is_in_the_settings_and_one_that_is_refused_is_not(
    switch: RunningSwitch, tmp_path: Path
) -> None:
    settings = tmp_path / "zovn.toml"
    before = (switch.folder / "zovn.toml").read_text()
    settings.write_text(before)
    saving = ("--save", "--config", str(settings))
    vm = ("vm", "--socket", switch.socket("vm"), "--vlan", "7")
    assert zovn("port", "add", *vm, *saving, switch=switch).returncode == 0
    added = f'\n[[switch.port]]\nname = "vm"\nsocket = "{switch.socket("vm")}"\nvlan = 7\n'
    assert settings.read_text() == before + added
    assert zovn("port", "add", *vm, *saving, switch=switch).returncode == 2
    settings.write_text(before)
    assert zovn("port", "add", *vm, *saving, switch=switch).returncode == 1  # it runs already
    assert settings.read_text() == before
    settings.write_text(before + added)
    assert zovn("port", "remove", "vm", *saving, switch=switch).returncode == 0
    assert settings.read_text() == before
    assert len(control.ports(switch.config.control)) == 2


def test_the_exporter_serves_a_running_switch(switch: RunningSwitch) -> None:
    words = ["exporter", "--listen", "127.0.0.1:0", "--control", str(switch.config.control)]
    command = [sys.executable, "-m", "zovn", *words]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        url = process.stderr.readline().split()[-1]
        with urllib.request.urlopen(url, timeout=60) as got:
            said = got.read().decode()
        process.terminate()
        assert process.wait(60) == 0
    assert "zovn_up 1.0" in said
    assert "zovn_lossy_classes 0.0" in said
    assert 'zovn_port_congestion_drops_total{port="a"} 0.0' in said


def test_a_switch_that_is_stopped_is_away_after_some_patience(switch: RunningSwitch) -> None:
    switch.process.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, switch.process.pid, os.WSTOPPED)
    try:
        with pytest.raises(SwitchAway, match="no answer"):
            control.status(switch.config.control, 0.2)
    finally:
        switch.process.send_signal(signal.SIGCONT)
    assert control.status(switch.config.control).lossy == 0


def test_lossy_classes_are_counted() -> None:
    classes = {"1": {"limit_bytes": 64000}, "3": {"weight": 2}}
    with running_switch(names="a", classes=classes) as made:
        assert made.report().lossy == 1


def test_the_state_is_shown(switch: RunningSwitch) -> None:
    shown = zovn("status", switch=switch).stdout.splitlines()
    assert shown[1].split() == ["a", "-", *["0"] * 8]
    report = json.loads(zovn("status", "--json", switch=switch).stdout)
    assert [port["name"] for port in report["ports"]] == ["a", "b"]
    assert report["ports"][0]["counters"]["in"] == report["ports"][0]["drops"]["congestion"] == 0


def test_rates_are_shown_once_and_as_json(switch: RunningSwitch) -> None:
    once = ("top", "--once", "--every", "0.2")
    heading, *rows = zovn(*once, switch=switch).stdout.splitlines()
    assert heading.split()[:4] == ["port", "peer", "in/s", "out/s"]
    assert [row.split()[0] for row in rows] == ["a", "b"]
    (line,) = zovn(*once, "--json", switch=switch).stdout.splitlines()
    found = json.loads(line)
    assert found["seconds"] >= 0.2
    assert found["naps_per_s"] > 0  # it sleeps for 100 ms at most
    row = found["ports"][1]
    assert (row["name"], row["attached"], row["in_per_s"], row["held"]) == ("b", False, 0, 0)
    assert "port" not in row


def test_rates_end_with_the_switch(tmp_path: Path) -> None:
    done = zovn("top", "--control", str(tmp_path / "none"))
    assert (done.returncode, done.stdout) == (3, "")


def test_what_the_switch_refuses_is_a_failure(switch: RunningSwitch) -> None:
    done = zovn("port", "remove", "x", switch=switch)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "zovn: x: there is no such port\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("kind=veth path=/x", "a port of kind veth needs interface, and no path"),
        ("kind=veth interface=p path=/x", "a port of kind veth needs interface, and no path"),
        ("kind=veth interface=p offloads=1", "a port of kind veth has neither offloads nor group"),
        ("kind=vhost interface=p", "a port of kind vhost needs path, and no interface"),
        ("kind=veth interface=0123456789abcdef", "interface: write the name of an interface"),
        ("kind=vhost path=/x rate=x", "rate: write bits per second"),
        ("kind=vhost path=/x rate=1", "rate: from 1 Mb/s to 1 Tb/s"),
    ],
)
def test_the_program_checks_the_words_of_a_port(
    switch: RunningSwitch, words: str, said: str
) -> None:
    with pytest.raises(SwitchError, match=said):
        control.add(switch.config.control, f"name=x {words}")


def test_a_static_address_is_refused_to_a_second_port(switch: RunningSwitch) -> None:
    path, address = switch.config.control, "address=02:00:00:00:00:0a"
    control.add(path, f"name=x kind=vhost path={switch.socket('x')} {address}")
    second = f"name=y kind=vhost path={switch.socket('y')} {address}"
    with pytest.raises(
        SwitchError, match="y: 02:00:00:00:00:0a in VLAN 1 is a static address of port x"
    ):
        control.add(path, second)
    control.add(path, f"{second} vlan=7")
    for name in "xy":
        control.remove(path, name)
    control.add(path, second)
    control.remove(path, "y")


def test_a_port_has_no_more_static_addresses_than_the_settings_allow() -> None:
    with running_switch(names="a", addresses=1) as made:
        words = "address=02:00:00:00:00:0a address=02:00:00:00:00:0b"
        with pytest.raises(SwitchError, match="x: 2 static addresses; `addresses` of"):
            control.add(made.config.control, f"name=x kind=vhost path={made.socket('x')} {words}")


def test_a_mistake_is_wrong_usage(switch: RunningSwitch) -> None:
    done = zovn("port", "add", "x", "--trust", "me", switch=switch)
    assert done.returncode == 2
    assert "switch.port[0].trust: invalid enum value 'me' (write nothing, priority or dscp)" in (
        done.stderr
    )


def test_no_switch_has_its_own_exit_code(tmp_path: Path) -> None:
    done = zovn("status", "--control", str(tmp_path / "none"))
    assert done.returncode == 3
    assert "No such file or directory (start it: systemctl start zovn-switch, or" in done.stderr


def test_settings_are_checked_before_anything_starts(tmp_path: Path) -> None:
    path = tmp_path / "zovn.toml"
    path.write_text("[switch]\nstal = 1\n")
    for command in ("check", "run"):
        done = zovn(command, str(path))
        assert done.returncode == 2
        assert "switch.stal: no such key (did you mean stall?)" in done.stderr
    path.write_text("[switch]\n[[switch.port]]\nname = 'a'\n")
    assert zovn("check", str(path)).stdout == f"{path}: no mistake found; 1 ports\n"


def test_a_second_switch_does_not_take_the_sockets_of_the_first(switch: RunningSwitch) -> None:
    done = zovn("run", str(switch.folder / "zovn.toml"))
    assert done.returncode == 1
    assert "another program listens there" in done.stderr
    assert zovn("status", switch=switch).returncode == 0


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "control: missing"),
        ("control /x\nspeed 9\n", "speed: no such key"),
        ("control /x\nclass 8 0 0 1\n", "class: malformed"),
        ("control /x\nparked 0\n", "parked: 1 to 4096 frames for each port"),
        ("control /x", "a line is too long, or its end is missing"),
    ],
)
def test_the_program_checks_its_plain_configuration(
    switch: RunningSwitch, tmp_path: Path, text: str, said: str
) -> None:
    del switch  # has built it
    path = tmp_path / "plain"
    path.write_text(text)
    done = subprocess.run([program(), path], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (2, f"zovn-switch: {path}: {said}\n")


def test_wrong_usage_of_the_program_is_said(switch: RunningSwitch) -> None:
    del switch
    done = subprocess.run([program(), "--help"], capture_output=True, text=True, check=False)
    usage = "usage: zovn-switch CONFIGURATION | --release INTERFACE...\n"
    assert (done.returncode, done.stderr) == (2, usage)
