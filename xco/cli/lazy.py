"""Loads `xco simulate` when it is asked for: it takes numpy, which hosts have no other use for."""

from typing import Any

import typer
from typer.core import TyperGroup
from typer.main import get_command

from xco.errors import ConfigError

SIMULATE = "simulate"


class Commands(TyperGroup):
    """The commands of xco; one of them is loaded late."""

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command by its name; None if there is none."""
        if cmd_name == SIMULATE:
            load(self)
        return super().get_command(ctx, cmd_name)


def load(group: Any) -> Any:
    """Put the real `simulate` in its place, where numpy is installed; returns the group."""
    try:
        from xco.simulate.cli import simulate  # noqa: PLC0415  takes numpy
    except ModuleNotFoundError as error:
        if error.name != "numpy":
            raise
        return group
    made = typer.Typer(rich_markup_mode=None, add_completion=False)
    made.command(SIMULATE)(simulate)
    group.commands[SIMULATE] = get_command(made)
    return group


def simulate_is_missing() -> None:
    """Simulate thousands of hosts (needs numpy, which is not installed)."""
    raise ConfigError("simulate", "", "numpy is not installed", "pip install 'xtc[simulation]'")
