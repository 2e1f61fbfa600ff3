"""zovn switch: runs the switch, changes its ports, shows its state."""

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from common.command import EXIT_FAILED
from common.output import print_json
from common.toml_tables import read_text
from common.units import short_bit_rate
from zovn.cli.command import CONTROL, Control, Json
from zovn.cli.tables import peer, show, table_of
from zovn.cli.top import top
from zovn.switch import control, saved, shell
from zovn.switch import release as undo
from zovn.switch.config import DEFAULT_PATH, checked, interfaces_of, load_config
from zovn.switch.control import PortReport
from zovn.switch.port_table import port_words
from zovn.switch.wire_table import wire_given

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="The switch of this host.")
port_app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Ports of a running one.")
app.add_typer(port_app, name="port")
app.command()(top)

ConfigFile = Annotated[Path, typer.Argument(envvar="ZOVN_CONFIG", help="The settings.")]
Name = Annotated[str, typer.Argument(help="Name of the port.")]
Save = Annotated[bool, typer.Option("--save", help="Change the settings as well.")]
Saved = Annotated[
    Path, typer.Option("--config", envvar="ZOVN_CONFIG", help="The settings that --save changes.")
]


@app.command()
def run(config: ConfigFile = DEFAULT_PATH) -> None:
    """Forward in the foreground until SIGTERM or SIGINT."""
    shell.run(load_config(config))


@app.command()
def check(config: ConfigFile = DEFAULT_PATH, json: Json = False) -> None:
    """Check the settings, and change nothing."""
    settings = load_config(config)
    if json:
        print_json({"file": str(config), "ports": [port.name for port in settings.table.port]})
    else:
        typer.echo(f"{config}: no mistake found; {len(settings.table.port)} ports")


@app.command()
def status(socket: Control = CONTROL, json: Json = False) -> None:
    """Show ports and counters; exit code 3 if no switch answers."""
    report = control.status(socket)
    if json:
        print_json(report)
    else:
        show(_counted(report.ports))


@app.command()
def stations(socket: Control = CONTROL, json: Json = False) -> None:
    """List the addresses that the switch knows, by port and VLAN; exit code 3 if none answers."""
    found = control.stations(socket)
    if json:
        print_json(found)
    else:
        table = table_of(("port", "vlan", "address", "known as"), 4)
        for one in found:
            known = "static" if one.static else "learnt"
            table.add_row(one.port, str(one.vlan or "-"), one.ethernet, known)
        show(table)


@app.command()
def release(
    interfaces: Annotated[
        list[str] | None, typer.Argument(help="Interfaces [those of the settings].")
    ] = None,
    config: Annotated[
        Path, typer.Option("--config", envvar="ZOVN_CONFIG", help="The settings.")
    ] = DEFAULT_PATH,
    json: Json = False,
) -> None:
    """Undo what a killed switch left at interfaces; exit code 1 if one is in use or missing.

    Interfaces of the settings may be missing.
    """
    named = interfaces or interfaces_of(load_config(config))
    done = undo.release(named)
    if json:
        print_json(done)
    else:
        for one in done:
            typer.echo(f"{one.interface}: {one.problem or one.result}")
    if any(one.result == "refused" or (interfaces and one.result == "missing") for one in done):
        raise typer.Exit(EXIT_FAILED)


@port_app.command("list")
def list_ports(socket: Control = CONTROL, json: Json = False) -> None:
    """List the ports."""
    ports = control.ports(socket)
    if json:
        print_json(ports)
    else:
        show(_listed(ports))


@port_app.command()
def add(
    name: Name,
    kind: Annotated[
        str, typer.Option(help="What it connects: vhost, veth, tap or wire.")
    ] = "vhost",
    path: Annotated[
        str | None, typer.Option("--socket", help="Socket of the port [/run/zovn/NAME.sock].")
    ] = None,
    interface: Annotated[
        str | None, typer.Option(help="Host's end of a veth, a TAP interface, or a wire's.")
    ] = None,
    group: Annotated[str | None, typer.Option(help="Group that may connect.")] = None,
    vlan: Annotated[int, typer.Option(help="VLAN of frames without a tag; 0: none.")] = 1,
    tagged: Annotated[
        list[str] | None, typer.Option(help="VLANs of a trunk, e.g. 10 or 20-29; repeatable.")
    ] = None,
    address: Annotated[
        list[str] | None, typer.Option(help="Static address of the guest; repeatable.")
    ] = None,
    class_: Annotated[int, typer.Option("--class", help="Class of its frames, 0 to 7.")] = 0,
    trust: Annotated[
        str, typer.Option(help="Mark that gives the class: nothing, priority or dscp.")
    ] = "nothing",
    offloads: Annotated[
        bool, typer.Option("--offloads", help="Offer checksum and segmentation offloads.")
    ] = False,
    queues: Annotated[int, typer.Option(help="Pairs of rings of the guest, 1 to 8.")] = 1,
    rate: Annotated[
        str | None, typer.Option(help="Rate of frames to the port, at most, e.g. 1Gbit/s.")
    ] = None,
    wire: Annotated[
        list[str] | None, typer.Option(help="Key of a wire, e.g. vni=42; repeatable.")
    ] = None,
    save: Save = False,
    file: Saved = DEFAULT_PATH,
    socket: Control = CONTROL,
) -> None:
    """Add a port until the switch ends; with --save, it is there at the next start, too."""
    port = saved.given(
        name=name,
        kind=kind,
        socket=path,
        interface=interface,
        group=group,
        vlan=vlan,
        tagged=tuple(tagged or ()),
        addresses=tuple(address or ()),
        trust=trust,
        offloads=offloads,
        queues=queues,
        rate=rate,
        wire=wire_given(wire) if wire else None,
        **{"class": class_},
    )
    _add(port, socket, file if save else None)


def _add(port: saved.Port, socket: Path, file: Path | None) -> None:
    """Add a port to the running switch; then write it into the file of settings, if there is one.

    Raises:
        ConfigError: there are mistakes in the port or the file, which is then as it was.
        SwitchAway, SwitchError: no switch answers, or it refuses.
    """
    config = checked({"port": [port]}, "zovn switch port add")
    text = saved.with_port(read_text(file), port, str(file)) if file else ""
    (table,) = config.table.port
    control.add(socket, port_words(table, config.groups))
    if file:
        saved.write(file, text)


@port_app.command()
def remove(
    name: Name,
    save: Save = False,
    file: Saved = DEFAULT_PATH,
    socket: Control = CONTROL,
) -> None:
    """Deliver what was taken from a port, within 100 ms; then disconnect its guest."""
    text = saved.without_port(read_text(file), name, str(file)) if save else ""
    control.remove(socket, name)
    if save:
        saved.write(file, text)


def _listed(ports: Iterable[PortReport]) -> Table:
    table = table_of(("port", "kind", "peer", "vlan", "tagged", "class", "rate", "at"), 8)
    for port in ports:
        vlans = ",".join(port.tagged) or "-"
        row = (str(port.vlan or "-"), vlans, str(port.class_))
        rate = short_bit_rate(port.rate) if port.rate else "-"
        table.add_row(port.name, port.kind, peer(port), *row, rate, port.interface or port.path)
    return table


def _counted(ports: Iterable[PortReport]) -> Table:
    shown = ("in", "out", "held", "parked", "waiting")
    table = table_of(("port", "peer", *shown, "blocked ms", "stalls", "dropped"), 2)
    for port in ports:
        counts = [str(port.counters[key]) for key in shown]
        blocked = str(port.counters["blocked_ns"] // 1_000_000)
        dropped = ", ".join(f"{count} {key}" for key, count in _losses(port) if count) or "0"
        stalls = str(port.counters["stalls"])
        table.add_row(port.name, peer(port), *counts, blocked, stalls, dropped)
    return table


def _losses(port: PortReport) -> Iterable[tuple[str, int]]:
    """Return what was dropped by reason, and what was lost at the interface."""
    return *port.drops.items(), ("lost", port.lost or 0)
