"""Starts the compiled switch in the place of this process."""

import os
from pathlib import Path

from common.errors import ConfigError
from zovn.core_files import program
from zovn.switch.config import SwitchConfig, plain


def run(config: SwitchConfig) -> None:
    """Write the plain configuration next to the control socket, and become the switch.

    Raises:
        ConfigError: the folder of the control socket cannot be written.
        CoreError: the program is not built.
    """
    switch = str(program())
    path = config.control.with_suffix(".conf")
    _write(path, plain(config))
    os.execv(switch, [switch, str(path)])  # noqa: S606  our own program, without a shell


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    except OSError as error:
        problem = f"{path}: {error.strerror or 'cannot be written'}"
        fix = "run it as root, or set control, and each port's socket, in a folder of yours"
        raise ConfigError("switch.control", problem, fix) from error
