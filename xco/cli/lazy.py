"""Loads `xco simulate` on demand: it needs numpy, which hosts need for nothing else."""

from typing import Any

import typer
from typer.core import TyperGroup
from typer.main import get_command

from xco.errors import ConfigError

SIMULATE = "simulate"


class Commands(TyperGroup):
    """The commands of xco; `simulate` is loaded on first use."""

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command by its name; None if it does not exist."""
        if cmd_name == SIMULATE:
            load(self)
        return super().get_command(ctx, cmd_name)


def load(group: Any) -> Any:
    """Replace the placeholder by the real `simulate` if numpy is installed; return the group."""
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
