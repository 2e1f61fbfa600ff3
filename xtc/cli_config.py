"""xtc config: check and show what the daemon would run with, and make keys for TCP."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import msgspec
import typer
import zmq.auth

from xtc.config import Config
from xtc.configfile import DEFAULT_PATH, config_files, load_config
from xtc.errors import ConfigError
from xtc.output import print_json
from xtc.routers import plans
from xtc.timing import check_timing
from xtc.units import Seconds

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Check and show.")
ConfigPath = Annotated[Path, typer.Option("--config", "-c", envvar="XTC_CONFIG")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.command()
def check(config: ConfigPath = DEFAULT_PATH, json: Json = False) -> None:
    """Check the configuration and this host; exit code 2 if the daemon would refuse it."""
    from xtc.actuator.factory import probe  # noqa: PLC0415  actuators take 0.15 s to load

    loaded = _checked(config)
    host = probe()
    kinds = {msgspec.to_builtins(section.actuator)["kind"] for section in loaded.router.values()}
    missing = [
        f"{kind}: {why}" for kind, why in asdict(host).items() if kind in kinds and why is not None
    ]
    if missing:
        raise ConfigError(f"{config}: router.*.actuator", "; ".join(missing))
    files = [str(file) for file in config_files(config)]
    if json:
        print_json({"files": files, "routers": sorted(loaded.router)})
    else:
        typer.echo(f"{', '.join(files)}: {len(loaded.router)} routers, no mistake found")


@app.command()
def show(config: ConfigPath = DEFAULT_PATH, json: Json = False) -> None:
    """Show the configuration in force, defaults and drop-ins included."""
    loaded = _checked(config)
    if json:
        print_json(loaded)
        return
    typer.echo(msgspec.json.format(msgspec.json.encode(loaded), indent=2).decode())


@app.command()
def keys(
    directory: Annotated[Path, typer.Argument(help="Where the two key files go.")],
    name: Annotated[str, typer.Argument(help="Whose they are, such as policer.")],
    json: Json = False,
) -> None:
    """Make a CURVE key pair for a daemon or a policer that talks over TCP."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    public, secret = zmq.auth.create_certificates(str(directory), name)
    Path(secret).chmod(0o600)
    files = {"public": str(public), "secret": str(secret)}
    if json:
        print_json(files)
    else:
        typer.echo("\n".join(f"{kind}: {path}" for kind, path in files.items()))


def _checked(path: Path) -> Config:
    loaded = load_config(path)
    plans(loaded)
    check_timing(Seconds(loaded.daemon.period_s), Seconds(loaded.daemon.meter_period_s), None)
    return loaded
