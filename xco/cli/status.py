"""Reads the state of this machine's controller and coordinator, as far as they are configured."""

import time
from pathlib import Path
from typing import Any

import msgspec

from xco.cli.command import NoAnswerError
from xco.controller.config import (
    FORM,
    ControllerConfig,
    Places,
    load_controller_config,
    load_places,
)
from xco.coordinator.config import CoordinatorConfig, load_config
from xco.errors import ConfigError, ControllerError
from xco.tables import read_tables
from xco.topology.file import load_file

PARTS = ("controller", "coordinator")


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    """One snapshot; None for a part that is not configured or does not run."""

    at_ns: int
    """On the monotonic clock."""
    controller: dict[str, Any] | None = None
    """As returned by `xco.controller.metrics.controller_status`."""
    coordinator: dict[str, Any] | None = None
    """The fields of `xco.coordinator.status.CoordinatorStatus`."""
    silent: tuple[str, ...] = ()
    """Why a configured part does not answer."""


class StatusReader:
    """Takes snapshots repeatedly; reads the settings once.

    Wrong files do not hide a running controller: its `problem` says what is wrong with them.
    """

    def __init__(self, path: Path, parts: tuple[str, ...] = PARTS) -> None:
        """Read the settings of the parts that the file configures, as far as possible.

        Raises:
            ConfigError: the file is readable but configures none of them.
        """
        self._wrong: dict[str, ConfigError] = {}
        wanted = self._wanted(path, parts)
        self.places: Places | None = None
        self._names: tuple[str, ...] = ()
        self._config: ControllerConfig | None = None
        if "controller" in wanted:
            self.places = load_places(path)
            self._read_controller(path)
        self._coordinator: CoordinatorConfig | None = None
        if "coordinator" in wanted:
            try:
                self._coordinator = load_config(path)
            except ConfigError as error:
                self._wrong["coordinator"] = error

    def _wanted(self, path: Path, parts: tuple[str, ...]) -> list[str]:
        try:
            tables = read_tables(path, FORM)
        except ConfigError as error:
            self._wrong["file"] = error
            return list(parts)
        wanted = [part for part in parts if part in tables]
        if not wanted:
            words = " or ".join(f"[{part}]" for part in parts)
            raise ConfigError(str(path), parts[0], "missing", f"add a table {words}")
        return wanted

    def _read_controller(self, path: Path) -> None:
        try:
            self._config = load_controller_config(path)
        except ConfigError as error:
            self._wrong["controller"] = error
            self._names = self._published_names()
        else:
            self._stamp = _stamp(self._config)
            self._read_names(self._config)

    def _read_names(self, config: ControllerConfig) -> None:
        """Take the names from the topology, or those in force while it is wrong."""
        self._wrong.pop("topology", None)
        try:
            self._names = host_names(config)
        except ConfigError as error:
            self._wrong["topology"] = error
            self._names = self._names or self._published_names()

    def _published_names(self) -> tuple[str, ...]:
        """Return the names that a running controller has published; empty if it has not."""
        assert self.places is not None
        try:
            return msgspec.json.decode(self.places.names_file.read_bytes(), type=tuple[str, ...])
        except (OSError, msgspec.DecodeError):
            return ()

    def look(self) -> Machine:
        """Return the current state.

        Raises:
            NoAnswerError: none of the requested parts runs.
            ConfigError: the same, and a file is wrong.
        """
        silent: list[str] = []
        controller = self._of_controller(silent)
        coordinator = self._of_coordinator(silent)
        if controller is None and coordinator is None:
            for error in self._wrong.values():
                raise error
            raise NoAnswerError("no process answers", "; ".join(silent))
        return Machine(
            at_ns=time.monotonic_ns(),
            controller=controller,
            coordinator=coordinator,
            silent=tuple(silent),
        )

    def _of_controller(self, silent: list[str]) -> dict[str, Any] | None:
        if self.places is None:
            return None
        from xco.controller.metrics import controller_status  # noqa: PLC0415  loads slowly

        self._follow_names()
        try:
            found = controller_status(self.places, self._names)
        except ControllerError:
            found = {"running": False}
        if not found["running"]:
            silent.append("no controller runs here (xco controller run)")
            return None
        said = found["controller"]["problem"]
        new = [str(error) for error in self._wrong.values() if str(error) not in said]
        found["controller"]["problem"] = "; ".join(filter(None, [said, *dict.fromkeys(new)]))
        return found

    def _follow_names(self) -> None:
        """Read the names again when the file has changed; a wrong file leaves them as they are."""
        if self._config is not None and _stamp(self._config) != self._stamp:
            self._stamp = _stamp(self._config)
            self._read_names(self._config)

    def _of_coordinator(self, silent: list[str]) -> dict[str, Any] | None:
        if "coordinator" in self._wrong:
            silent.append(f"the coordinator is not looked at: {self._wrong['coordinator']}")
        if self._coordinator is None:
            return None
        from xco.coordinator.status import status  # noqa: PLC0415  loads slowly

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
