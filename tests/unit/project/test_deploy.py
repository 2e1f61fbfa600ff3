"""Installing xtc: unit files, starting configuration, man pages, the lock file's closure."""

import configparser
import os
import re
import shutil
import signal
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from documents_rig import check_manual
from maintainer_rig import Maintained
from running_daemon import RunningDaemon
from support.waiting import eventually
from typer.main import get_command

from common.units import Seconds
from deploy.locked import closure, parse
from deploy.manpages import commands, configuration, roff
from xtc.cli.main import app
from xtc.config.file import load_config, parse_config
from xtc.config.schema import DaemonSection
from xtc.config.timing import check_timing
from xtc.daemon.client import Client
from xtc.state.journal import JOURNAL
from xtc.wire import Status

ROOT = Path(__file__).parents[3]
SYSTEMD = ROOT / "deploy" / "systemd"
DEBIAN = ROOT / "deploy" / "debian"
SERVICES = sorted(set(SYSTEMD.glob("*.service")) - {SYSTEMD / "xtc-release.service"})
"""All units of programs that stay."""
STARTING = ROOT / "deploy" / "etc" / "xtc.toml"
LOCK = (ROOT / "requirements.lock").read_text()
DATE = "2026-11-21"
DOCUMENT = (ROOT / "docs" / "reference" / "configuration.md").read_text()


# --- units


def service(name: str) -> configparser.SectionProxy:
    """Read a unit's [Service]; of a key that is there more than once, the last."""
    unit = configparser.RawConfigParser(strict=False, delimiters="=", comment_prefixes="#")
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read_string((SYSTEMD / name).read_text())
    return unit["Service"]


def test_the_watchdog_is_one_that_the_daemon_accepts() -> None:
    watchdog = float(service("xtc.service")["WatchdogSec"])
    period, meter = Seconds(DaemonSection().period_s), Seconds(DaemonSection().meter_period_s)
    check_timing(period, meter, Seconds(watchdog))


def test_the_unit_makes_the_directories_that_the_daemon_uses() -> None:
    unit = service("xtc.service")
    assert f"/var/lib/{unit['StateDirectory']}" == DaemonSection().state_dir
    assert f"/run/{unit['RuntimeDirectory']}" == DaemonSection().runtime_dir
    assert (unit["StateDirectoryMode"], unit["RuntimeDirectoryMode"]) == ("0700", "0750")
    # A start that fails beside a running daemon must not remove that daemon's sockets.
    assert unit["RuntimeDirectoryPreserve"] == "yes"


@pytest.mark.parametrize("path", SERVICES, ids=lambda path: path.name)
def test_a_unit_that_may_listen_waits_for_the_addresses_of_the_machine(path: Path) -> None:
    for key in ("Wants", "After"):
        words = " ".join(re.findall(rf"(?m)^{key}=(.+)$", path.read_text())).split()
        assert "network-online.target" in words


def test_a_crash_is_followed_by_a_restart_which_is_what_adopts() -> None:
    unit = service("xtc.service")
    assert unit["Type"] == "notify"
    assert unit["Restart"] == "on-failure"


DOCUMENTED_SYSTEMD = 252
MEDIUM = 5.0
"""From here systemd-analyze calls a unit's exposure medium."""


def exposure(directory: Path) -> float:
    said = subprocess.run(
        ["systemd-analyze", "security", "--offline=true", "--no-pager", directory / "xtc.service"],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"LC_ALL": "C.UTF-8"},
    ).stdout
    (score,) = re.findall(r"exposure level for xtc\.service: ([\d.]+)", said)
    return float(score)


@pytest.mark.external
@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd-analyze")
def test_the_sandbox_is_as_tight_as_documented(tmp_path: Path) -> None:
    shutil.copy(SYSTEMD / "xtc.service", tmp_path)
    open_to_all = exposure(tmp_path)
    (tmp_path / "xtc.service.d").mkdir()
    shutil.copy(SYSTEMD / "libvirt-only.conf", tmp_path / "xtc.service.d")
    text = (ROOT / "docs" / "howto" / "install-kvm.md").read_text()
    documented = [float(score) for score in re.findall(r"\| \*\*([\d.]+)\*\* \|", text)]
    found = [open_to_all, exposure(tmp_path)]
    if systemd_version() == DOCUMENTED_SYSTEMD:
        assert found == documented
    assert found[1] < found[0] < MEDIUM, "each version of systemd knows more to look for"


def systemd_version() -> int:
    said = subprocess.run(["systemd-analyze", "--version"], capture_output=True, check=True).stdout
    return int(said.split()[1])


@pytest.mark.external
@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd-analyze")
def test_systemd_understands_every_line(tmp_path: Path) -> None:
    """All that it may find amiss is that xtc is not installed where the tests run."""
    (tmp_path / "xtc.service.d").mkdir()
    shutil.copy(SYSTEMD / "libvirt-only.conf", tmp_path / "xtc.service.d")
    for unit in SYSTEMD.glob("*.service"):
        shutil.copy(unit, tmp_path)
        said = subprocess.run(
            ["systemd-analyze", "verify", "--man=no", tmp_path / unit.name],
            capture_output=True,
            text=True,
            check=False,
        ).stderr
        amiss = [line for line in said.splitlines() if "is not executable: No such" not in line]
        assert amiss == []


# --- after the daemon's end


@pytest.fixture
def crashed(tmp_path: Path) -> Iterator[RunningDaemon]:
    """A daemon that was killed while it held a router."""
    with RunningDaemon(tmp_path) as daemon:
        daemon.configure(router='setpoint = "20kpps"')
        daemon.start()
        journal = daemon.state / JOURNAL
        eventually(lambda: journal.exists() and b'"original"' in journal.read_bytes())
        daemon.signal(signal.SIGKILL)
        daemon.ended()
        yield daemon


def after_stop(daemon: RunningDaemon, result: str) -> str:
    programs = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    places = {
        "XTC_CONFIG": str(daemon.path),
        "XTC_RUNTIME_DIR": str(daemon.run),
        "XTC_STATE_DIR": str(daemon.state),
    }
    done = subprocess.run(
        [SYSTEMD / "after-stop"],
        env=os.environ | places | {"PATH": programs, "SERVICE_RESULT": result},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def test_a_crash_releases_nothing_and_a_stop_everything(crashed: RunningDaemon) -> None:
    for result in ("signal", "watchdog", "core-dump", "exit-code", "oom-kill"):
        assert after_stop(crashed, result) == ""
    assert after_stop(crashed, "timeout") == "a: released\n"
    assert after_stop(crashed, "success") == "nothing was capped\n"


def test_what_the_configuration_keeps_is_kept(crashed: RunningDaemon) -> None:
    crashed.configure(daemon='on_exit = "keep"', router='setpoint = "20kpps"')
    assert after_stop(crashed, "success") == ""
    crashed.path.write_text("a mistake")
    assert after_stop(crashed, "given-up") == "a: released\n"


def test_a_daemon_beside_the_unit_keeps_its_routers_when_systemd_gives_up(tmp_path: Path) -> None:
    with RunningDaemon(tmp_path) as daemon:
        daemon.configure(router='setpoint = "20kpps"')
        daemon.start()
        assert after_stop(daemon, "given-up") == ""
        with Client(daemon.run, timeout=10) as client:
            assert client.call(Status())[0].active


# --- removal


@pytest.mark.parametrize("name", ["journal", "journal.corrupt-7"])
def test_a_purge_keeps_the_originals_of_routers_that_are_still_capped(
    tmp_path: Path, name: str
) -> None:
    system = Maintained(tmp_path)
    state = tmp_path / "var/lib/xtc"
    state.mkdir(parents=True)
    (state / name).touch()
    system.program("xtc", "exit 1")
    assert "xtc: still capped, see above" in system.run(DEBIAN / "prerm", "remove")
    assert f"{state} stays" in system.run(DEBIAN / "postrm", "purge")
    assert (state / name).exists()
    system.program("xtc", "exit 0")
    assert system.run(DEBIAN / "prerm", "remove") == ""
    assert system.run(DEBIAN / "postrm", "purge") == ""
    assert not state.exists()


def test_a_removal_before_any_start_releases_nothing(tmp_path: Path) -> None:
    system = Maintained(tmp_path)
    system.program("xtc", "echo released >&2")
    assert system.run(DEBIAN / "prerm", "remove") == ""
    assert system.run(DEBIAN / "postrm", "remove") == ""


# --- the starting configuration


def test_a_fresh_installation_holds_nothing() -> None:
    assert load_config(STARTING).router == {}


def test_what_the_starting_configuration_suggests_is_right() -> None:
    lines = [line.removeprefix("# ") for line in STARTING.read_text().splitlines()]
    suggested = "\n".join(line for line in lines if re.match(r"\[|\w+ = ", line))
    kinds = {
        msgspec.to_builtins(router.actuator)["kind"]
        for router in parse_config(suggested).router.values()
    }
    assert kinds == {"cgroup", "deadline", "libvirt"}


# --- the lock's closure


def test_the_package_holds_what_the_daemon_needs_and_no_tools() -> None:
    needed = {one.name for one in closure(parse(LOCK))}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    direct = {re.match(r"[\w-]+", line)[0] for line in project["dependencies"]}  # type: ignore[index]
    assert direct <= needed
    assert needed.isdisjoint({"pytest", "mypy", "ruff", "hypothesis", "matplotlib", "scipy"})


def test_the_closure_follows_who_needs_what() -> None:
    text = (
        "a==1 \\\n    --hash=sha256:00\n    # via xtc (pyproject.toml)\n"
        "b==1 ; python_version < '4' \\\n    --hash=sha256:01\n    # via\n    #   c\n    #   a\n"
        "c==1 \\\n    --hash=sha256:02\n    # via xtc (pyproject.toml:dev)\n"
    )
    assert [one.name for one in closure(parse(text))] == ["a", "b"]
    assert "".join(one.text for one in parse(text)) == text


def test_a_lock_file_of_another_kind_is_refused() -> None:
    with pytest.raises(ValueError, match="no name and version"):
        list(parse("-e .\n"))


# --- man pages


def leaves(command: Any, words: tuple[str, ...] = ("xtc",)) -> Iterator[tuple[str, Any]]:
    children = getattr(command, "commands", {})
    for name, child in children.items():
        yield from leaves(child, (*words, name))
    if not children:
        yield " ".join(words), command


def test_every_command_and_option_is_in_the_manual() -> None:
    page = commands.page(get_command(app), DATE)
    _, *sections = re.split(r'(?m)^\.SS "', page)
    manual = {section.partition('"')[0].replace("\\", ""): section for section in sections}
    found = dict(leaves(get_command(app)))
    assert set(manual) == set(found)
    for words, command in found.items():
        for option in (each for parameter in command.params for each in parameter.opts):
            assert roff.escaped(option).upper() in manual[words].upper(), (words, option)


def test_every_key_is_in_the_manual() -> None:
    page = configuration.page(DOCUMENT, DATE)
    shown = page.partition(".SH TABLES")[2].partition(".SH EXAMPLE")[0]
    keys = re.findall(r"(?m)^\.TP\n\\fB(\w+)\\fR$", shown)
    every = [*configuration.tables(), *configuration.actuators()]
    assert keys == [field.name for _, one in every for field in msgspec.structs.fields(one)]


def test_a_key_that_nobody_explains_has_no_manual() -> None:
    with pytest.raises(configuration.UndocumentedError, match=r"daemon\.on_exit"):
        configuration.page(DOCUMENT.replace("| `on_exit`", "| `on_quit`"), DATE)


def test_text_stands_for_itself() -> None:
    assert roff.inline(".a `b-c` [d](e.md) \\f") == r"\&.a \fBb\-c\fR d \ef"


@pytest.mark.parametrize("name", ["xtc.8", "xtc.toml.5"])
def test_the_manual_is_free_of_warnings(name: str) -> None:
    pages = {
        "xtc.8": lambda: commands.page(get_command(app), DATE),
        "xtc.toml.5": lambda: configuration.page(DOCUMENT, DATE),
    }
    check_manual(pages[name]())
