"""Checks before standby that the controller could lead: its key and its listen address."""

import socket
from pathlib import Path

from xco.controller.config import ControllerConfig
from xco.errors import ConfigError, ControllerError
from xco.protocol.keys import read_master


def check_key(config: ControllerConfig, path: Path) -> None:
    """Check that the key of the settings in `path` can be read.

    Raises:
        ConfigError: it cannot be read, or is not a key; names the settings' key.
    """
    try:
        read_master(config.key)
    except ConfigError as error:
        problem = f"{config.key}: {error.problem}"
        raise ConfigError(str(path), "controller.key", problem, error.fix) from error


def check_listen(config: ControllerConfig, path: Path | None) -> None:
    """Check that this machine has the listen address; another process may use the port meanwhile.

    Raises:
        ControllerError: it does not have it, perhaps not yet: retry later.
    """
    address, port = config.listen
    try:
        family, kind, number, _, place = socket.getaddrinfo(
            address, 0, type=socket.SOCK_DGRAM, flags=socket.AI_NUMERICHOST
        )[0]
        with socket.socket(family, kind, number) as probe:
            probe.bind(place)
    except OSError as error:
        what = f"{path}: controller.listen" if path else "controller.listen"
        problem = f"{address}:{port}: {error.strerror or error}"
        raise ControllerError(what, problem, "name an address of this machine") from error
