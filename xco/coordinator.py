"""The local coordinator of a host: starts the compiled loop, outlives it, and logs what it says.

The loop makes and moves the gates (xco/core/coordinator.c). This is its configuration, its log, and
one more pair of eyes to see that nothing of it stays on the interface.
"""

import signal
import subprocess
from pathlib import Path
from types import FrameType
from typing import Final

import structlog

from xco import gate
from xco.coordinator_config import CoordinatorConfig, plain
from xco.coordinator_status import Served
from xco.core_files import program
from xco.errors import ConfigError, CoreError, Denied, GateError, Gone, Unsupported

PROGRAM: Final = "xco-coordinator"
_ERRORS: Final[dict[int, type[GateError]]] = {3: Unsupported, 4: Denied, 5: Gone}
_EXIT_CONFIG: Final = 2
_log = structlog.get_logger()


def run(config: CoordinatorConfig) -> None:
    """Coordinate until SIGTERM or SIGINT, then leave the interface as it was.

    Raises:
        Gone, Denied, Unsupported, GateError: the interface cannot be gated.
        ConfigError: the loop does not take the configuration.
        CoreError: the compiled core is not built.
    """
    gate.check(config.table.interface)
    command = [str(program(PROGRAM)), str(_written(config))]
    try:
        with Served(config), subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as loop:  # noqa: S603  our own program
            _stop_with(loop)
            last = _logged(loop)
    finally:
        release(config)
    _judge(config, loop.returncode, last)


def _written(config: CoordinatorConfig) -> Path:
    """Write what the loop reads, and return where.

    Raises:
        ConfigError: a folder cannot be made or written.
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
    """Pass on what tells us to stop."""

    def stop(_number: int, _frame: FrameType | None) -> None:
        loop.terminate()

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)


def _logged(loop: "subprocess.Popen[str]") -> str:
    """Log what the loop says until it ends; returns its last words."""
    said = ""
    assert loop.stderr is not None
    for line in loop.stderr:
        said = line.strip().removeprefix(f"{PROGRAM}: ")
        _log.info("coordinator", said=said)
    return said


def _judge(config: CoordinatorConfig, code: int, last: str) -> None:
    if code == _EXIT_CONFIG:
        raise ConfigError(config.file, "coordinator", last)
    if code != 0:
        target, _, problem = last.partition(": ")
        raise _ERRORS.get(code, GateError)(target, problem or f"the loop ended with code {code}")


def release(config: CoordinatorConfig) -> bool:
    """Remove what a killed coordinator left; whether there was anything.

    What waits leaves first, where the compiled core is there to open the gates.

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
