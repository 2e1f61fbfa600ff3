"""Looks at the controller and the coordinator of this machine, as far as they are configured."""

import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from xco.command import NobodyAnswersError
from xco.controller_config import FORM, ControllerConfig, load_controller_config
from xco.coordinator_config import CoordinatorConfig, load_config
from xco.errors import ConfigError, ControllerError
from xco.tables import read_tables
from xco.topology_file import load_file

PARTS = ("controller", "coordinator")


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    """What one look has found; None for a part that is not configured, or does not run."""

    at_ns: int
    """By the monotonic clock."""
    controller: dict[str, Any] | None = None
    """As `xco.controller_metrics.controller_status` says it."""
    coordinator: dict[str, Any] | None = None
    """The fields of `xco.coordinator_status.CoordinatorStatus`."""
    silent: tuple[str, ...] = ()
    """Why a part that is configured does not answer."""


class Looker:
    """Looks again and again; the settings are read once."""

    def __init__(self, path: Path, parts: tuple[str, ...] = PARTS) -> None:
        """Read the settings of those parts that the file configures.

        Raises:
            ConfigError: the file is wrong, or configures none of them.
        """
        tables = read_tables(path, FORM)
        wanted = [part for part in parts if part in tables]
        if not wanted:
            words = " or ".join(f"[{part}]" for part in parts)
            raise ConfigError(str(path), parts[0], "missing", f"add a table {words}")
        self._controller: ControllerConfig | None = None
        if "controller" in wanted:
            self._controller = load_controller_config(path)
            self._names, self._stamp = host_names(self._controller), _stamp(self._controller)
        self._coordinator: CoordinatorConfig | None = None
        if "coordinator" in wanted:
            self._coordinator = load_config(path)

    def look(self) -> Machine:
        """Return how things are now.

        Raises:
            NobodyAnswersError: nothing that was asked for runs.
        """
        silent: list[str] = []
        controller = self._of_controller(silent)
        coordinator = self._of_coordinator(silent)
        if controller is None and coordinator is None:
            raise NobodyAnswersError("nobody answers", "; ".join(silent))
        return Machine(
            at_ns=time.monotonic_ns(),
            controller=controller,
            coordinator=coordinator,
            silent=tuple(silent),
        )

    def _of_controller(self, silent: list[str]) -> dict[str, Any] | None:
        if self._controller is None:
            return None
        from xco.controller_metrics import controller_status  # noqa: PLC0415  loads slowly

        self._follow_names(self._controller)
        try:
            found = controller_status(self._controller, self._names)
        except ControllerError:
            found = {"running": False}
        if not found["running"]:
            silent.append("no controller runs here (xco controller run)")
            return None
        return found

    def _follow_names(self, config: ControllerConfig) -> None:
        """Take other names when the file is another one; one that is wrong names nobody anew."""
        stamp = _stamp(config)
        if stamp != self._stamp:
            self._stamp = stamp
            with suppress(ConfigError):
                self._names = host_names(config)

    def _of_coordinator(self, silent: list[str]) -> dict[str, Any] | None:
        if self._coordinator is None:
            return None
        from xco.coordinator_status import status  # noqa: PLC0415  loads slowly

        interface = self._coordinator.table.interface
        try:
            found = status(self._coordinator)
        except ControllerError:
            found = None
        if found is None or not found.running:
            silent.append(
                f"no coordinator runs on {interface}: its traffic is unshaped (xco coordinator run)"
            )
            return None
        return dict(msgspec.to_builtins(found))


def _stamp(config: ControllerConfig) -> int:
    try:
        return config.topology.stat().st_mtime_ns
    except OSError:
        return 0


def host_names(config: ControllerConfig) -> tuple[str, ...]:
    """Return the hosts' names by their numbers.

    Raises:
        TopologyError: the topology is wrong.
    """
    return tuple(host.name for host in load_file(config.topology).topology.hosts)
