"""The local coordinator of a host: starts the compiled loop, outlives it, and writes its log.

The loop creates and moves the gates (xco/core/coordinator/main.c). This module writes its
configuration and its log, and makes sure that none of its queues stay on the interface.
"""

import signal
import subprocess
from pathlib import Path
from types import FrameType
from typing import Final

import structlog

from xco.coordinator import gate
from xco.coordinator.config import CoordinatorConfig, plain
from xco.coordinator.locations_file import LocationsFile
from xco.coordinator.status import Served, running_pid
from xco.coordinator.vm_check import warnings
from xco.core_files import CLASSIFIER, SHIM, find, program
from xco.errors import ConfigError, CoreError, Denied, GateError, Gone, Unsupported
from xco.protocol.keys import read_host_keys

PROGRAM: Final = "xco-coordinator"
_ERRORS: Final[dict[int, type[GateError]]] = {3: Unsupported, 4: Denied, 5: Gone}
_EXIT_CONFIG: Final = 2
_EXIT_BUSY: Final = 7
_UNTOUCHED: Final = frozenset({_EXIT_CONFIG, _EXIT_BUSY})
"""The loop exited before it took the interface: the queues there belong to another process."""
_log = structlog.get_logger()


def run(config: CoordinatorConfig) -> None:
    """Coordinate until SIGTERM or SIGINT, then restore the interface.

    Raises:
        Gone, Denied, Unsupported, GateError: the interface cannot be gated.
        ConfigError: there is no key, or the loop rejects the configuration.
        ControllerError: the address of the metrics cannot be listened on now.
        CoreError: the compiled core is not built.
    """
    check_key(config)
    gate.check(config.table.interface, needed(config))
    marks(config)
    for warning in warnings(config):
        _log.warning("coordinator", said=warning)
    command = [str(program(PROGRAM)), str(_written(config))]
    with Served(config), LocationsFile(config):
        code, last = _coordinated(config, command)
    _judge(config, code, last)


def classifier(config: CoordinatorConfig) -> tuple[str, str]:
    """Return the classifier to use here, "bpf" or "u32", and why it is not a BPF program.

    Raises:
        Unsupported: the configuration requires a program, and none can be loaded.
    """
    if config.table.classifier == "u32":
        return "u32", "coordinator.classifier asks for it"
    problem = _refusal()
    if problem and config.table.classifier == "bpf":
        fix = 'make it possible, or write coordinator.classifier = "auto"'
        raise Unsupported(config.table.interface, f"no BPF program classifies: {problem}", fix)
    return ("u32", problem) if problem else ("bpf", "")


def gates(config: CoordinatorConfig) -> tuple[str, str]:
    """Return the gates to use here, "tbf" or "edt", and why not those that the settings ask for.

    Raises:
        Unsupported: the settings require departure times, and the kernel cannot keep them.
        Denied: CAP_SYS_ADMIN is lacking.
    """
    if config.table.gates == "tbf":
        return "tbf", ""
    missing = ", ".join(gate.lacking(gate.NEEDED_BY_EDT))
    by_settings = 'coordinator.classifier is "u32"' if config.table.classifier == "u32" else ""
    problem = f"the kernel lacks {missing}" if missing else by_settings or _refusal("--try-edt")
    if problem and config.table.gates == "edt":
        fix = 'load the module sch_fq, or write coordinator.gates = "tbf"'
        raise Unsupported(config.table.interface, f"no times of departure: {problem}", fix)
    return ("tbf", problem) if problem else ("edt", "")


def marks(config: CoordinatorConfig) -> str:
    """Return what happens to congestion marks here: "off", "hide" or "keep".

    Raises:
        Unsupported: the settings ask for counts, and the program for them is not built. Whether the
            kernel takes it, the loop finds out when it attaches it.
    """
    if config.table.marks != "off" and find(SHIM) is None:
        fix = 'install clang and build the core again, or write coordinator.marks = "off"'
        problem = f"no program counts congestion marks: {SHIM} is not built"
        raise Unsupported(config.table.interface, problem, fix)
    return config.table.marks


def needed(config: CoordinatorConfig) -> tuple[str, ...]:
    """Return what the kernel must support for the gates that the settings ask for."""
    return gate.NEEDED_BY_EDT if config.table.gates == "edt" else gate.NEEDED


def _refusal(trial: str = "--try") -> str:
    """Return why no BPF program can be loaded; empty if one can."""
    file = find(CLASSIFIER)
    if file is None:
        return f"{CLASSIFIER} is not built: install clang, and build the core again"
    command = [str(program(PROGRAM)), trial, str(file)]
    tried = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603  our own
    return tried.stderr.strip() if tried.returncode else ""


def check_key(config: CoordinatorConfig) -> None:
    """Check that the key file holds the keys of this host, with `hygenicc` also for all others.

    Raises:
        ConfigError: the file cannot be read, belongs to another host, or lacks keys.
    """
    table, hosts = config.table, len(config.topology.hosts)
    try:
        keys = read_host_keys(Path(table.key_file), config.host, table.host)
    except ConfigError as error:
        problem = f"{error.file}: {error.problem}"
        raise ConfigError(config.file, "coordinator.key_file", problem, error.fix) from error
    known = len(keys.peers.to) if keys.peers else 0
    if table.fallback == "hygenicc" and known < hosts:
        problem = f"{table.key_file}: has keys for messages to {known} hosts of {hosts}"
        fix = f"make it again on a controller: xco key host MASTER {table.host} --topology FILE"
        raise ConfigError(config.file, "coordinator.key_file", problem, fix)


def _coordinated(config: CoordinatorConfig, command: list[str]) -> tuple[int, str]:
    """Run the loop until it exits and release the interface; return exit code and last line."""
    loop = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)  # noqa: S603  our own program
    try:
        with loop:
            _stop_with(loop)
            last = _logged(loop)
    finally:
        if loop.returncode not in _UNTOUCHED:
            release(config)
    return loop.returncode, last


def _written(config: CoordinatorConfig) -> Path:
    """Write the loop's configuration and return its path.

    Raises:
        ConfigError: a directory cannot be created or written.
    """
    try:
        for folder in (config.table.runtime_dir, config.table.state_dir):
            Path(folder).mkdir(parents=True, exist_ok=True)
        config.plain_file.write_text(plain(config))
    except OSError as error:
        where, problem = str(error.filename), error.strerror or "cannot be written"
        raise ConfigError(config.file, "coordinator.runtime_dir", f"{where}: {problem}") from error
    return config.plain_file


def _stop_with(loop: "subprocess.Popen[str]") -> None:
    """Forward the signals that stop us."""

    def stop(_number: int, _frame: FrameType | None) -> None:
        loop.terminate()

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)


def _logged(loop: "subprocess.Popen[str]") -> str:
    """Log the loop's output until it exits; return its last line."""
    said = ""
    assert loop.stderr is not None
    for line in loop.stderr:
        said = line.strip().removeprefix(f"{PROGRAM}: ")
        _log.info("coordinator", said=said)
    return said


def _judge(config: CoordinatorConfig, code: int, last: str) -> None:
    if code == _EXIT_CONFIG:
        raise ConfigError(config.file, "coordinator", last)
    if code == _EXIT_BUSY:
        raise _busy(config)
    if code < 0:
        raise _killed(config, -code)
    if code != 0:
        target, _, problem = last.partition(": ")
        raise _ERRORS.get(code, GateError)(target, problem or f"the loop ended with code {code}")


def _busy(config: CoordinatorConfig) -> GateError:
    interface, pid = config.table.interface, running_pid(config)
    if pid is None:
        return GateError(interface, "a coordinator is running", "stop it first")
    problem = f"a coordinator is running, with the process {pid}"
    return GateError(interface, problem, f"stop it first: kill {pid}")


def _killed(config: CoordinatorConfig, number: int) -> GateError:
    """Return the message for a guard that ended without one; the release has been done."""
    named = {int(one): one.name for one in signal.Signals}.get(number, "no name")
    problem = (
        f"the guard was ended by signal {number} ({named}): {config.table.interface} is unshaped"
    )
    fix = "start it again; the system's log may say who did it"
    return GateError(PROGRAM, problem, fix)


def release(config: CoordinatorConfig) -> bool:
    """Remove what a killed coordinator left; return whether there was anything.

    If the compiled core is available to open the gates, waiting packets are sent first.

    Raises:
        Denied: CAP_NET_ADMIN is lacking.
        GateError: the kernel refuses.
    """
    interface = config.table.interface
    try:
        there = gate.gated(interface)
        if there:
            subprocess.run([program(PROGRAM), "--release", interface], check=False)  # noqa: S603  our own program
    except Gone:
        return False
    except CoreError as error:
        there = True
        _log.warning("gates are removed with what waits behind them", reason=str(error))
    return gate.release(interface) or there
